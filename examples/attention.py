"""Attention without the matrix of scores in memory, forward and backward, causal or not.

The forward pass walks over blocks of keys and corrects what it summed so far whenever the maximum
of a row grows. It leaves one number per query to the backward pass, the logarithm of the sum of
exponentials, from which that computes each block of probabilities again. Everything is in powers of
two: `exp2` is one instruction on a GPU.

    python examples/attention.py      checks against torch; on a GPU it also compares the speed

Source: Dao, "FlashAttention-2: faster attention with better parallelism and work partitioning",
2023.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import torch
import torch.nn.functional as F

import helion
import helion.language as hl
from helion._testing import DEVICE, run_example

LOG2_E = math.log2(math.e)


@helion.kernel()
def attention_fwd(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, causal: hl.constexpr
) -> tuple[torch.Tensor, torch.Tensor]:
    """`softmax(q @ k.T * scale) @ v` for each head.

    Args:
        q: [H, M, D], floating-point.
        k: [H, N, D].
        v: [H, N, D].
        scale: what the scores are multiplied with; positive.
        causal: whether query i sees the keys up to i only; then M is N.

    Returns:
        The result, like `q`, and [H, M] float32, the base-2 logarithms of the sums of exponentials.
    """
    heads, m, d = q.size()
    n = k.size(1)
    d = hl.specialize(d)
    out = torch.empty_like(q)
    lse = torch.empty([heads, m], dtype=torch.float32, device=q.device)
    block = hl.register_block_size(n)
    scale = scale * LOG2_E
    for head, row in hl.tile([heads, m], block_size=[1, None]):
        h, queries = head.begin, q[head.begin, row, :]
        peak = hl.full([row], float("-inf"))
        total = hl.zeros([row])
        acc = hl.zeros([row, d])
        # Only blocks on the diagonal have scores that are masked.
        parts = ((0, row.begin, False), (row.begin, row.end, True)) if causal else ((0, n, False),)
        for begin, end, on_diagonal in parts:
            for col in hl.tile(begin, end, block_size=block):
                scores = hl.dot(queries, k[h, col, :].T)
                if on_diagonal:
                    seen = row.index[:, None] >= col.index[None, :]
                    scores = torch.where(seen, scores, float("-inf"))
                higher = torch.maximum(peak, scores.amax(-1) * scale)
                p = torch.exp2(scores * scale - higher[:, None])
                shrink = torch.exp2(peak - higher)
                total = total * shrink + p.sum(-1)
                acc = hl.dot(p.to(v.dtype), v[h, col, :], acc=acc * shrink[:, None])
                peak = higher
        out[h, row, :] = acc / total[:, None]
        lse[h, row] = peak + torch.log2(total)
    return out, lse


@helion.kernel()
def row_dots(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The dot product of each row of `x` with that of `y`: [H, M, D] twice to [H, M] float32."""
    heads, m, _ = x.size()
    out = torch.empty([heads, m], dtype=torch.float32, device=x.device)
    for head, row in hl.tile([heads, m]):
        out[head, row] = (x[head, row, :].float() * y[head, row, :].float()).sum(-1)
    return out


