"""The eager reference mode computes what the generated code computes, operation by operation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import philox
import pytest
import torch

import helion
import helion.language as hl
from helion import exc
from helion._testing import DEVICE

EAGER, OFF = helion.RefMode.EAGER, helion.RefMode.OFF


def eager(function, **keys):
    return helion.kernel(function, ref_mode=EAGER, **keys)


def ramp(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Distinct multiples of 1/4, so that sums of them are exact."""
    numel = int(torch.Size(shape).numel())
    return ((torch.arange(numel) * 7 % 61 - 30) / 4).to(dtype).reshape(shape).to(DEVICE)


def indices(*values: int) -> torch.Tensor:
    return torch.tensor(values, device=DEVICE)


# -- the same as generated code ------------------------------------------------------------------


def one_axis(x):
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = torch.sin(x[tile]) + tile.index
    return out


def three_axes(x, y):
    out = torch.zeros_like(x)
    for i, j, k in hl.tile(x.size()):
        out[i, j, k] = x[i, j, k] * y[j, k] + i.index[:, None, None]
    return out


def whole_rows(x):
    out = torch.empty([x.size(0)], device=x.device)
    for tile in hl.tile(x.size(0)):
        row = x[tile, :]
        out[tile] = (row - row.amax(-1, keepdim=True)).sum(-1)
    return out


def range_of_tiles(x, begin: int, end: int):
    out = torch.zeros_like(x)
    for tile in hl.tile(begin, end, block_size=4):
        out[tile] = x[tile] + tile.begin * 100 + tile.id * 10 + tile.count
    return out


def programs(x):
    out = torch.empty_like(x)
    for i, j in hl.grid([x.size(0), x.size(1)]):
        out[i, j] = x[i, j] * 2 + i - j
    return out


def rows_by_number(x):
    out = torch.empty_like(x)
    for i in hl.grid(x.size(0)):
        for tile in hl.tile(x.size(1)):
            out[i, tile] = x[i, tile] * i
    return out


def carried(x):
    m, n = x.size()
    out = torch.empty([m], device=x.device)
    for i in hl.tile(m):
        total = hl.zeros([i])
        largest = hl.full([i], float("-inf"))
        for j in hl.tile(n, block_size=8):
            total += x[i, j].sum(-1)
            largest = torch.maximum(largest, x[i, j].amax(-1))
        out[i] = total + largest
    return out


def two_loops_down(x):
    m, n = x.size()
    out = torch.zeros([m], device=x.device)
    for i in hl.tile(m):
        first = x[i, 0]
        for j in hl.tile(n, block_size=4):
            total = hl.zeros([i])
            for k in hl.tile(n, block_size=8):
                total += x[i, k].sum(-1) - first
            out[i] += total + x[i, j].sum(-1)
    return out


def registered(x):
    m, n = x.size()
    block = hl.register_block_size(n)
    out = torch.empty([m], device=x.device)
    for i in hl.tile(m):
        total = hl.zeros([i, block])
        for j in hl.tile(n, block_size=block):
            total += x[i, j]
        out[i] = total.sum(-1)
    return out


def product(x, y):
    m, k = x.size()
    n = y.size(1)
    out = torch.empty([m, n], device=x.device)
    for i, j in hl.tile([m, n]):
        acc = hl.zeros([i, j])
        for c in hl.tile(k):
            acc = hl.dot(x[i, c], y[c, j], acc=acc)
        out[i, j] = acc
    return out


def values_not_names(x):
    """`b += 1` binds a new value, and a load does not change when its place is stored to."""
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        a = x[tile]
        b = a
        b += 1
        b *= x[tile].float()
        b.add_(1)
        x[tile] = b
        out[tile] = a - b
    return out, x


def a_number_from_memory(x):
    out = torch.empty_like(x)
    for i in hl.grid(x.size(0)):
        first = x[i]
        x[i] = first + 5
        out[i] = first
    return out, x


def gathered(x, places):
    out = torch.empty([places.size(0), x.size(1)], device=x.device)
    for i, j in hl.tile(out.size()):
        out[i, j] = x[places[i], j]
    return out


def outer_product_of_indices(x, rows, columns):
    out = torch.empty([rows.size(0), columns.size(0)], device=x.device)
    for i, j in hl.tile(out.size()):
        out[i, j] = x[rows[i], columns[j]]
    return out


def indices_together(x, rows):
    m, n = rows.size()
    out = torch.empty([m, n], device=x.device)
    for i, j in hl.tile([m, n]):
        out[i, j] = x[rows[i, j], j.index[None, :]]
    return out


def scattered(x, places):
    out = torch.zeros([16], device=x.device)
    for tile in hl.tile(x.size(0)):
        out[places[tile]] = x[tile]
    return out


