"""A decoder that computes every row by itself, so that other rows do not affect its bits.

Libraries of matrix products choose their order of summation by the shape of the operands. Here the
shapes are those of the row alone, whatever else is sampled at the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from tokengym.agents.service.engine.packing import Tokens
    from tokengym.agents.service.generation.decoder import Decoder


class SoloDecoder:
    """A `Decoder` with a separate decoder for each row.

    Args:
        new_decoder: makes the decoder of a row; its cache must find whole prompts only.
    """

    def __init__(self, new_decoder: Callable[[], Decoder]) -> None:
        self._new_decoder = new_decoder
        self._rows: list[Decoder] = []

    def admit(self, prompts: Sequence[Tokens]) -> torch.Tensor:
        """See `Decoder.admit`."""
        fresh = [self._new_decoder() for _ in prompts]
        self._rows += fresh
        return torch.cat([row.admit([prompt]) for row, prompt in zip(fresh, prompts, strict=True)])

    def step(self, tokens: NDArray[np.int64]) -> torch.Tensor:
        """See `Decoder.step`."""
        return torch.cat([row.step(tokens[at : at + 1]) for at, row in enumerate(self._rows)])

    def keep(self, rows: Sequence[int]) -> None:
        """See `Decoder.keep`."""
        self._rows = [self._rows[row] for row in rows]

    def remember(self, row: int, tokens: Tokens) -> None:
        """Do nothing: keys computed in a decode step may differ in a bit from those of a prompt."""
