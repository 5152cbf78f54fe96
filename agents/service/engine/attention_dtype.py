"""The numbers in which attention multiplies and adds: such that the order of terms is of no matter.

Sampling adds the same terms in another order than training does. In bfloat16 a sum that is rounded
apart would change all later layers, and log-probabilities by hundredths. In float64 sums differ by
so little that they round to the same bfloat16 number. On a processor that decides, since there a
row of a product of bfloat16 matrices does not depend on the other rows, as long as there is another
one; on a GPU it does.
"""

from __future__ import annotations

import torch

_CACHED = 1 << 17
"""Numbers in float64 that stay in a processor's cache."""


def rows_round_alike(dtype: torch.dtype, device: torch.device) -> bool:
    """Return whether products of several rows of type `dtype` do not depend on their number."""
    return dtype == torch.bfloat16 and device.type == "cpu"


def sum_type(dtype: torch.dtype, device: torch.device) -> torch.dtype:
    """Return the type in which to compute attention over keys of type `dtype`."""
    return torch.float64 if rows_round_alike(dtype, device) else torch.float32


def product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return left @ right, [N, ..., m, n] @ [N, ..., n, k], in the type of `left`.

    Where `right` is of another type, a processor converts a few entries at a time, so that memory
    holds and gives the smaller numbers only.
    """
    if right.dtype == left.dtype or right.device.type != "cpu":
        return left @ right.to(left.dtype)
    few = max(1, _CACHED // right[0].numel())
    parts = zip(left.split(few), right.split(few), strict=True)
    return torch.cat([rows @ entries.to(left.dtype) for rows, entries in parts])
