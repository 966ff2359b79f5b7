"""Examples of matrix products and attention: other configs, and what they are compiled to."""

from __future__ import annotations

import offline
import pytest
import torch

import helion
from examples import (
    attention,
    attention_dropout,
    bmm,
    broadcast_matmul,
    fp8_gemm,
    grouped_gemm,
    matmul,
    matmul_layernorm,
    matmul_split_k,
)
from helion._testing import DEVICE


def randn(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, device=DEVICE).to(dtype)


def test_closures_with_other_tensors_are_other_arguments():
    x, y = randn(32, 32), randn(32, 32)
    for bias in (randn(32), randn(32)):
        expected = torch.relu(x @ y + bias)
        torch.testing.assert_close(matmul.linear_relu(x, y, bias), expected, rtol=2e-2, atol=5e-2)


@pytest.mark.parametrize("batch", [1, 2])
def test_bmm_of_one_and_of_several_matrices_at_once(batch):
    x, y = randn(3, 40, 20), randn(3, 20, 30)
    config = helion.Config(block_sizes=[batch, 32, 32, 16])
    result = bmm.bmm.bind((x, y)).compile_config(config)(x, y)
    torch.testing.assert_close(result, x @ y, rtol=2e-2, atol=5e-2)  # TF32 on a GPU


@pytest.mark.parametrize("split_k", [1, 4, 256])
def test_parts_of_a_split_product(split_k):
    args = randn(20, 300), randn(300, 24), randn(24)
    keys = {"block_sizes": [32, 32, 32], "split_k": split_k}
    run = matmul_split_k.matmul_split_k.bind(args).compile_config(helion.Config(**keys))
    expected = matmul_split_k.torch_matmul_bias(*args)
    torch.testing.assert_close(run(*args), expected, rtol=2e-2, atol=1e-1)


def test_a_loop_that_is_traced_again_has_one_entry_of_block_sizes():
    """`passed` begins as a number and becomes a tensor: only then is its type known."""
    args = grouped_gemm.operands([9], 20, 16, torch.float32)
    assert len(grouped_gemm.grouped_gemm_persistent.bind(args).config_spec.block_sizes) == 3


@pytest.mark.parametrize("name", grouped_gemm.KERNELS)
def test_groups_of_other_sizes_need_no_other_kernel(name):
    kernel = grouped_gemm.KERNELS[name]
    for sizes in ([5, 20], [25, 0], [0, 1]):
        args = grouped_gemm.operands(sizes, 20, 16, torch.float32)
        expected = grouped_gemm.torch_grouped_gemm(*args)
        torch.testing.assert_close(kernel(*args), expected, rtol=2e-2, atol=5e-2)
    bound = {id(kernel.bind(grouped_gemm.operands(s, 20, 16, torch.float32))) for s in ([9], [3])}
    assert len(bound) == 1


# The last two take several blocks of keys for one of queries, and the reverse.
@pytest.mark.parametrize("blocks", [[64, 64], [16, 64], [64, 16]], ids=str)
@pytest.mark.parametrize(("causal", "n"), [(False, 90), (True, 90), (True, 128)])
def test_blocks_of_attention(blocks, causal, n):
    q, k, v = (randn(2, n, 16) for _ in range(3))
    args = (q, k, v, 0.25, causal)
    bound = attention.attention_fwd.bind(args)
    out, _ = bound.compile_config(helion.Config(block_sizes=blocks))(*args)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    torch.testing.assert_close(out, expected, rtol=2e-2, atol=2e-2)


# Ragged blocks, blocks that are shorter than a span of the packed order, and whole spans.
@pytest.mark.parametrize(("blocks", "n"), [([32, 32], 90), ([16, 64], 128), ([64, 128], 128)])
def test_the_mask_of_attention_is_that_of_the_host(blocks, n):
    q, k, v = randn(2, 48, 16), randn(2, n, 16), randn(2, n, 16)
    args = (q, k, v, 0.5, 0.25, 2**40 + 3)
    bound = attention_dropout.attention_dropout_fwd.bind(args)
    out, _ = bound.compile_config(helion.Config(block_sizes=blocks))(*args)
    expected = attention_dropout.dropped_by_torch(q, k, v, 0.5, 2**40 + 3)
    torch.testing.assert_close(out.double(), expected, rtol=2e-2, atol=2e-2)


