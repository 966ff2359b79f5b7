"""Cross entropy with class labels: the label's logit is gathered through a flat view of the rows.

python examples/cross_entropy.py        checks against torch; on a GPU it compares the speed too
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

import helion
import helion.language as hl
from helion._testing import DEVICE, run_example


@helion.kernel()
def cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The mean over rows of `log(sum(exp(logits[i]))) - logits[i, labels[i]]`.

    Args:
        logits: floating-point tensor [n, classes].
        labels: integer tensor [n], each from 0 to `classes` - 1.

    Returns:
        Scalar tensor of the dtype of `logits`.
    """
    n, classes = logits.size()
    losses = torch.empty([n], dtype=torch.float32, device=logits.device)
    flat = logits.reshape(-1)
    for row in hl.tile(n):
        # The index is wide: the flat view may have more than 2**31 elements.
        hit = flat[row.index.to(torch.int64) * classes + labels[row]].to(torch.float32)
        values = logits[row, :].to(torch.float32)
        peak = values.amax(-1)
        total = torch.exp(values - peak[:, None]).sum(-1)
        losses[row] = torch.log(total) + peak - hit
    return losses.mean().to(logits.dtype)


def check(n: int, classes: int, dtype: torch.dtype) -> None:
    logits = torch.randn(n, classes, device=DEVICE).to(dtype) * 10
    labels = torch.randint(classes, (n,), device=DEVICE)
    expected = F.cross_entropy(logits.float(), labels).to(dtype)
    torch.testing.assert_close(cross_entropy(logits, labels), expected)
    print(f"ok  cross_entropy, {[n, classes]} {dtype}")


def main() -> None:
    check(64, 1000, torch.float32)
    check(31, 77, torch.float16)
    if DEVICE.type == "cuda":
        logits = torch.randn(8192, 32768, device=DEVICE, dtype=torch.bfloat16)
        labels = torch.randint(32768, (8192,), device=DEVICE)
        run_example(cross_entropy, F.cross_entropy, (logits, labels))


if __name__ == "__main__":
    main()
