"""What the author fixes or the config chooses: tunables, constants, unrolled loops, prints."""

import random

import pytest
import torch

import helion
import helion.language as hl
from helion import exc
from helion.autotuner import (
    BooleanFragment,
    EnumFragment,
    IntegerFragment,
    ListOf,
    PowerOfTwoFragment,
)
from helion.autotuner.config_fragment import EnumFragment as SameEnumFragment

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
FRAGMENTS = [
    PowerOfTwoFragment(2, 16),
    PowerOfTwoFragment(1, 64, 8),
    IntegerFragment(-1, 5, 3),
    EnumFragment([0.5, 2.0, 1.0]),
    BooleanFragment(),
    ListOf(IntegerFragment(0, 3, 1), 3),
]


def numbers(*shape):
    count = torch.Size(shape).numel()
    return torch.arange(count, dtype=torch.float32, device=DEVICE).reshape(shape)


def compiled(function, **config):
    return helion.kernel(function, config=helion.Config(**config))


def eager(function, **config):
    settings = {"ref_mode": helion.RefMode.EAGER}
    return helion.kernel(function, config=helion.Config(**config), **settings)


# -- fragments -----------------------------------------------------------------------------------


@pytest.mark.parametrize("fragment", FRAGMENTS, ids=str)
def test_every_value_of_a_fragment_is_legal(fragment):
    generator = random.Random(0)
    drawn = [fragment.random(generator) for _ in range(200)]
    assert all(map(fragment.accepts, [fragment.default(), *drawn]))
    for value in drawn:
        assert value not in fragment.neighbors(value)
        assert all(map(fragment.accepts, fragment.neighbors(value)))


def test_defaults_and_steps():
    power, integer, several, flag, row = (FRAGMENTS[i] for i in (0, 2, 3, 4, 5))
    assert [f.default() for f in FRAGMENTS] == [2, 8, 3, 0.5, False, [1, 1, 1]]
    assert power.neighbors(2) == [4]
    assert integer.neighbors(0) == [-1, 1]
    assert several.neighbors(2.0) == [0.5, 1.0]
    assert flag.neighbors(True) == [False]
    assert row.neighbors([0, 1, 3])[0] == [1, 1, 3]
    assert not any((power.accepts(3), power.accepts(True), integer.accepts(6), flag.accepts(1)))
    assert SameEnumFragment is EnumFragment


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: PowerOfTwoFragment(3, 8), "3 is no power of two"),
        (lambda: PowerOfTwoFragment(8, 4), "not in order"),
        (lambda: IntegerFragment(0, 4, 5), "not in order"),
        (lambda: EnumFragment([]), "at least one choice"),
    ],
)
def test_fragments_without_a_meaning(make, text):
    with pytest.raises(ValueError, match=text):
        make()


# -- tunables ------------------------------------------------------------------------------------


def split_sum(x, out):
    split = hl.register_tunable("split", PowerOfTwoFragment(1, 8))
    scale = hl.register_tunable("scale", EnumFragment([1.0, 0.5]))
    negate = hl.register_tunable("negate", BooleanFragment())
    part = helion.next_power_of_2(helion.cdiv(x.size(0), split))
    for outer in hl.tile(x.size(0), block_size=part):
        total = hl.zeros([], dtype=torch.float32)
        for inner in hl.tile(outer.begin, outer.end):
            total += x[inner].sum()
        if negate:
            total = -total
        hl.atomic_add(out, [0], total * scale)
        hl.atomic_add(out, [1], 1)
    return split, scale, negate


@pytest.mark.parametrize("split", [1, 4])
@pytest.mark.parametrize("negate", [False, True])
def test_tunables_are_compiled_in(split, negate):
    x = numbers(21)
    kernel = compiled(split_sum, block_sizes=[2], split=split, negate=negate, scale=0.5)
    out = torch.zeros(2, device=DEVICE)
    assert kernel(x, out) == (split, 0.5, negate)
    assert out.tolist() == [-105.0 if negate else 105.0, {1: 1, 4: 3}[split]]
    again = torch.zeros(2, device=DEVICE)
    config = {"block_sizes": [2], "split": split, "negate": negate, "scale": 0.5}
    assert eager(split_sum, **config)(x, again) == (split, 0.5, negate)
    assert torch.equal(again, out)