def neighbours(x):
    """Outside of the tensor a tile reads 0, and writes nothing."""
    out, moved = torch.zeros_like(x), torch.zeros_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = x[tile + 1] - x[tile.index - 1]
        moved[tile.index + 10] = x[tile]
    return out, moved


def one_for_all(x, y):
    out = torch.empty_like(x)
    for i, j in hl.tile(x.size()):
        out[i, j] = x[i, j] + y[i, j]
    return out


def masked(x, limit: int):
    out = torch.full_like(x, -1.0)
    for tile in hl.tile(x.size(0)):
        inside = tile.index < limit
        value = hl.load(x, [tile], extra_mask=inside)
        hl.store(out, [tile.index * 2 % 13], value, extra_mask=inside)
        hl.store(x, [tile], value + 100, extra_mask=tile.index >= limit)
    return out, x


def branches(x, n: int):
    out = torch.empty_like(x)
    for i in hl.grid(x.size(0)):
        if x[i] > 0 and i < 5:
            out[i] = 1.0
        elif i < n:
            out[i] = x[i] if i % 2 == 0 else -x[i]
        else:
            out[i] = 0.5
    return out


def two_loops(x):
    out, other = torch.empty_like(x), torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = x[tile] + 1
    for tile in hl.tile(x.size(0)):
        other[tile] = x[tile] - 1
    return out, other


def counted(x, places):
    counts = torch.zeros([4], dtype=torch.int32, device=x.device)
    for tile in hl.tile(places.size(0)):
        hl.atomic_add(counts, [places[tile]], 1)
    return counts


def counted_at_an_edge(x, n: int):
    counts = torch.zeros([6], device=x.device)
    for tile in hl.tile(n):
        hl.atomic_add(counts, [tile + 3], x[tile])
    return counts


def host_parts(x):
    """Views of the host part are views; tensors of booleans and lists index as in torch."""
    kept = x[x[:, 0] > 0][[0, 2]]
    first = x[0]
    for tile in hl.tile(first.size(0)):
        first[tile] = kept[0, tile] * 3
    x[1] += 1
    return x, kept


CASES = {  # a kernel, its arguments, its block sizes
    "one axis": (one_axis, lambda: (ramp(37),), [16]),
    "three axes": (three_axes, lambda: (ramp(5, 3, 9), ramp(3, 9)), [2, 2, 4]),
    "whole rows": (whole_rows, lambda: (ramp(7, 13),), [4]),
    "a range": (range_of_tiles, lambda: (ramp(23), 3, 18), None),
    "an empty range": (range_of_tiles, lambda: (ramp(23), 18, 3), None),
    "a grid": (programs, lambda: (ramp(3, 4),), None),
    "a grid of rows": (rows_by_number, lambda: (ramp(3, 11),), [4]),
    "carried": (carried, lambda: (ramp(6, 21),), [4]),
    "two loops down": (two_loops_down, lambda: (ramp(6, 21),), [4]),
    "registered": (registered, lambda: (ramp(6, 21),), [8, 4]),
    "hl.dot": (product, lambda: (ramp(20, 18), ramp(18, 17)), [16, 16, 16]),
    "hl.dot of halves": (
        product,
        lambda: (ramp(20, 18, dtype=torch.float16), ramp(18, 17, dtype=torch.float16)),
        [16, 16, 16],
    ),
    "values": (values_not_names, lambda: (ramp(19),), [8]),
    "values of half": (values_not_names, lambda: (ramp(19, dtype=torch.bfloat16),), [8]),
    "a number": (a_number_from_memory, lambda: (ramp(5),), None),
    "gathered": (gathered, lambda: (ramp(6, 5), indices(3, 0, 5, 5)), [2, 4]),
    "outer": (
        outer_product_of_indices,
        lambda: (ramp(6, 5), indices(3, 0), indices(1, 4, 4)),
        [2, 2],
    ),
    "together": (
        indices_together,
        lambda: (ramp(4, 3), indices(3, 0, 1, 2, 2, 0).reshape(2, 3)),
        [2, 2],
    ),
    "scattered": (scattered, lambda: (ramp(4), indices(3, 0, 15, 5)), [2]),
    "neighbours": (neighbours, lambda: (ramp(13),), [4]),
    "one for all": (one_for_all, lambda: (ramp(5, 6), ramp(5, 1)), [2, 4]),
    "masked": (masked, lambda: (ramp(13), 9), [4]),
    "branches": (branches, lambda: (ramp(7), 4), None),
    "two loops": (two_loops, lambda: (ramp(7),), [4, 4]),
    "counted": (counted, lambda: (ramp(1), indices(3, 0, 3, 3, 1)), [4]),
    "counted at an edge": (counted_at_an_edge, lambda: (ramp(5), 5), [4]),
    "host parts": (host_parts, lambda: (ramp(6, 5),), [4]),
    "no rows": (three_axes, lambda: (ramp(0, 3, 9), ramp(3, 9)), [2, 2, 4]),
    "no columns": (three_axes, lambda: (ramp(5, 3, 0), ramp(3, 0)), [2, 2, 4]),
    "sums of nothing": (carried, lambda: (ramp(6, 0),), [4]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_reference_equals_generated_code(name):
    function, arguments, blocks = CASES[name]
    config = helion.Config(block_sizes=blocks) if blocks else helion.Config()
    with torch.enable_grad():
        got = eager(function)(*arguments())
        want = helion.kernel(function, ref_mode=OFF, config=config)(*arguments())
    # The sums are exact; a sine may differ in its last bit.
    torch.testing.assert_close(got, want, rtol=2e-7, atol=0)


# -- random numbers, dtypes ----------------------------------------------------------------------


def draws(x, seed: int):
    m, n = x.size()
    out = torch.empty([m, n], device=x.device)
    for j, i in hl.tile([n, m], block_size=[4, 8]):
        out[i, j] = hl.rand([i, j], seed)
    return out


@pytest.mark.parametrize("seed", [0, -1, 2**31, 2**64 - 1])
def test_random_bits_are_those_of_philox(seed):
    want = torch.from_numpy(philox.rand_full(seed, 13, 7))
    assert torch.equal(eager(draws)(ramp(13, 7), seed).cpu(), want)


def test_a_seed_has_64_bits():
    with pytest.raises(exc.SeedOutOfRange):
        eager(draws)(ramp(13, 7), 2**64)


def bare_tile(x):
    for tile in hl.tile(x.size(0)):
        x[tile] = hl.rand(tile, seed=3)


def test_a_shape_is_a_list():
    with pytest.raises(exc.InvalidAPIUsage, match="the shape must be a list"):
        eager(bare_tile)(ramp(3))


def masked_store(x, mask):
    out = torch.zeros_like(x)
    for tile in hl.tile(x.size(0)):
        hl.store(out, [tile], hl.load(x, [tile], extra_mask=mask[tile]), extra_mask=mask[tile])
    return out


@pytest.mark.parametrize(
    "dtype", [torch.bool, torch.int8, torch.int64, torch.bfloat16, torch.float64, torch.float8_e5m2]
)
def test_masks_of_every_dtype(dtype):
    x, mask = ramp(9).to(dtype), ramp(9) > 0
    got = eager(masked_store)(x, mask)
    assert torch.equal(got.double(), x.double() * mask)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.int8])
