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


def in_order(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attend with softmax in float32, mixing values tile by tile.

    Args:
        queries: [..., m, head_dim].
        keys: [..., n, head_dim], in the order of their positions.
        values: [..., n, head_dim].
        mask: float32, added to the scaled scores [..., m, n].
        scale: factor of the scores.

    Returns:
        the output [..., m, head_dim], and the scores [..., m, at least n] that it comes from.
    """
    scores = torch.add(mask, queries @ keys.transpose(-1, -2), alpha=scale)
    width = scores.shape[-1]
    if width < _LANES:
        scores = F.pad(scores, (0, _LANES - width), value=-torch.inf)
    weights = torch.softmax(scores, dim=-1)[..., :width].to(queries.dtype)
    tiles = zip(weights.split(TILE, dim=-1), values.split(TILE, dim=-2), strict=True)
    mixed = [(part @ of).float() for part, of in tiles]
    total = mixed[0]
    for part in mixed[1:]:
        total += part
    return total.to(queries.dtype), scores
