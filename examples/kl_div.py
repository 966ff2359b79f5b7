"""Kullback-Leibler divergence: arguments of the host choose what is compiled.

`reduction` is a string, so only one of the branches on it is left in a kernel; `log_target` is a
`hl.constexpr`, so the same holds for it. Two registered block sizes give the tiles and the shape of
the accumulator.

    python examples/kl_div.py       checks against torch; on a GPU it also compares the speed
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

import helion
import helion.language as hl
from helion._testing import DEVICE, run_example


@helion.kernel()
def kl_div(
    log_q: torch.Tensor,
    target: torch.Tensor,
    reduction: str = "batchmean",
    log_target: hl.constexpr = False,  # pyright: ignore[reportArgumentType]
) -> torch.Tensor:
    """`p * (log(p) - log_q)`, which is 0 where `p` is 0, summed as asked.

    Args:
        log_q: tensor [rows, classes] of logarithms of probabilities.
        target: tensor [rows, classes]: the probabilities `p`, or their logarithms.
        reduction: "none"; "sum"; "batchmean", the sum divided by `rows`; "mean", by all elements.
        log_target: whether `target` holds logarithms.

    Returns:
        Tensor [rows, classes] for "none", else a scalar tensor; in the dtype of `log_q`.
    """
    rows, classes = log_q.size()
    if reduction == "none":
        losses = torch.empty_like(log_q)
    else:
        losses = torch.empty([rows], dtype=torch.float32, device=log_q.device)
    row_block = hl.register_block_size(rows)
    block = hl.register_block_size(classes)
    for row in hl.tile(rows, block_size=row_block):
        lanes = hl.zeros([row_block, block], dtype=torch.float32)
        for column in hl.tile(classes, block_size=block):
            given = target[row, column].to(torch.float32)
            if log_target:
                p, log_p = torch.exp(given), given
            else:
                p, log_p = given, torch.log(given)
            loss = torch.where(p > 0, p * (log_p - log_q[row, column].to(torch.float32)), 0.0)
            if reduction == "none":
                losses[row, column] = loss
            else:
                lanes += loss
        if reduction != "none":
            losses[row] = lanes.sum(-1)
    if reduction == "none":
        return losses
    total = losses.sum()
    if reduction == "batchmean":
        total = total / rows
    elif reduction == "mean":
        total = total / (rows * classes)
    return total.to(log_q.dtype)


def torch_kl_div(
    log_q: torch.Tensor,
    target: torch.Tensor,
    reduction: str = "batchmean",
    log_target: bool = False,
) -> torch.Tensor:
    if reduction == "mean":  # of which torch warns that it will change its meaning
        return F.kl_div(log_q, target, reduction="none", log_target=log_target).mean()
    return F.kl_div(log_q, target, reduction=reduction, log_target=log_target)


def check(rows: int, classes: int, dtype: torch.dtype) -> None:
    log_q, log_p = torch.randn(2, rows, classes, device=DEVICE).log_softmax(-1).to(dtype)
    p = torch.exp(log_p)
    p[:, 0] = 0
    for reduction in ("none", "sum", "batchmean", "mean"):
        for target, log_target in ((p, False), (log_p, True)):
            args = (log_q, target, reduction, log_target)
            expected = torch_kl_div(log_q.float(), target.float(), reduction, log_target)
            torch.testing.assert_close(kl_div(*args), expected.to(dtype))
    print(f"ok  kl_div, every reduction, {[rows, classes]} {dtype}")


def main() -> None:
    check(32, 300, torch.float32)
    check(7, 65, torch.bfloat16)
    if DEVICE.type == "cuda":
        log_q, log_p = torch.randn(2, 8192, 16384, device=DEVICE).log_softmax(-1)
        run_example(kl_div, torch_kl_div, (log_q, torch.exp(log_p)))


if __name__ == "__main__":
    main()
