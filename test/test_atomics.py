"""Atomic operations: against torch and the eager reference; ragged tiles, repeated indices."""

import pytest
import torch

import helion
import helion.language as hl
from helion import exc

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
INTEGERS = [torch.int32, torch.int64]
FLOATS = [torch.float32, torch.float64]
HALVES = [torch.float16, torch.bfloat16]

# What memory holds afterwards.
COMBINE = {
    "add": torch.add,
    "and": torch.bitwise_and,
    "or": torch.bitwise_or,
    "xor": torch.bitwise_xor,
    "max": torch.maximum,
    "min": torch.minimum,
    "xchg": lambda old, new: new,
}
CASES = [
    *[("add", d) for d in INTEGERS + FLOATS + HALVES],
    *[(name, d) for name in ("and", "or", "xor") for d in INTEGERS],
    *[(name, d) for name in ("max", "min", "xchg") for d in INTEGERS + FLOATS],
]


def on_device(values, dtype=torch.int32):
    return torch.tensor(values, dtype=dtype, device=DEVICE)


def small(n, dtype):
    """Small whole numbers: sums of them are exact in every dtype."""
    return torch.randint(-8, 8, [n], device=DEVICE).to(dtype)


def bits(values):
    return values.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[values.itemsize])


def compiled(function, block=4):
    return helion.kernel(function, config=helion.Config(block_sizes=[block]))


def eager(function):
    return helion.kernel(function, ref_mode=helion.RefMode.EAGER)


def combine(target, value, old, name: str):
    for t in hl.tile(value.size(0)):
        old[t] = getattr(hl, f"atomic_{name}")(target, [t], value[t])


@pytest.mark.parametrize(("name", "dtype"), CASES, ids=str)
def test_combines_and_returns_the_old_value(name, dtype):
    # Thirteen elements in blocks of four; three more must stay as they are.
    target, value = small(16, dtype), small(13, dtype)
    before, old = target.clone(), torch.zeros(13, dtype=dtype, device=DEVICE)
    compiled(combine)(target, value, old, name)
    assert torch.equal(old, before[:13])
    assert torch.equal(target[:13], COMBINE[name](before[:13], value))
    assert torch.equal(target[13:], before[13:])
    again, old_again = before.clone(), torch.zeros_like(old)
    eager(combine)(again, value, old_again, name)
    assert torch.equal(again, target)
    assert torch.equal(old_again, old)


def swap(target, expected, value, old):
    for t in hl.tile(value.size(0)):
        old[t] = hl.atomic_cas(target, [t], expected[t], value[t])


@pytest.mark.parametrize("dtype", [torch.int16, *INTEGERS, *FLOATS, *HALVES], ids=str)
def test_cas_swaps_where_the_old_value_is_expected(dtype):
    target, expected, value = (small(n, dtype) % 3 + 1 for n in (16, 13, 13))
    # What lanes past the end must not do: swap the first element, or one past the end.
    target[0] = expected[0] = 0
    # Equal as numbers; bits are compared, and those of floats differ. A NaN has its own bits.
    target[1:3], expected[1:3] = 0, -torch.zeros([], dtype=dtype)
    if dtype.is_floating_point:
        target[3] = expected[3] = float("nan")
    before, old = target.clone(), torch.zeros_like(value)
    compiled(swap)(target, expected, value, old)
    want = before.clone()
    want[:13] = torch.where(bits(before[:13]) == bits(expected), value, before[:13])
    assert torch.equal(bits(old), bits(before[:13]))
    assert torch.equal(bits(target), bits(want))
    again = before.clone()
    eager(swap)(again, expected, value, torch.zeros_like(old))
    assert torch.equal(bits(again), bits(want))


def test_lanes_past_the_end_never_swap():
    # The memory that they must not touch holds just what the lanes inside expect.
    guard = torch.zeros(16, dtype=torch.int32, device=DEVICE)
    compiled(claim, 16)(guard, 5)
    assert guard.tolist() == [7] * 5 + [0] * 11


def claim(lock, n: int):
    for t in hl.tile(n):
        hl.atomic_cas(lock, [t], 0, 7, sem="acq_rel")


def test_text_of_a_masked_cas():
    text = (
        compiled(claim, 16).bind((on_device([0] * 16), 5)).to_triton_code(output_origin_lines=False)
    )
    start = text.index("    new =")
    assert text[start : text.index("\n\n", start)] == (
        "    new = tl.full([_BLOCK_SIZE_0], 7, tl.int32)\n"
        "    expected = tl.where(t_mask, tl.full([_BLOCK_SIZE_0], 0, tl.int32), new)\n"
        "    address = tl.where(t_mask, lock + t_index, lock)\n"
        "    tl.atomic_cas(address, expected, new, sem='acq_rel')"
    )


# -- indices -------------------------------------------------------------------------------------


