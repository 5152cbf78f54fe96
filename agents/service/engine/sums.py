"""The numbers in which attention multiplies and adds: such that the order of terms is of no matter.

Sampling adds the same terms in another order than training does. In bfloat16 a sum that is rounded
apart would change all later layers, and log-probabilities by hundredths. In float64 sums differ by
so little that they round to the same bfloat16 number. On a processor that decides, since there
products of bfloat16 matrices do not depend on the number of rows; on a GPU they do.
"""

from __future__ import annotations

import torch

_CACHED = 1 << 17
"""Numbers in float64 that stay in a processor's cache."""


def sum_type(dtype: torch.dtype, device: torch.device) -> torch.dtype:
    """Return the type in which to compute attention over keys of type `dtype`."""
    exact = dtype == torch.bfloat16 and device.type == "cpu"
    return torch.float64 if exact else torch.float32


def product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return left @ right, [N, ..., m, n] @ [N, ..., n, k], in the type of `left`.

    Where `right` is of another type, a processor converts a few entries at a time, so that memory
    holds and gives the smaller numbers only.
    """
    if right.dtype == left.dtype or right.device.type != "cpu":
        return left @ right.to(left.dtype)
    few = max(1, _CACHED // right[0].numel())
    parts = zip(left.split(few), right.split(few), strict=True)
    return torch.cat([one @ other.to(left.dtype) for one, other in parts])
