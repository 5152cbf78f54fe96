"""Attention whose sums have one order in training, in prompts and in decoding.

Sampling and training cut their products of matrices differently. If two sums of the same terms
round to different bfloat16 numbers, all later layers differ, and log-probabilities differ by
hundredths. On a processor a product of bfloat16 matrices adds up to 512 terms one after another in
float32, whatever its other dimensions, and zeros change nothing. So if keys lie in the order of
their positions, from the first one on, scores are the same bits however many queries, rows or
masked keys there are, and so are values that are mixed in tiles of fixed size. On a GPU, in
float32, and with a matrix unit (Intel's AMX), sums depend on the shape; `--deterministic` leaves
the matrix unit alone.
"""

import torch
import torch.nn.functional as F

TILE = 256
"""Keys whose values are mixed in one product."""
_LANES = 16
"""Narrower rows are summed in another order by a softmax with vectors."""


def rows_round_alike(dtype: torch.dtype, device: torch.device) -> bool:
    """Return whether products of matrices of type `dtype` do not depend on how they are cut."""
    return dtype == torch.bfloat16 and device.type == "cpu"


def attention_weights(scores: torch.Tensor, mask: torch.Tensor, scale: float) -> torch.Tensor:
    """Return softmax(scale * scores + mask) over the last dimension, in float32."""
    scores = torch.add(mask, scores, alpha=scale)
    width = scores.shape[-1]
    if width < _LANES:
        scores = F.pad(scores, (0, _LANES - width), value=-torch.inf)
    return torch.softmax(scores, dim=-1)[..., :width]


def mixed_values(weights: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Return weights @ values, [N, m, n] @ [N, n, k]; tile by tile if rows round alike."""
    if not rows_round_alike(values.dtype, values.device):
        return weights @ values
    tiles = zip(weights.split(TILE, dim=-1), values.split(TILE, dim=-2), strict=True)
    return added([part @ of for part, of in tiles])


def added(parts: list[torch.Tensor]) -> torch.Tensor:
    """Return the sum of tiles in float32, one after another."""
    total = parts[0].float()
    for part in parts[1:]:
        total += part
    return total