def test_products_accumulate_wide(dtype):
    def multiply(x, y, wide: torch.dtype):
        out = torch.empty([x.size(0), y.size(1)], dtype=wide, device=x.device)
        for i, j in hl.tile(out.size()):
            out[i, j] = hl.dot(x[i, :], y[:, j])
        return out

    wide = torch.int32 if dtype is torch.int8 else torch.float32
    x, y = (ramp(16, 32) / 4).to(dtype), (ramp(32, 16) / 4).to(dtype)
    want = x.double() @ y.double()
    torch.testing.assert_close(eager(multiply)(x, y, wide).double(), want, rtol=1e-6, atol=0)


# -- what only this mode has ---------------------------------------------------------------------


def far_gather(x, places):
    out = torch.empty_like(places, dtype=x.dtype)
    for tile in hl.tile(places.size(0)):
        out[tile] = x[places[tile]]
        x[places[tile]] = -out[tile]
    return out, x


def test_gathers_are_clamped_and_stores_outside_dropped():
    out, x = eager(far_gather)(torch.arange(1.0, 5.0, device=DEVICE), indices(0, 3, 4, 99, -1))
    assert out.tolist() == [1, 4, 4, 4, 1]
    assert x.tolist() == [-1, 2, 3, -4]


def scatter(x, places, limit: int):
    out = torch.zeros([4], device=x.device)
    for tile in hl.tile(x.size(0)):
        hl.store(out, [places[tile]], x[tile], extra_mask=tile.index < limit)
    return out


def test_duplicate_indices_under_a_mask_are_an_error():
    x, places = ramp(4) + 100, indices(2, 0, 1, 2)
    assert eager(scatter)(x, places, 3).tolist() == [x[1].item(), x[2].item(), x[0].item(), 0]
    with pytest.raises(exc.DuplicateStoreIndicesError, match="more than once"):
        eager(scatter)(x, places, 4)


def shows(x):
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        print("tile", tile.begin, tile.end, x[tile].tolist())
        out[tile] = x[tile]
    return out


def test_print_prints(capsys):
    eager(shows)(torch.ones(2, device=DEVICE))
    assert capsys.readouterr().out == "tile 0 2 [1.0, 1.0]\n"


def stops(x):
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        value = x[tile] + 1
        breakpoint()
        out[tile] = value
    return out


