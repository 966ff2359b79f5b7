"""Random kernels with random configs: the generated code computes what the eager reference does.

A kernel is a text that hypothesis draws: tiles, whole axes or nested loops; pointwise operations,
broadcasts, reductions, branches and random numbers in them. A failure prints it.
"""

import importlib.util
import itertools

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

import helion

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
NUMBERS = itertools.count()

# Comparisons look at what memory or `hl.rand` holds: a rounding cannot turn them.
LEAVES = ["a", "b", "c", "r", "a * 0.5", "b + c", "torch.where(a > 0.25, b, c)", "(r < 0.5) * a"]
UNARY = [
    "-{}",
    "{}.abs()",
    "torch.tanh({})",
    "torch.exp(-({}).abs())",
    "torch.relu({})",
    "({} + 1)",
]
BINARY = ["{} + {}", "{} - {}", "{} * {}", "torch.maximum({}, {})", "torch.minimum({}, {})"]
REDUCTIONS = {
    "sum": "({}).sum(1, keepdim=True)",
    "mean": "({}).mean(-1, keepdim=True)",
    "amax": "({}).amax(1, keepdim=True)",
    "amin": "torch.amin({}, [-1], keepdim=True)",
    "var": "torch.var({}, 1, correction=0, keepdim=True)",
}
# How a loop carries a reduction on: its begin, and its step.
CARRIED = {
    "sum": ("0.0", "s + {}"),
    "amax": ("-100.0", "torch.maximum(s, {})"),
    "amin": ("100.0", "torch.minimum(s, {})"),
}

HEAD = "import torch\nimport helion\nimport helion.language as hl\n\n\n"
SIGNATURE = """\
def kernel(x, y, z, out, seed: int):
    assert out.size() == x.size()
    assert y.size(0) == x.size(1)
"""
TILES = """\
    for i, j in hl.tile(x.size()):
        a, b, c = x[i, j], y[j][None, :], z[i][:, None]
        r = hl.rand([i, j], seed)
        if seed > 3:
            v = {0} + 0 * a
        else:
            v = {1} - 0 * a
        out[i, j] = {2}
"""
ROWS = """\
    n = hl.specialize(x.size(1))
    for i in hl.tile(x.size(0)):
        a, b, c = x[i, :], y[:][None, :], z[i][:, None]
        r = hl.rand([i, n], seed)
        v = {0}
        s = {3}
        v = {1}
        out[i, :] = {2}
"""
NESTED = """\
    block = hl.register_block_size(x.size(1))
    for i in hl.tile(x.size(0)):
        c = z[i][:, None]
        s = hl.full([i, 1], {4})
        for j in hl.tile(x.size(1), block_size=block):
            a, b = x[i, j], y[j][None, :]
            r = hl.rand([i, j], seed)
            v = {0}
            s = {3}
        for j in hl.tile(x.size(1), block_size=block):
            a, b = x[i, j], y[j][None, :]
            r = hl.rand([i, j], seed)
            v = {1}
            out[i, j] = {2}
"""


@st.composite
def expressions(draw, names=(), depth=2):
    """An expression of the leaves and of `names`, of a bounded size."""
    if depth == 0:
        return draw(st.sampled_from([*LEAVES, *names]))
    if draw(st.booleans()):
        return draw(st.sampled_from(UNARY)).format(f"({draw(expressions(names, depth - 1))})")
    parts = [f"({draw(expressions(names, depth - 1))})" for _ in range(2)]
    return draw(st.sampled_from(BINARY)).format(*parts)


@st.composite
def programs(draw):
    """A kernel's text, and the number of block sizes that its config chooses."""
    shape = draw(st.sampled_from([TILES, ROWS, NESTED]))
    names = ("v",) if shape is TILES else ("v", "s")
    first, last = draw(expressions()), draw(expressions(names, 1))
    if shape is TILES:
        return SIGNATURE + shape.format(first, draw(expressions()), last), 2
    kinds = CARRIED if shape is NESTED else REDUCTIONS
    kind = draw(st.sampled_from(sorted(kinds)))
    # The row itself, so that the reduction has a row to reduce.
    reduction = REDUCTIONS[kind].format("v + 0 * a")
    second = draw(expressions(("s",)))
    if shape is ROWS:
        return SIGNATURE + shape.format(first, second, last, reduction), 1
    begin, step = CARRIED[kind]
    return SIGNATURE + shape.format(first, second, last, step.format(reduction), begin), 2


@st.composite
def configs(draw, blocks):
    """A config; what a kernel has no place for is left out."""
    sizes = draw(st.lists(st.sampled_from([1, 2, 4, 8, 32]), min_size=blocks, max_size=blocks))
    return {
        "block_sizes": sizes,
        "num_warps": draw(st.sampled_from([1, 4])),
        "pid_type": draw(st.sampled_from(["flat", "persistent_blocked", "persistent_interleaved"])),
        "indexing": draw(st.sampled_from(["pointer", "block_ptr"])),
    }


def load(text, folder):
    """The kernel of a text, which has to be in a file: its source is read again."""
    path = folder / f"property_{next(NUMBERS)}.py"
    path.write_text(HEAD + text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


def special_keys(draw, text, complete):
    """Keys that only one form of a kernel has."""
    if "for i, j" in text:
        return {
            "loop_orders": [draw(st.sampled_from([[0, 1], [1, 0]]))],
            "flatten_loops": [draw(st.booleans())],
            "l2_groupings": [draw(st.sampled_from([1, 2]))],
        }
    if "x[i, :]" in text:
        chunk = draw(st.sampled_from([None, 8]))
        return {"reduction_loops": [chunk] * len(complete["reduction_loops"])}
    return {"range_unroll_factors": [draw(st.sampled_from([0, 2])), 0]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("properties")


# Shrinking would compile hundreds of kernels; the texts are short as they are.
@settings(
    max_examples=25,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(program=programs(), m=st.integers(1, 9), n=st.integers(1, 20), data=st.data())
def test_generated_code_agrees_with_the_reference(folder, program, m, n, data):
    text, blocks = program
    static = data.draw(st.booleans())
    seed = data.draw(st.integers(-(2**40), 2**40))
    config = data.draw(configs(blocks))
    note(f"{text}\n{config}, static_shapes={static}, sizes {m}, {n}, seed {seed}")
    kernel = load(text, folder)
    torch.manual_seed(m * 100 + n)
    x, y, z = (torch.rand(s, device=DEVICE) * 4 - 2 for s in ([m, n], [n], [m]))
    got, want = torch.zeros(m, n, device=DEVICE), torch.zeros(m, n, device=DEVICE)
    bound = helion.kernel(kernel, static_shapes=static).bind((x, y, z, got, seed))
    complete = dict(config)
    bound.config_spec.normalize(complete)
    bound.set_config({**config, **special_keys(data.draw, text, complete)})
    bound(x, y, z, got, seed)
    helion.kernel(kernel, ref_mode=helion.RefMode.EAGER)(x, y, z, want, seed)
    # Sums are added in another order, and products of them grow.
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5 * (1 + float(want.abs().max())))
