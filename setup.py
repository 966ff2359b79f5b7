"""Packaging of helion: what it needs and what it ships.

The ranges here say what helion works with; `constraints.txt` says what it is tested with.
"""

from __future__ import annotations

from pathlib import Path

from setuptools import find_packages, setup

setup(
    name="helion",
    version="0.1.0",
    description="Write GPU kernels as Python functions over tiles; read the Triton they become.",
    long_description=(Path(__file__).parent / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    author="Helion contributors",
    license="BSD-3-Clause",
    license_files=["LICENSE"],
    classifiers=[
        "Development Status :: 3 - Alpha",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Typing :: Typed",
    ],
    python_requires=">=3.10",
    packages=find_packages(include=["helion", "helion.*"]),
    package_data={"helion": ["py.typed"]},
    install_requires=[
        "numpy",
        "sympy",
        "torch>=2.11,<2.15",
        "triton>=3.6,<4",
        "typing_extensions",
    ],
    extras_require={
        "dev": [
            "codespell",
            "expecttest",
            "hypothesis",
            "pyright",
            "pytest",
            "pytest-xdist",
            "ruff",
        ],
    },
)