def test_one_kernel_runs_with_several_values():
    x, out = numbers(21), torch.zeros(2, device=DEVICE)
    bound = compiled(split_sum, block_sizes=[2]).bind((x, out))
    for split in (4, 1, 4):
        bound.set_config({"block_sizes": [2], "split": split})
        assert bound(x, out.zero_())[0] == split
        assert out.tolist() == [210.0, {1: 1, 4: 3}[split]]


def test_the_default_is_the_fragments():
    out = torch.zeros(2, device=DEVICE)
    bound = compiled(split_sum, block_sizes=[2]).bind((numbers(21), out))
    assert bound.config_spec.user_defined_tunables["split"].default() == 1
    assert bound(numbers(21), out) == (1, 1.0, False)
    assert out.tolist() == [210.0, 1.0]
    for config in ({"split": 3}, {"negate": 1}, {"scale": 2.0}):
        with pytest.raises(exc.InvalidConfig, match=next(iter(config))):
            bound.to_triton_code({"block_sizes": [2], **config})


def unrolled(x, out):
    times = hl.register_tunable("times", IntegerFragment(0, 4, 2))
    for t in hl.tile(x.size(0)):
        v = x[t]
        for i in hl.static_range(times):
            v = v + i
        out[t] = v


def test_a_tunable_unrolls_a_loop():
    for times in (0, 3):
        out = torch.zeros(5, device=DEVICE)
        compiled(unrolled, block_sizes=[4], times=times)(numbers(5), out)
        assert torch.equal(out, numbers(5) + sum(range(times)))


def on_device(x):
    for t in hl.tile(x.size(0)):
        x[t] = hl.register_tunable("a", BooleanFragment())


def no_literal(x):
    name = "a" + "b"
    hl.register_tunable(name, BooleanFragment())
    for t in hl.tile(x.size(0)):
        x[t] = 0


def no_fragment(x):
    hl.register_tunable("a", 3)
    for t in hl.tile(x.size(0)):
        x[t] = 0


def text(x):
    hl.register_tunable("a", EnumFragment(["left", "right"]))
    for t in hl.tile(x.size(0)):
        x[t] = 0


def config_key(x):
    hl.register_tunable("block_size", IntegerFragment(1, 2, 1))
    for t in hl.tile(x.size(0)):
        x[t] = 0


def twice(x):
    hl.register_tunable("a", IntegerFragment(1, 2, 1))
    hl.register_tunable("a", IntegerFragment(1, 3, 1))
    for t in hl.tile(x.size(0)):
        x[t] = 0


def symbolic(x):
    hl.register_tunable("a", IntegerFragment(1, x.size(0), 1))
    for t in hl.tile(x.size(0)):
        x[t] = 0


@pytest.mark.parametrize(
    ("kernel", "error"),
    [
        (on_device, exc.InvalidAPIUsage),
        (no_literal, exc.RegisterTunableArgTypes),
        (no_fragment, exc.RegisterTunableArgTypes),
        (text, exc.TunableTypeNotSupported),
        (config_key, exc.TunableNameConflict),
        (twice, exc.TunableNameConflict),
        (symbolic, exc.ConfigSpecFragmentWithSymInt),
    ],
)
def test_errors_of_tunables(kernel, error):
    with pytest.raises(error):
        helion.kernel(kernel, static_shapes=False).bind((numbers(5),))


# -- constants -----------------------------------------------------------------------------------


def annotated(x, out, times: hl.constexpr, name: "hl.constexpr" = "plus", shift: hl.constexpr = 1):
    for t in hl.tile(x.size(0)):
        v = x[t]
        for i in hl.static_range(times):
            v = v + i if name == "plus" else v - i
        out[t] = v + shift


