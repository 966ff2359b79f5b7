"""Generated code of random operations: golden texts, and what a GPU's compiler makes of it."""

from __future__ import annotations

import math

import pytest
import torch
from offline import case, compile_offline

import helion
import helion.language as hl
from helion._testing import DEVICE


def drop_halves(x, p: float, seed: int):
    out = torch.empty_like(x)
    for i, j in hl.tile(x.size()):
        keep = hl.bernoulli([i, j], 1 - p, seed)
        out[i, j] = torch.where(keep, x[i, j], 0)
    return out


def drop_octets(x, p: float, seed: int):
    out = torch.empty_like(x)
    for t in hl.tile(x.size()):
        keep = hl.bernoulli(t, 1 - p, seed, bits=8)
        out[t] = torch.where(keep, x[t], 0)
    return out


def drop_words(x, p: float, seed: int):
    out = torch.empty_like(x)
    for i, j in hl.tile(x.size()):
        keep = hl.rand([i, j], seed, packed=True) >= p
        out[i, j] = torch.where(keep, x[i, j], 0)
    return out


def fill_normal(x, p: float, seed: int):
    out = torch.empty_like(x)
    for i, j in hl.tile(x.size()):
        out[i, j] = hl.randn([i, j], hl.fold_in(seed, 3), packed=True)
    return out


def fill_short(x, p: float, seed: int):
    out = torch.empty_like(x)
    for i, j in hl.tile(x.size()):
        out[i, j] = hl.rand([i, j], seed, dtype=torch.bfloat16) + hl.uniform([i, j], 0, p, seed)
    return out


def fill_integers(x, p: float, seed: int):
    out = torch.empty(x.size(), dtype=torch.int32, device=x.device)
    for i, j in hl.tile(x.size()):
        out[i, j] = hl.randint([i, j], -3, 100, seed)
    return out


def wide_integers(x, p: float, seed: int):
    out = torch.empty(x.size(), dtype=torch.int64, device=x.device)
    for i, j in hl.tile(x.size()):
        out[i, j] = hl.randint([i, j], 0, 10**15, seed)
    return out


def fill_rest(x, p: float, seed: int):
    out = torch.empty_like(x)
    for i, j in hl.tile(x.size()):
        bits = hl.random_bits([i, j], seed, torch.uint8, packed=True).to(torch.float32)
        rare = hl.bernoulli([i, j], x[i, j].to(torch.float32), seed, bits=32)
        total = hl.exponential([i, j], seed) + hl.gumbel([i, j], seed, packed=True) + bits + rare
        total = total + hl.rand([i, j], seed, dtype=torch.float64)
        out[i, j] = total + hl.randn([i, j], seed, dtype=torch.float64)
    return out


def carried_seed(x, p: float, seed: int):
    out = torch.empty_like(x)
    for i in hl.tile(x.size(0)):
        own = 0
        for j in hl.tile(x.size(1)):
            if j.id == 0:
                own = seed * 3
            out[i, j] = hl.rand([i, j], own)
            own = own + 1
    return out


SHORT, SINGLE = torch.bfloat16, torch.float32
CASES = {
    # name: function, shape, dtype, block sizes, static shapes
    "halves": (drop_halves, (64, 1024), SHORT, [4, 1024], True),
    "halves.ragged": (drop_halves, (7, 200), SHORT, [4, 64], False),
    "halves.by_element": (drop_halves, (7, 200), SHORT, [4, 16], True),
    "octets.3d": (drop_octets, (4, 6, 256), SHORT, [1, 2, 128], True),
    "octets.by_element": (drop_octets, (4, 6, 256), SHORT, [1, 2, 32], False),
    "words": (drop_words, (64, 1024), SINGLE, [4, 1024], True),
    "normal": (fill_normal, (64, 1024), SINGLE, [4, 256], True),
    "short": (fill_short, (64, 1024), SHORT, [4, 256], True),
    "integers": (fill_integers, (64, 1024), SHORT, [4, 256], True),
    "integers.wide": (wide_integers, (64, 1024), SHORT, [4, 256], True),
    "carried": (carried_seed, (64, 1024), SINGLE, [4, 256], True),
    "rest": (fill_rest, (64, 1024), SHORT, [4, 256], True),
}