def histogram(counts, bucket):
    for t in hl.tile(bucket.size(0)):
        hl.atomic_add(counts, [bucket[t]], 1)


def rows(target, values, row):
    for t in hl.tile(row.size(0)):
        hl.atomic_add(target, [row[t], slice(None)], values[t, :])


def columns(target, values):
    for t in hl.tile(values.size(0)):
        hl.atomic_add(target, [2, hl.arange(5)], values[t, :].sum(0))


def scalar(target, values):
    for t in hl.tile(values.size(0)):
        hl.atomic_add(target, [], values[t, :].sum())


def shifted(target, values):
    for t in hl.tile(values.size(0)):
        hl.atomic_max(target, [t.index + 1, 0], values[t, 0])


def transposed(target, values):
    for t in hl.tile(values.size(0)):
        hl.atomic_add(target.T, [slice(0, 5), t], values[t, :].T)


def broadcast(target, values):
    for t in hl.tile(values.size(0)):
        hl.atomic_add(target, [t, slice(None)], values[t, 0][:, None])


MATRIX = [(rows, True), (columns, False), (shifted, False), (transposed, False), (broadcast, False)]


def test_repeated_indices_count_each_time():
    bucket = torch.randint(0, 3, [101], dtype=torch.int32, device=DEVICE)
    for run in (compiled(histogram, 16), eager(histogram)):
        counts = torch.zeros(4, dtype=torch.int32, device=DEVICE)
        run(counts, bucket)
        assert counts.tolist() == torch.bincount(bucket, minlength=4).tolist()


@pytest.mark.parametrize(("kernel", "gathers"), MATRIX, ids=lambda v: getattr(v, "__name__", ""))
def test_subscripts_are_those_of_stores(kernel, gathers):
    target, values = (
        small(100, torch.float32).reshape(20, 5),
        small(55, torch.float32).reshape(11, 5),
    )
    args = (values, torch.arange(11, device=DEVICE) % 4) if gathers else (values,)
    want = target.clone()
    compiled(kernel)(target, *args)
    eager(kernel)(want, *args)
    assert torch.equal(target, want)
    assert not torch.equal(target, torch.zeros_like(target))


def test_zero_dimensional_target():
    total, values = on_device(1.0, torch.float32), small(55, torch.float32).reshape(11, 5)
    compiled(scalar)(total, values)
    assert total.item() == 1 + values.sum().item()


def tickets(counter, ticket):
    for t in hl.tile(ticket.size(0)):
        first = hl.atomic_add(counter, [0], t.end - t.begin, sem="release")
        ticket[t] = first + hl.arange(t.block_size)


def test_each_program_gets_numbers_of_its_own():
    counter, ticket = on_device([0]), on_device([0] * 22)
    compiled(tickets, 8)(counter, ticket)
    assert counter.item() == 22
    assert sorted(ticket.tolist()) == list(range(22))


def guarded(lock, out):
    for t in hl.tile(out.size(1), block_size=1):
        while hl.atomic_cas(lock, [0], 0, 1, sem="acquire") != 0:
            pass
        out[0, 0] = out[0, 0] + t.begin
        hl.atomic_xchg(lock, [0], 0, sem="release")


def test_a_lock_is_waited_for():
    lock, out = on_device([0]), torch.zeros(1, 9, device=DEVICE)
    helion.kernel(guarded, config=helion.Config())(lock, out)
    assert out[0].tolist() == [36.0] + [0.0] * 8
    assert lock.item() == 0


# -- errors --------------------------------------------------------------------------------------


def into_device_value(x):
    for t in hl.tile(x.size(0)):
        hl.atomic_add(x[t], [t], 1)


def odd_sem(x):
    for t in hl.tile(x.size(0)):
        hl.atomic_or(x, [t], 1, sem="seq_cst")


def no_value(x):
    for t in hl.tile(x.size(0)):
        hl.atomic_xchg(x, [t], "one")


def wide_value(x):
    for t in hl.tile(x.size(0)):
        hl.atomic_add(x, [0], x[t])


def halves_max(x):
    for t in hl.tile(x.size(0)):
        hl.atomic_max(x, [t], 1)


@pytest.mark.parametrize(
    ("kernel", "dtype", "error", "text"),
    [
        (into_device_value, torch.int32, exc.AtomicOnDeviceTensor, "hl.atomic_add()"),
        (odd_sem, torch.int32, exc.InternalError, "hl.atomic_or` does not know sem='seq_cst'"),
        (no_value, torch.int32, exc.RequiresTensorInAssignment, "`str`"),
        (wide_value, torch.int32, exc.ShapeMismatch, "[t]"),
        (halves_max, torch.float16, exc.UnsupportedDtype, "takes int32"),
    ],
)
def test_errors(kernel, dtype, error, text):
    with pytest.raises(error) as caught:
        compiled(kernel).bind((small(8, dtype),))
    assert text in str(caught.value)
