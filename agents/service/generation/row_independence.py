"""Test at start-up whether a decoder's rows depend on each other by a single bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tokengym.agents.service.engine.attention_dtype import TILE
from tokengym.agents.service.generation.decoder import LANES
from tokengym.agents.service.generation.prefix_cache import PrefixCache

if TYPE_CHECKING:
    from tokengym.agents.service.generation.decoder import Decoder

_PROBED = 4
"""Tokens decoded after each prompt."""

NewDecoder = Callable[[Any, PrefixCache, str], "Decoder"]
"""Makes a decoder of a model, a cache and the key of its weights."""


def rows_are_independent(
    model: Any, vocabulary: int, longest: int, new_decoder: NewDecoder
) -> bool:
    """Return whether a row's logits are bitwise the same at every place and beside any other rows.

    The service tries this at start-up: on some machines the libraries may compute a row differently
    at another place, and so may an architecture that sorts tokens by experts.

    Args:
        model: of an architecture that can share prompts.
        vocabulary: tokens it knows.
        longest: tokens that it can read.
        new_decoder: makes the decoder to try.
    """
    generator = np.random.default_rng(0)
    lengths = [min(length, longest - _PROBED) for length in (3, TILE - 2, TILE + 9)]
    prompts = [generator.integers(0, vocabulary, length).astype(np.int32) for length in lengths]
    replies = generator.integers(0, vocabulary, (_PROBED, len(prompts)))

    def decoded(order: list[int]) -> torch.Tensor:
        """Return the logits [T, R, vocab] after each of the given tokens."""
        decoder = new_decoder(model, PrefixCache(1 << 24, whole=True), "probe")
        decoder.admit([prompts[number] for number in order])
        return torch.stack([decoder.step(step) for step in replies[:, order]])

    alone = [decoded([number]) for number in range(len(prompts))]
    # Each first, last and in between, in full parts and in one of few rows.
    for order in ([0, 1, 2] * (LANES // 3 + 1) + [0], [2, 1, 1, 0, 2]):
        if not torch.equal(decoded(order), torch.cat([alone[n] for n in order], dim=1)):
            return False
    return True