def test_a_seed_on_the_device_drops_the_same():
    q, k, v = (randn(1, 32, 16) for _ in range(3))
    seed = torch.tensor(5, device=DEVICE)
    expected = attention_dropout.attention_dropout(q, k, v, 0.5, 5)
    assert torch.equal(attention_dropout.attention_dropout(q, k, v, 0.5, seed), expected)


# -- compiled for a GPU that need not be there ---------------------------------------------------


def shaped(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype)


X = shaped(4096, 4096)
OFFSETS = shaped(9, dtype=torch.int32)
Q, SUMS = shaped(32, 4096, 64), shaped(32, 4096, dtype=torch.float32)
COMPILED = {
    "matmul": (matmul.matmul, (X, X)),
    "matmul_bwd": (matmul.matmul_bwd, (X, X, X)),
    "bmm": (bmm.bmm, (shaped(16, 2048, 2048),) * 2),
    "broadcast_matmul": (broadcast_matmul.broadcast_matmul, (shaped(8, 512, 4096), X)),
    "matmul_split_k": (matmul_split_k.matmul_split_k, (X[:64], X[:, :64], X[0, :64])),
    "matmul_layernorm": (
        matmul_layernorm.matmul_layernorm,
        (X, shaped(4096, 256), shaped(256), shaped(256)),
    ),
    "fp8_gemm": (fp8_gemm.fp8_gemm, fp8_gemm.operands(64, 4096, 128)),
    "grouped_gemm": (grouped_gemm.grouped_gemm, (X, shaped(8, 4096, 4096), OFFSETS)),
    "attention_fwd": (attention.attention_fwd, (Q, Q, Q, 0.125, True)),
    "attention_fwd full": (attention.attention_fwd, (Q, Q, Q, 0.125, False)),
    "attention_bwd": (attention.attention_bwd, (Q, Q, Q, Q, SUMS, SUMS, 0.125, True)),
    "attention_dropout_fwd": (attention_dropout.attention_dropout_fwd, (Q, Q, Q, 0.9, 0.125, 7)),
    "attention_dropout_bwd": (
        attention_dropout.attention_dropout_bwd,
        (Q, Q, Q, Q, SUMS, SUMS, 0.9, 0.125, 7),
    ),
}


@pytest.fixture(scope="module")
def compiled():
    cases = []
    for kernel, args in COMPILED.values():
        # Bound anew: what the other tests run stays as it is.
        bound = helion.kernel(kernel.fn, settings=kernel.settings).bind(args)
        spec = bound.config_spec
        spec._interpreted = False  # the kernel is compiled here, and not run
        config = spec.default_config()
        cases.append(offline.case(bound, config, *args))
    return dict(zip(COMPILED, offline.compile_offline(cases, 90)[0], strict=True))


@pytest.mark.parametrize("name", COMPILED)
def test_default_config_suits_a_gpu(name, compiled):
    facts = compiled[name]
    assert facts["shared"] <= 227 * 1024
    assert facts["wgmma"] > 0
    assert facts["spilled"] <= 32  # a few values beside the loops, and not those of each block


def test_no_mask_crosses_threads(compiled):
    """Bits of the mask are drawn where the scores are: with dropout, nothing more is exchanged."""
    exchanged = [
        {i: n for i, n in compiled[name]["memory"].items() if "shared" in i or "shfl" in i}
        for name in ("attention_dropout_fwd", "attention_fwd full")
    ]
    assert exchanged[0] == exchanged[1]


def test_the_sum_of_a_batched_product_stays_in_its_registers(compiled):
    assert "f32" not in compiled["bmm"]["conversions"]
