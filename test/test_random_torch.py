"""Torch's own random calls inside of kernels: from `torch.manual_seed`, repeating in no loop."""

from __future__ import annotations

import runpy

import pytest
import torch
import torch.nn.functional as F
from test_rng import DEVICE, compiled, empty

import helion
import helion.language as hl
import helion.random
from helion import exc

M, N = 10, 40


def next_seeds(count):
    """The seeds that the next calls draw, from the generator as it is now."""
    state = torch.get_rng_state()
    seeds = [int(torch.randint(-(2**63), 2**63 - 1, ())) for _ in range(count)]
    torch.set_rng_state(state)
    return seeds


def like(out):
    for i, j in hl.tile(out.size()):
        out[i, j] = torch.rand_like(out[i, j])
    return out


def two_calls(out):
    for i, j in hl.tile(out.size()):
        first = torch.rand(i, j)
        out[i, j] = torch.where(first < 0.5, first, torch.rand([i, j], dtype=out.dtype))
    return out


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
@pytest.mark.parametrize("blocks", [[4, 16], [1, 64], [16, 8]], ids=str)
def test_the_numbers_are_those_of_a_drawn_seed(blocks, static):
    torch.manual_seed(3)
    (seed,) = next_seeds(1)
    kernel = compiled(like, blocks, static_shapes=static)
    want = helion.random.rand([M, N], seed, device=DEVICE)
    assert torch.equal(kernel(empty(M, N)), want)
    assert not torch.equal(kernel(empty(M, N)), want)
    torch.manual_seed(3)
    assert torch.equal(kernel(empty(M, N)), want)


def test_each_call_has_a_seed_of_its_own():
    torch.manual_seed(3)
    one, two = (helion.random.rand([M, N], s, device=DEVICE) for s in next_seeds(2))
    got = compiled(two_calls, [4, 16])(empty(M, N))
    assert torch.equal(got, torch.where(one < 0.5, one, two))


def with_a_seed(out, seed: int):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.rand([i, j], seed)
    return out


def test_the_operations_of_the_language_leave_the_generator_alone():
    before = torch.get_rng_state()
    compiled(with_a_seed, [4, 16])(empty(M, N), 3)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.gpu
def test_a_graph_that_would_repeat_its_seed_is_refused():
    kernel = compiled(like, [4, 16])
    kernel(empty(M, N))
    with (
        pytest.raises(exc.UnsupportedOperation, match="every replay would draw the same numbers"),
        torch.cuda.graph(torch.cuda.CUDAGraph()),
    ):
        kernel(empty(M, N))


# -- nothing repeats in a loop -------------------------------------------------------------------


def row_in_a_loop(out):
    for i in hl.tile(out.size(0)):
        for j in hl.grid(out.size(1)):
            out[i, j] = torch.rand([i])
    return out


def tile_in_a_tile(out):
    for i in hl.tile(out.size(0)):
        for j in hl.tile(out.size(1), block_size=1):
            out[i, j] = torch.rand([i])[:, None] + hl.zeros([i, j])
    return out


def unrolled(out):
    for i in hl.tile(out.size(0)):
        for j in hl.static_range(40):
            out[i, j] = torch.rand([i])
    return out


def scalars(out):
    for i in hl.grid(out.size(0)):
        for j in range(out.size(1)):
            out[i, j] = torch.rand([])
    return out


