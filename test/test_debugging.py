"""`hl.device_print` and `breakpoint()` in device code."""

from __future__ import annotations

import sys

import pytest
import torch

import helion
import helion.language as hl
from helion import exc
from helion._testing import DEVICE
from helion.language import debugging

ON_CPU = DEVICE.type == "cpu"


def prints(x, n: int):
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        print("x and n", x[tile] + 1, n)
        if tile.begin > 0:
            hl.device_print("begin", tile.begin)
        out[tile] = x[tile]
    return out


def compiled(function):
    return helion.kernel(
        function, config=helion.Config(block_sizes=[4]), ref_mode=helion.RefMode.OFF
    )


def test_prints_stand_in_the_code_and_print(capfd):
    bound = compiled(prints).bind((torch.ones(8, device=DEVICE), 3))
    code = bound.to_triton_code()
    assert "tl.device_print('x and n', x_tile + 1.0, n)" in code
    assert "tl.device_print('begin', tile_begin)" in code
    bound(torch.arange(8.0, device=DEVICE), 3)
    if ON_CPU:
        assert capfd.readouterr().out == (
            "(0, 0, 0)  x and n:  [1. 2. 3. 4.]\n(0, 0, 0)  x and n:  [3]\n"
            "(1, 0, 0)  x and n:  [5. 6. 7. 8.]\n(1, 0, 0)  x and n:  [3]\n"
            "(1, 0, 0)  begin:  [4]\n"
        )


def test_the_reference_prints_plainly(capsys):
    helion.kernel(prints, ref_mode=helion.RefMode.EAGER)(torch.ones(2), 3)
    assert capsys.readouterr().out == "x and n tensor([2., 2.]) 3\n"


def no_prefix(x):
    for tile in hl.tile(x.size(0)):
        print(x[tile])


def two_prefixes(x):
    for tile in hl.tile(x.size(0)):
        hl.device_print("a", "b", x[tile])


def not_ascii(x):
    for tile in hl.tile(x.size(0)):
        hl.device_print("größe", x[tile])


def a_host_tensor(x):
    for _ in hl.tile(x.size(0)):
        print("x", x)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (no_prefix, "the first argument is a `float32 tensor`"),
        (two_prefixes, "a `str` cannot be printed"),
        (not_ascii, "not printable ASCII"),
        (a_host_tensor, "cannot be printed"),
    ],
)
def test_what_cannot_be_printed(function, text):
    with pytest.raises(exc.InvalidPrintArgument, match=text):
        compiled(function).bind((torch.ones(8, device=DEVICE),))


def stops(x):
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        value = x[tile] + 1
        breakpoint()
        out[tile] = value
    return out


@pytest.mark.skipif(not ON_CPU, reason="needs an interpreter")
def test_a_breakpoint_stops_in_the_generated_kernel(monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: seen.append(sys._getframe(1).f_code.co_name))
    compiled(stops)(torch.ones(8))
    assert seen == ["_helion_stops", "_helion_stops"]


def test_a_breakpoint_needs_an_interpreter(monkeypatch):
    monkeypatch.setattr(debugging, "is_interpreting", lambda: False)
    with pytest.raises(exc.BreakpointInDeviceLoopRequiresInterpret, match="breakpoint"):
        compiled(stops).bind((torch.ones(8, device=DEVICE),))