def test_annotated_parameters_are_constants():
    kernel, x, out = compiled(annotated, block_sizes=[4]), numbers(5), torch.zeros(5, device=DEVICE)
    kernel(x, out, 3)
    assert torch.equal(out, x + 4)
    kernel(x, out, 4, "minus", shift=0)
    assert torch.equal(out, x - 6)
    keys = {kernel.specialization_key((x, out, n, "plus", 1)) for n in (1, 2)}
    assert len(keys) == 2


def scaled(x, out, by):
    for t in hl.tile(x.size(0)):
        for i in hl.static_range(by):
            out[t, i] = x[t] * i


def test_a_constant_at_the_call():
    kernel, x = compiled(scaled, block_sizes=[4]), numbers(5)
    for by in (2, 3):
        out = torch.zeros(5, by, device=DEVICE)
        kernel(x, out, hl.constexpr(by))
        assert torch.equal(out, x[:, None] * torch.arange(by, device=DEVICE))


def ranges(x, out):
    weights = [1.0, 10.0, 100.0, 1000.0]
    n = hl.specialize(x.size(1))
    for t in hl.tile(x.size(0)):
        parts = [x[t, 0] * 0, x[t, 0] * 0]
        for i in hl.static_range(1, n):
            parts[i % 2] = parts[i % 2] + x[t, i] * weights[i]
        for i in hl.static_range(n - 1, 0, -2):
            for j in hl.static_range(0, 4, step=2):
                parts[1] = parts[1] - x[t, i] * (i + j)
        out[t] = parts[0] + parts[1]


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
def test_static_ranges(static):
    x, out, again = numbers(5, 4), torch.zeros(5, device=DEVICE), torch.zeros(5, device=DEVICE)
    helion.kernel(ranges, config=helion.Config(block_sizes=[4]), static_shapes=static)(x, out)
    want = x[:, 1] * 10 + x[:, 2] * 100 + x[:, 3] * 1000
    for i in (3, 1):
        for j in (0, 2):
            want = want - x[:, i] * (i + j)
    # The order of additions differs.
    torch.testing.assert_close(out, want, rtol=1e-6, atol=0)
    eager(ranges)(x, again)
    torch.testing.assert_close(again, want, rtol=1e-6, atol=0)


def of_a_block(x, out):
    block = hl.register_block_size(16)
    for t in hl.tile(x.size(0), block_size=block):
        half = hl.constexpr(block // 2)
        out[t] = x[t] + half


def test_a_constant_of_a_block_size():
    x, out = numbers(9), torch.zeros(9, device=DEVICE)
    for block in (4, 8):
        compiled(of_a_block, block_sizes=[block])(x, out)
        assert torch.equal(out, x + block // 2)


def specialized(x, out):
    sizes = hl.specialize(x.shape[1:])
    hl.specialize(x.stride(0))
    for t in hl.tile(x.size(0)):
        out[t] = x[t, :].reshape(t, sizes[0] * sizes[1]).sum(1) * len(sizes)


def test_specialize_of_a_sequence():
    kernel = helion.kernel(specialized, config=helion.Config(block_sizes=[4]), static_shapes=False)
    for shape in ((5, 2, 4), (5, 3, 8), (6, 3, 8)):
        x, out = numbers(*shape), torch.zeros(shape[0], device=DEVICE)
        kernel(x, out)
        assert torch.equal(out, x.sum([1, 2]) * 2)


def inside(x):
    for t in hl.tile(x.size(0)):
        x[t] = hl.specialize(x.size(0))


def of_a_float(x):
    hl.specialize(0.5)
    for t in hl.tile(x.size(0)):
        x[t] = 0


def unknown_range(x, n: int):
    for t in hl.tile(x.size(0)):
        for i in hl.static_range(n):
            x[t] = i


@pytest.mark.parametrize(
    ("kernel", "more", "error"),
    [
        (inside, (), exc.SpecializeOnDevice),
        (of_a_float, (), exc.SpecializeArgType),
        (unknown_range, (3,), exc.InvalidAPIUsage),
    ],
)
def test_errors_of_constants(kernel, more, error):
    with pytest.raises(error):
        helion.kernel(kernel).bind((numbers(5), *more))