def in_two_loops(out):
    for i in hl.grid(out.size(0)):
        for k in hl.grid(5):
            for j in hl.tile(8):
                out[i, k * 8 + j.index] = torch.rand([j])
    return out


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
@pytest.mark.parametrize(
    ("function", "blocks"),
    [
        *((row_in_a_loop, [4]), (tile_in_a_tile, [4]), (unrolled, [4])),
        *((scalars, None), (in_two_loops, [8])),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_nothing_repeats(function, blocks, static, capsys):
    got = compiled(function, blocks, static_shapes=static)(empty(M, N))
    # 400 draws of 2**31 numbers: two are equal once in 27000 seeds, and the seed is fixed.
    assert len(torch.unique(got)) == M * N
    assert "RepeatedRandomNumbers" not in capsys.readouterr().err


def test_an_outer_axis_counts_before_the_tensors_own():
    torch.manual_seed(5)
    (seed,) = next_seeds(1)
    got = compiled(row_in_a_loop, [4])(empty(M, N))
    want = helion.random.rand([N, M], seed, device=DEVICE).T
    assert torch.equal(got, want)


# -- what each call draws ------------------------------------------------------------------------


def fill(out, kind: hl.constexpr, p: float):
    for i, j in hl.tile(out.size()):
        x = hl.full([i, j], 2.0)
        if kind == "randn":
            value = torch.randn(i, j)
        elif kind == "randn_like":
            value = torch.randn_like(x)
        elif kind == "normal":
            value = torch.normal(x, p)
        elif kind == "normal_":
            value = x.normal_(1.0, p)
        elif kind == "uniform_":
            value = x.uniform_(-1, p)
        elif kind == "exponential_":
            value = x.exponential_(p)
        elif kind == "bernoulli":
            value = torch.bernoulli(x * p / 2)
        elif kind == "bernoulli_":
            value = x.bernoulli_(p)
        elif kind == "dropout":
            value = F.dropout(x, p)
        elif kind == "not training":
            value = F.dropout(x, p, training=False)
        else:
            value = torch.randint(-2, 3, [i, j]).to(torch.float32)
        out[i, j] = value
    return out


def drawn(kind, p):
    """What a call draws, from the seed that comes next."""
    (seed,) = next_seeds(1)
    unit = helion.random.rand([M, N], seed, device=DEVICE)
    normal = helion.random.randn([M, N], seed, device=DEVICE)
    return {
        "randn": normal,
        "randn_like": normal,
        "normal": 2 + p * normal,
        "normal_": 1 + p * normal,
        "uniform_": helion.random.uniform([M, N], -1, p, seed, device=DEVICE),
        "exponential_": helion.random.exponential([M, N], seed, device=DEVICE) / p,
        "bernoulli": (unit < p).float(),
        "bernoulli_": (unit < p).float(),
        "dropout": torch.where(unit >= p, 2 / (1 - p), 0.0),
        "not training": torch.full_like(unit, 2),
        "randint": helion.random.randint([M, N], -2, 3, seed, device=DEVICE).float(),
    }[kind]


KINDS = [
    *("randn", "randn_like", "normal", "normal_", "uniform_", "exponential_", "bernoulli"),
    *("bernoulli_", "dropout", "not training", "randint"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_values(kind):
    torch.manual_seed(11)
    want = drawn(kind, 0.25)
    got = compiled(fill, [4, 16])(empty(M, N), kind, 0.25)
    # Logarithms and cosines of two math libraries: a few units in the last place.
    torch.testing.assert_close(got, want, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize(("p", "value"), [(0.0, 2.0), (1.0, 0.0)])
def test_the_ends_of_dropout(p, value):
    got = compiled(fill, [4, 16])(empty(M, N), "dropout", p)
    assert torch.equal(got, torch.full_like(got, value))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_the_dtype_of_the_tensor(dtype):
    torch.manual_seed(3)
    (seed,) = next_seeds(1)
    got = compiled(like, [4, 16])(empty(M, N, dtype=dtype))
    assert torch.equal(got, helion.random.rand([M, N], seed, dtype=dtype, device=DEVICE))
    assert (got < 1).all()


# -- without helion ------------------------------------------------------------------------------


def of_each_kind(out, p: float, n: int, seed: int):
    for i, j in hl.tile(out.size()):
        drawn = hl.randint([i, j], 0, n, seed) + torch.rand([i, j])
        out[i, j] = torch.where(hl.bernoulli([i, j], p, seed), drawn, 0)
    return out


def test_a_module_that_does_not_import_helion_draws_the_same(tmp_path):
    bound = compiled(of_each_kind, [4, 16]).bind((empty(M, N), 0.5, 7, 3))
    text = bound.to_code(options=helion.OutputCodeOptions(allow_helion_deps=False))
    assert "import helion" not in text
    assert "from helion" not in text
    path = tmp_path / "alone.py"
    path.write_text(text)
    alone = runpy.run_path(str(path))["of_each_kind"]
    torch.manual_seed(1)
    want = bound(empty(M, N), 0.5, 7, 3)
    torch.manual_seed(1)
    assert torch.equal(alone(empty(M, N), 0.5, 7, 3), want)
    for wrong in ((1.5, 7, 3), (0.5, 0, 3), (0.5, 7, 2**64)):
        with pytest.raises(ValueError):  # noqa: PT011  which one is in the texts
            alone(empty(M, N), *wrong)


# -- what is refused -----------------------------------------------------------------------------


def integers(out):
    for i, j in hl.tile(out.size()):
        out[i, j] = torch.rand([i, j], dtype=torch.int32)


def generator(out, g: hl.constexpr):
    for i, j in hl.tile(out.size()):
        out[i, j] = torch.rand([i, j], generator=g)


def of_the_host(out):
    for i, j in hl.tile(out.size()):
        out[i, j] = torch.rand_like(out)


def percent(out):
    for i, j in hl.tile(out.size()):
        out[i, j] = F.dropout(out[i, j], 10)


def ragged(out, ends):
    for i in hl.tile(out.size(0)):
        for j in hl.tile(0, ends[0]):
            out[i, j] = torch.rand([i, j])


@pytest.mark.parametrize(
    ("function", "args", "error", "text"),
    [
        (integers, (), exc.ImplicitRandomDtype, "implicit RNG only supports floating-point dtypes"),
        (generator, (None,), exc.InvalidAPIUsage, "generator"),
        (of_the_host, (), exc.HostTensorDirectUsage, "`out`"),
        (percent, (), exc.ProbabilityOutOfRange, "`F.dropout`"),
        (ragged, (torch.tensor([3]),), exc.InvalidRandArgument, "read from memory"),
    ],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_mistakes_are_told_at_their_line(function, args, error, text):
    args = [a.to(DEVICE) if isinstance(a, torch.Tensor) else a for a in args]
    with pytest.raises(error, match=text) as caught:
        compiled(function, [4, 16])(empty(M, N), *args)
    assert "test_random_torch.py" in str(caught.value)
