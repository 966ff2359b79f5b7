"""A call that fails leaves nothing behind: no half-made cache entry, no spoiled output."""

from __future__ import annotations

import threading

import pytest
import torch

import helion
import helion.language as hl
from helion import exc
from helion._testing import DEVICE


def make_double(**settings):
    @helion.kernel(config=helion.Config(block_sizes=[8]), **settings)
    def double(x: torch.Tensor, out: torch.Tensor, seed: int, scale: hl.constexpr) -> torch.Tensor:
        assert x.size(0) < 100, "too long"
        if scale == 0:
            raise ValueError("no scale")
        if seed < 0:
            raise ValueError("negative, as only the launch can tell")
        for tile in hl.tile(x.size(0)):
            keep = hl.rand([tile], seed) >= 0
            out[tile] = torch.where(keep, x[tile] * scale, 0)
        return out

    return double


def ones(n: int = 8, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.ones(n, dtype=dtype, device=DEVICE)


def zeros(n: int = 8) -> torch.Tensor:
    return torch.zeros(n, device=DEVICE)


# Each fails at another stage: the key, the device, the host part, types, the launch.
WRONG = {
    "unsupported argument": ((ones(), ones(), 2j, 2), exc.UnsupportedArgument),
    "too many arguments": ((ones(), ones(), 7, 2, 3), exc.TooManyArguments),
    "missing argument": ((ones(), ones(), 7), TypeError),
    "another device": ((ones(), torch.ones(8, device="meta"), 7, 2), exc.DeviceMismatch),
    "failing assert": ((ones(100), ones(100), 7, 2), AssertionError),
    "host error": ((ones(), ones(), 7, 0), ValueError),
    "float seed": ((ones(), ones(), 7.0, 2), exc.SeedNotInteger),
    "complex dtype": ((ones(dtype=torch.complex64), ones(), 7, 2), exc.UnsupportedDtype),
    "raised at the launch": ((ones(), ones(), -1, 2), ValueError),
    "seed too large": ((ones(), ones(), 2**64, 2), exc.SeedOutOfRange),
}


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_call_leaves_no_trace(case, static):
    args, error = WRONG[case]
    double = make_double(static_shapes=static)
    out = torch.full([8], 5.0, device=DEVICE)
    wrong = (
        [*args[:1], out, *args[2:]]
        if args[1].shape == out.shape and args[1].device == out.device
        else args
    )
    for _ in range(2):  # the second must not find what the first left
        with pytest.raises(error):
            double(*wrong)
        assert out.tolist() == [5.0] * 8
    assert double(ones(), out, 7, 2) is out
    assert out.tolist() == [2.0] * 8
    with pytest.raises(error):
        double(*wrong)
    assert double(ones(), zeros(), 7, 3).tolist() == [3.0] * 8


def test_a_config_that_does_not_fit_changes_nothing():
    bound = make_double().bind((ones(), ones(), 7, 2))
    bound.set_config(helion.Config(block_sizes=[4]))
    for wrong in ({"block_sizes": [3]}, {"block_sizes": [4, 4]}, {"num_warps": 3}):
        with pytest.raises(exc.InvalidConfig):
            bound.set_config(wrong)
    assert bound(ones(), zeros(), 7, 2).tolist() == [2.0] * 8


def test_a_bug_of_ours_is_not_remembered(monkeypatch):
    double = make_double()
    with monkeypatch.context() as patch:

        def broken(*args):
            raise KeyError("lost")

        patch.setattr("helion.codegen.lower._lower", broken)
        with pytest.raises(exc.InternalError):
            double(ones(), zeros(), 7, 2)
    assert double(ones(), zeros(), 7, 2).tolist() == [2.0] * 8


def test_an_error_in_one_thread_does_not_disturb_the_others():
    double = make_double(static_shapes=False)
    start = threading.Barrier(6)
    results: list[object] = [None] * 6

    def call(i: int) -> None:
        start.wait()
        try:
            seed = 7.0 if i % 2 else 7  # a float seed is refused
            results[i] = double(ones(8 + i), zeros(8 + i), seed, 2).sum().item()
        except exc.SeedNotInteger as error:
            results[i] = error.code

    threads = [threading.Thread(target=call, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    right = [2.0 * (8 + i) for i in range(6)]
    assert results == [right[i] if i % 2 == 0 else "seed-not-integer" for i in range(6)]