def test_breakpoint_stops_where_it_stands(monkeypatch):
    seen = []
    monkeypatch.setattr(
        sys, "breakpointhook", lambda: seen.append(sys._getframe(1).f_locals["value"])
    )
    eager(stops)(torch.ones(2, device=DEVICE))
    assert [value.tolist() for value in seen] == [[2.0, 2.0]]


def static_steps(x):
    out = torch.zeros_like(x)
    for tile in hl.tile(x.size(0)):
        value = x[tile]
        for i in hl.static_range(1, 8, 3):
            value += i
        out[tile] = value
    return out


def test_static_range_steps():
    assert eager(static_steps)(torch.zeros(2, device=DEVICE)).tolist() == [12, 12]


def test_nothing_is_typed_compiled_or_recorded():
    def unknown(x):
        out = torch.empty_like(x)
        for tile in hl.tile(x.size(0)):
            out[tile] = torch.fft.fft(x[tile]).real  # no kernel can do this
        return out

    kernel = eager(unknown)
    x = torch.tensor([1.0, 2.0], device=DEVICE, requires_grad=True)
    out = kernel(x)
    assert out.tolist() == [3, -1]
    assert not out.requires_grad
    assert eager(one_axis)(x=x.detach() * 0).tolist() == [0, 1]


def reads_the_block_size(x):
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = x[tile] + tile.block_size
    return out


def test_a_bound_kernel_follows_the_mode():
    x = torch.zeros(8, device=DEVICE)
    config = {"block_sizes": [2]}
    bound = eager(reads_the_block_size).bind((x,))
    bound.set_config(config)
    for run in (bound, bound.run_ref, bound.compile_config(config)):
        assert run(x).tolist() == [8] * 8
    bound = helion.kernel(reads_the_block_size, ref_mode=OFF).bind((x,))
    bound.set_config(config)
    assert bound(x).tolist() == [2] * 8
    assert bound.run_ref(x).tolist() == [8] * 8


def test_a_block_size_that_is_not_followed_is_warned_about_once(capsys):
    config = helion.Config(block_sizes=[2])
    kernel = eager(reads_the_block_size, config=config)
    for _ in range(2):
        assert kernel(torch.zeros(3, device=DEVICE)).tolist() == [3, 3, 3]
    report = capsys.readouterr().err
    assert report.count("BlockSizeIgnoredInInterpretMode") == 1
    assert "[2]" in report
    silent = [exc.BlockSizeIgnoredInInterpretMode]
    eager(reads_the_block_size, config=config, ignore_warnings=silent)(ramp(3))
    eager(one_axis, config=config)(ramp(3))
    eager(reads_the_block_size)(ramp(3))
    assert not capsys.readouterr().err


def test_code_cannot_be_printed():
    with pytest.raises(exc.RefEagerModeCodePrintError):
        eager(one_axis, print_output_code=True)(ramp(3))


def test_operations_outside_of_a_kernel_are_an_error():
    with pytest.raises(exc.NotInsideKernel):
        hl.zeros([3])
    eager(one_axis)(ramp(3))
    with pytest.raises(exc.NotInsideKernel):
        hl.tile(3)


def test_a_device_is_needed():
    def nothing(n: int):
        for _ in hl.grid(n):
            pass

    with pytest.raises(exc.NoTensorArgs):
        eager(nothing)(3)


# -- the environment -----------------------------------------------------------------------------

PROGRAM = """
import torch
import helion
import helion.language as hl
from helion._testing import DEVICE, assert_ref_eager_mode, code_and_output

@helion.kernel(config=helion.Config(block_sizes=[2]))
def double(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        print(tile.begin, tile.end)
        out[tile] = x[tile] * 2
    return out

with assert_ref_eager_mode():
    code, result = code_and_output(double, (torch.ones(3, device=DEVICE),))
assert code.startswith("@helion.kernel("), code
print(result.tolist())
"""


@pytest.mark.parametrize(
    ("variables", "out", "error"),
    [
        ({}, "0 3\n[2.0, 2.0, 2.0]\n", ""),
        ({"HELION_PRINT_OUTPUT_CODE": "1"}, "", "RefEagerModeCodePrintError"),
        ({"TRITON_INTERPRET": "1"}, "", "IncompatibleInterpretModes"),
    ],
    ids=["alone", "print", "triton"],
)
def test_environment(variables, out, error, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    # What this process set, because there is no accelerator, is inherited and does no harm.
    environment = {**os.environ, "HELION_INTERPRET": "1", **variables}
    environment["PYTHONPATH"] = str(Path(__file__).parent.parent)
    run = subprocess.run(
        [sys.executable, program], env=environment, capture_output=True, text=True, check=False
    )
    assert run.stdout == out, run.stderr
    assert error in run.stderr
