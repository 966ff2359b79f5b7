"""Attention with dropout on the probabilities, of which no mask is ever stored.

`hl.bernoulli` gives each probability a bit that depends on the seed and on the indices of its head,
query and key alone. The forward pass walks over keys for a block of queries. The backward pass also
walks over queries for a block of keys, with other block sizes, and draws the same mask there. With
`bits=8` one Philox call makes 16 bits of the mask, in the order in which tensor cores hold scores.

    python examples/attention_dropout.py      checks against torch; on a GPU it also compares speed

Sources: Dao, "FlashAttention-2: faster attention with better parallelism and work partitioning",
2023; Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import torch
import torch.nn.functional as F

import helion
import helion.language as hl
import helion.random
from helion._testing import DEVICE, run_example

LOG2_E = math.log2(math.e)
BITS = 8


@helion.kernel()
def attention_dropout_fwd(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, p_keep: float, scale: float, seed: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """`dropout(softmax(q @ k.T * scale)) @ v` for each head.

    Args:
        q: [H, M, D], floating-point.
        k: [H, N, D].
        v: [H, N, D].
        p_keep: the probability of keeping a probability; above 0.
        scale: what the scores are multiplied with; positive.
        seed: int, or one-element integer tensor; 64 bits.

    Returns:
        The result, like `q`, and [H, M] float32, the base-2 logarithms of the sums of exponentials.
    """
    heads, m, d = q.size()
    n = k.size(1)
    d = hl.specialize(d)
    out = torch.empty_like(q)
    lse = torch.empty([heads, m], dtype=torch.float32, device=q.device)
    scale = scale * LOG2_E
    for head, row in hl.tile([heads, m], block_size=[1, None]):
        h, queries = head.begin, q[head.begin, row, :]
        peak = hl.full([row], float("-inf"))
        total = hl.zeros([row])
        acc = hl.zeros([row, d])
        for col in hl.tile(n):
            scores = hl.dot(queries, k[h, col, :].T)
            higher = torch.maximum(peak, scores.amax(-1) * scale)
            p = torch.exp2(scores * scale - higher[:, None])
            shrink = torch.exp2(peak - higher)
            total = total * shrink + p.sum(-1)
            keep = hl.bernoulli([head, row, col], p_keep, seed, bits=BITS).squeeze(0)
            kept = torch.where(keep, p, 0.0).to(v.dtype)
            acc = hl.dot(kept, v[h, col, :], acc=acc * shrink[:, None])
            peak = higher
        out[h, row, :] = acc / (total * p_keep)[:, None]
        lse[h, row] = peak + torch.log2(total)
    return out, lse


@helion.kernel()
def attention_dropout_bwd(
    grad: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    lse: torch.Tensor,
    delta: torch.Tensor,
    p_keep: float,
    scale: float,
    seed: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The gradients by `q`, `k` and `v`: two loops, which run side by side in one launch.

    Args:
        grad: [H, M, D], the gradient by the result of `attention_dropout_fwd`.
        q: [H, M, D], and the others as in the forward pass.
        k: [H, N, D].
        v: [H, N, D].
        lse: [H, M], what the forward pass returned.
        delta: [H, M], the dot products of the rows of `grad` with those of the result.
        p_keep: the probability of keeping a probability.
        scale: what the scores are multiplied with.
        seed: that of the forward pass.

    Returns:
        Tensors like `q`, `k` and `v`.
    """
    heads, m, d = q.size()
    n = k.size(1)
    d = hl.specialize(d)
    grad_q, grad_k, grad_v = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    log2_scale, boost = scale * LOG2_E, 1 / p_keep
    for head, col in hl.tile([heads, n], block_size=[1, None]):
        h = head.begin
        keys, values = k[h, col, :], v[h, col, :]
        acc_k, acc_v = hl.zeros([col, d]), hl.zeros([col, d])
        for row in hl.tile(m):
            queries, grads = q[h, row, :], grad[h, row, :]
            p = torch.exp2(hl.dot(queries, keys.T) * log2_scale - lse[h, row][:, None])
            keep = hl.bernoulli([head, row, col], p_keep, seed, bits=BITS).squeeze(0)
            kept = torch.where(keep, p, 0.0).to(grad.dtype)
            acc_v = hl.dot(kept.T, grads, acc=acc_v)
            grad_p = torch.where(keep, hl.dot(grads, values.T), 0.0) * boost
            grad_scores = p * (grad_p - delta[h, row][:, None])
            acc_k = hl.dot(grad_scores.to(q.dtype).T, queries, acc=acc_k)
        grad_k[h, col, :] = acc_k * scale
        grad_v[h, col, :] = acc_v * boost
    for head, row in hl.tile([heads, m], block_size=[1, None]):
        h = head.begin
        queries, grads = q[h, row, :], grad[h, row, :]
        row_lse, row_delta = lse[h, row][:, None], delta[h, row][:, None]
        acc_q = hl.zeros([row, d])
        for col in hl.tile(n):
            keys = k[h, col, :]
            p = torch.exp2(hl.dot(queries, keys.T) * log2_scale - row_lse)
            keep = hl.bernoulli([head, row, col], p_keep, seed, bits=BITS).squeeze(0)
            grad_p = torch.where(keep, hl.dot(grads, v[h, col, :].T), 0.0) * boost
            acc_q = hl.dot((p * (grad_p - row_delta)).to(k.dtype), keys, acc=acc_q)
        grad_q[h, row, :] = acc_q * scale
    return grad_q, grad_k, grad_v