def bound_case(name):
    function, shape, dtype, blocks, static = CASES[name]
    config = helion.Config(block_sizes=blocks)
    kernel = helion.kernel(function, config=config, static_shapes=static)
    args = (torch.ones(shape, dtype=dtype, device=DEVICE), 0.25, 7)
    return kernel.bind(args), config, args


@pytest.mark.parametrize("name", [n for n in CASES if n != "rest"])
def test_text(name, golden):
    bound, config, _ = bound_case(name)
    text = bound.to_triton_code(config, output_origin_lines=False)
    golden(name, text[text.index("@triton.jit") : text.index("\n\n\ndef ")])


def test_no_text_is_left_over(golden):
    golden.are_all([n for n in CASES if n != "rest"])


# -- for a GPU -----------------------------------------------------------------------------------


def attention(q, k, v, p: float, seed: int, bits: hl.constexpr):
    m, d = q.size()
    n = k.size(0)
    d = hl.specialize(d)
    out = torch.empty_like(q)
    for rows in hl.tile(m):
        largest = hl.full([rows], -math.inf)
        total = hl.zeros([rows])
        acc = hl.zeros([rows, d])
        for columns in hl.tile(n):
            scores = hl.dot(q[rows, :], k[columns, :].t())
            new = torch.maximum(largest, torch.amax(scores, -1))
            weights = torch.exp2(scores - new[:, None])
            shrink = torch.exp2(largest - new)
            total = total * shrink + weights.sum(-1)
            if bits is not None:
                weights = torch.where(hl.bernoulli([rows, columns], p, seed, bits=bits), weights, 0)
            acc = hl.dot(weights.to(v.dtype), v[columns, :], acc=acc * shrink[:, None])
            largest = new
        out[rows, :] = acc / total[:, None]
    return out


def attention_case(bits):
    config = helion.Config(block_sizes=[128, 64], num_warps=4, num_stages=2)
    q = torch.zeros(256, 64, dtype=SHORT, device=DEVICE)
    args = (q, q, q, 0.9, 7, bits)
    return case(helion.kernel(attention, config=config).bind(args), config, *args)


@pytest.fixture(scope="module")
def compiled():
    """Facts by name, for capability 90."""
    masks = {f"attention.{bits}": attention_case(bits) for bits in (None, 8, 16)}
    all_cases = {name: compiled_case(name) for name in CASES} | masks
    (facts,) = compile_offline(list(all_cases.values()), 90)
    return dict(zip(all_cases, facts, strict=True))


def compiled_case(name):
    bound, config, args = bound_case(name)
    return case(bound, config, *args)


def test_every_operation_compiles(compiled):
    assert all(facts["instructions"] > 50 for facts in compiled.values())


def test_other_capabilities():
    for (facts,) in compile_offline([compiled_case("rest")], 80, 100):
        assert facts["instructions"] > 50


@pytest.mark.parametrize("name", ["halves", "words"])
def test_dropout_moves_128_bits_at_a_time(compiled, name):
    memory = compiled[name]["memory"]
    assert {i for i in memory if "global" in i} == {"ld.global.v4.b32", "st.global.v4.b32"}


@pytest.mark.parametrize("bits", [8, 16])
def test_a_mask_in_attention_moves_nothing_between_threads(compiled, bits):
    # For capability 80 Triton gives the operand of a dot whose value was selected another layout,
    # whatever the condition; on capability 100 accumulators lie in tensor memory.
    plain, masked = (compiled[f"attention.{b}"] for b in (None, bits))
    assert masked["memory"] == plain["memory"]
    assert masked["conversions"] == plain["conversions"]


def test_instructions_of_a_dropout(compiled):
    # 4096 elements of 128 threads: 32 a thread. Philox takes most, and serves 8 elements a call.
    assert compiled["halves"]["instructions"] / 32 < 24
    assert compiled["words"]["instructions"] / 32 < 40
