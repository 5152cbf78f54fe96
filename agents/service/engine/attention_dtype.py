"""Where the order of attention's sums is the same in training, in prompts and in decoding.

Sampling and training cut their products of matrices differently. If two sums of the same terms
round to different bfloat16 numbers, all later layers differ, and log-probabilities differ by
hundredths. On a processor a product of bfloat16 matrices adds the terms of each sum one after
another in float32, whatever the other dimensions, and terms that are zero change nothing. So it is
enough that keys lie in the order of their positions, from the first one on: then scores, weights
(float32, rounded to bfloat16) and mixed values are the same bits however many queries, rows or
masked keys there are. On a GPU, and in float32, sums depend on the shape.
"""

from __future__ import annotations

import torch


def rows_round_alike(dtype: torch.dtype, device: torch.device) -> bool:
    """Return whether products of matrices of type `dtype` do not depend on how they are cut."""
    return dtype == torch.bfloat16 and device.type == "cpu"