@helion.kernel()
def attention_bwd(
    grad: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    lse: torch.Tensor,
    delta: torch.Tensor,
    scale: float,
    causal: hl.constexpr,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The gradients by `q`, `k` and `v`: two loops, which run side by side in one launch.

    Args:
        grad: [H, M, D], the gradient by the result of `attention_fwd`.
        q: [H, M, D], and the others as in the forward pass.
        k: [H, N, D].
        v: [H, N, D].
        lse: [H, M], what the forward pass returned.
        delta: [H, M], the dot products of the rows of `grad` with those of the result.
        scale: what the scores are multiplied with.
        causal: whether query i sees the keys up to i only.

    Returns:
        Tensors like `q`, `k` and `v`.
    """
    heads, m, d = q.size()
    n = k.size(1)
    d = hl.specialize(d)
    log2_scale = scale * LOG2_E
    grad_q, grad_k, grad_v = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    for head, col in hl.tile([heads, n], block_size=[1, None]):
        h = head.begin
        keys, values = k[h, col, :], v[h, col, :]
        acc_k, acc_v = hl.zeros([col, d]), hl.zeros([col, d])
        # The scores are transposed here: what is multiplied from the left stays in registers.
        for row in hl.tile(col.begin if causal else 0, m):
            queries, grads = q[h, row, :], grad[h, row, :]
            p = torch.exp2(hl.dot(keys, queries.T) * log2_scale - lse[h, row][None, :])
            if causal:
                p = torch.where(row.index[None, :] >= col.index[:, None], p, 0.0)
            acc_v = hl.dot(p.to(grad.dtype), grads, acc=acc_v)
            grad_scores = p * (hl.dot(values, grads.T) - delta[h, row][None, :])
            acc_k = hl.dot(grad_scores.to(q.dtype), queries, acc=acc_k)
        grad_k[h, col, :] = acc_k * scale
        grad_v[h, col, :] = acc_v
    for head, row in hl.tile([heads, m], block_size=[1, None]):
        h = head.begin
        queries, grads = q[h, row, :], grad[h, row, :]
        row_lse, row_delta = lse[h, row][:, None], delta[h, row][:, None]
        acc_q = hl.zeros([row, d])
        for col in hl.tile(row.end if causal else n):
            keys = k[h, col, :]
            p = torch.exp2(hl.dot(queries, keys.T) * log2_scale - row_lse)
            if causal:
                p = torch.where(row.index[:, None] >= col.index[None, :], p, 0.0)
            grad_scores = p * (hl.dot(grads, v[h, col, :].T) - row_delta)
            acc_q = hl.dot(grad_scores.to(k.dtype), keys, acc=acc_q)
        grad_q[h, row, :] = acc_q * scale
    return grad_q, grad_k, grad_v


class Attention(torch.autograd.Function):
    """`Attention.apply(q, k, v, scale, causal)`: the kernels above, of tensors [H, N, D]."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> torch.Tensor:
        *tensors, ctx.scale, ctx.causal = args
        out, lse = attention_fwd(*args)
        ctx.save_for_backward(*tensors, out, lse)
        return out

    @staticmethod
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, grad: torch.Tensor
    ) -> tuple[torch.Tensor | None, ...]:
        q, k, v, out, lse = ctx.saved_tensors
        delta = row_dots(grad, out)
        return *attention_bwd(grad, q, k, v, lse, delta, ctx.scale, ctx.causal), None, None


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: bool = False
) -> torch.Tensor:
    """`F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)`.

    Args:
        q: [..., M, D], floating-point.
        k: [..., N, D].
        v: [..., N, D].
        is_causal: whether query i sees the keys up to i only; then M must be N.

    Returns:
        [..., M, D] of the dtype of `q`.
    """
    if is_causal and q.size(-2) != k.size(-2):
        raise ValueError(f"causal, but {q.size(-2)} queries and {k.size(-2)} keys")
    scale = q.size(-1) ** -0.5
    return Attention.apply(*(t.flatten(0, -3) for t in (q, k, v)), scale, is_causal).view(q.shape)


torch_attention = F.scaled_dot_product_attention


def check(m: int, n: int, d: int, dtype: torch.dtype, causal: bool) -> None:
    q, k, v, grad = (torch.randn(1, 2, size, d, device=DEVICE).to(dtype) for size in (m, n, n, m))
    args = q.requires_grad_(), k.requires_grad_(), v.requires_grad_()
    outs = [function(*args, is_causal=causal) for function in (attention, torch_attention)]
    results = [(out, *torch.autograd.grad(out, args, grad)) for out in outs]
    torch.testing.assert_close(*results, rtol=2e-2, atol=2e-2)  # TF32, or the dtype's own rounding
    kind = "causal" if causal else "full"
    print(f"ok  {m} queries, {n} keys, head dimension {d}, {dtype}, {kind}: result and gradients")


def main() -> None:
    check(128, 128, 64, torch.float32, causal=False)
    check(96, 70, 32, torch.float16, causal=False)
    check(100, 100, 32, torch.bfloat16, causal=True)
    if DEVICE.type == "cuda":
        qkv = torch.randn(3, 4, 32, 4096, 64, device=DEVICE, dtype=torch.bfloat16)
        for is_causal in (False, True):
            ours, theirs = (
                functools.partial(f, is_causal=is_causal) for f in (attention, torch_attention)
            )
            run_example(ours, theirs, qkv.unbind())
            run_example(ours, theirs, tuple(t.requires_grad_() for t in qkv.unbind()), bwd=True)


if __name__ == "__main__":
    main()