class AttentionDropout(torch.autograd.Function):
    """`AttentionDropout.apply(q, k, v, p_keep, scale, seed)`: the kernels, of tensors [H, N, D]."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> torch.Tensor:
        q, k, v, *ctx.rest = args
        out, lse = attention_dropout_fwd(*args)
        ctx.save_for_backward(q, k, v, out, lse)
        return out

    @staticmethod
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, grad: torch.Tensor
    ) -> tuple[torch.Tensor | None, ...]:
        q, k, v, out, lse = ctx.saved_tensors
        delta = (grad.float() * out).sum(-1)
        return *attention_dropout_bwd(grad, q, k, v, lse, delta, *ctx.rest), None, None, None


def attention_dropout(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dropout_p: float, seed: int | torch.Tensor
) -> torch.Tensor:
    """`F.scaled_dot_product_attention(q, k, v, dropout_p=dropout_p)` with the mask of a seed.

    Args:
        q: [..., M, D], floating-point.
        k: [..., N, D].
        v: [..., N, D].
        dropout_p: the probability of dropping, from 0 to below 1, in steps of 1/256.
        seed: int, or one-element integer tensor on the device; 64 bits.

    Returns:
        [..., M, D] of the dtype of `q`.
    """
    # What is kept is scaled by the probability that 8 bits can tell, not by the one asked for.
    p_keep = round((1 - dropout_p) * 2**BITS) / 2**BITS
    if not 0 < p_keep <= 1:
        raise ValueError(f"dropout_p must be from 0 to below 1, got {dropout_p}")
    heads = (t.flatten(0, -3) for t in (q, k, v))
    return AttentionDropout.apply(*heads, p_keep, q.size(-1) ** -0.5, seed).view(q.shape)


def dropped_by_torch(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, p_keep: float, seed: int
) -> torch.Tensor:
    """The same by torch, with the whole matrix of probabilities and a mask drawn outside."""
    p = torch.softmax(q.double() @ k.double().mT * q.size(-1) ** -0.5, -1)
    shape = p.flatten(0, -3).shape
    keep = helion.random.bernoulli(shape, p_keep, seed, device=p.device, bits=BITS)
    return (p * keep.view(p.shape) / p_keep) @ v.double()


def check(m: int, n: int, d: int, dtype: torch.dtype, seed: int) -> None:
    q, k, v, grad = (torch.randn(1, 2, size, d, device=DEVICE).to(dtype) for size in (m, n, n, m))
    args = [t.requires_grad_() for t in (q, k, v)]
    outs = attention_dropout(q, k, v, 0.25, seed), dropped_by_torch(q, k, v, 0.75, seed)
    results = [(o.to(dtype), *torch.autograd.grad(o, args, grad.to(o.dtype))) for o in outs]
    # A bit of the mask that differs is an error of up to 1; else there is TF32 or the dtype's own.
    torch.testing.assert_close(*results, rtol=2e-2, atol=2e-2)
    print(f"ok  {m} queries, {n} keys, head dimension {d}, {dtype}: result and gradients")


def main() -> None:
    check(128, 128, 64, torch.float32, seed=7)
    check(96, 70, 32, torch.float16, seed=-1)
    if DEVICE.type == "cuda":
        qkv = torch.randn(3, 4, 32, 4096, 64, device=DEVICE, dtype=torch.bfloat16)
        ours = functools.partial(attention_dropout, dropout_p=0.1, seed=7)
        theirs = functools.partial(F.scaled_dot_product_attention, dropout_p=0.1)
        drops_others = float("inf")
        run_example(ours, theirs, qkv.unbind(), atol=drops_others)
        args = tuple(t.requires_grad_() for t in qkv.unbind())
        run_example(ours, theirs, args, atol=drops_others, bwd=True)


if __name__ == "__main__":
    main()
