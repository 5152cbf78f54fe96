"""The floating-point type of attention's sums, wide enough that their order changes no result.

Sampling and training add the same terms in different orders. If two such sums round to different
bfloat16 numbers, all later layers differ, and log-probabilities differ by hundredths. Sums in
float64 are so close that they round to the same bfloat16 number. On a processor this makes sampling
and training equal, because there each row of a product of two or more rows of bfloat16 numbers is
independent of the other rows. On a GPU rows are not independent, and float32 is enough.
"""

from __future__ import annotations

import torch

_CACHED = 1 << 17
"""How many float64 numbers fit into a processor's cache."""


def rows_round_alike(dtype: torch.dtype, device: torch.device) -> bool:
    """Return whether products of several rows of type `dtype` do not depend on their number."""
    return dtype == torch.bfloat16 and device.type == "cpu"


def sum_type(dtype: torch.dtype, device: torch.device) -> torch.dtype:
    """Return the type in which to compute attention over keys of type `dtype`."""
    return torch.float64 if rows_round_alike(dtype, device) else torch.float32


def product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return left @ right, [N, ..., m, n] @ [N, ..., n, k], in the type of `left`.

    If `right` has a smaller type, a processor converts a few entries at a time: the converted ones
    stay in its cache, and memory is read in the smaller type.
    """
    if right.dtype == left.dtype or right.device.type != "cpu":
        return left @ right.to(left.dtype)
    few = max(1, _CACHED // right[0].numel())
    parts = zip(left.split(few), right.split(few), strict=True)
    return torch.cat([rows @ entries.to(left.dtype) for rows, entries in parts])
