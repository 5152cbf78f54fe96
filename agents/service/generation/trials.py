"""Try at start-up what an architecture and a machine can: share prompts, keep rows apart."""

import dataclasses
import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tokengym.agents.service.engine.attention_dtype import TILE
from tokengym.agents.service.engine.base_model import BaseModel
from tokengym.agents.service.engine.forward import PackedForward, score
from tokengym.agents.service.generation.decoder import LANES, Decoder, SlotDecoder
from tokengym.agents.service.generation.prefix_cache import PrefixCache

# Two ways to the same logits differ by rounding; an architecture that does not fit is far off.
# Root mean square of the difference over the logits' standard deviation, by type of the model.
TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.25}
DECODED = 4
"""Tokens decoded after each prompt."""

NewDecoder = Callable[[Any, PrefixCache, str], Decoder]
"""Makes a decoder of a model, a cache and the key of its weights."""

log = logging.getLogger(__name__)


def supports_shared_prompts(base_model: BaseModel, scoring: PackedForward) -> bool:
    """Return whether shared prompts give this model the same logits as plain attention.

    Two sequences with a common prefix are scored plainly, packed into one row, and decoded over
    shared keys. An architecture with sliding windows, attention sinks or recurrent state either
    fails or disagrees, and is then served without sharing.
    """
    layers = getattr(base_model.sampled.config, "layer_types", None) or ["full_attention"]
    if any(kind != "full_attention" for kind in layers):
        log.info("%s: layers of kinds %s, prompts are not shared", base_model.name, set(layers))
        return False
    generator = np.random.default_rng(0)
    prompt = generator.integers(0, base_model.vocabulary, min(24, base_model.context // 2))
    replies = generator.integers(0, base_model.vocabulary, (2, DECODED))
    pair = [np.concatenate([prompt, reply]).astype(np.int32) for reply in replies]
    plain = dataclasses.replace(scoring, share=False)
    try:
        expected = score(plain, pair)
        packed = score(scoring, pair)
        prompts = [prompt.astype(np.int32)] * 2
        decoded = _decoded(SlotDecoder, base_model.sampled, prompts, replies.T)[-1]
    except Exception as error:  # what an architecture raises that does not fit is its own affair
        log.info("%s: prompts are not shared: %s", base_model.name, error)
        return False
    worst = max(
        float((other - plainly.last).square().mean().sqrt() / plainly.last.std())
        for plainly, tree, row in zip(expected, packed, decoded, strict=True)
        for other in (tree.last, row)
    )
    if not worst <= TOLERANCE[base_model.dtype]:
        log.info("%s: shared prompts are off by %.3g, not used", base_model.name, worst)
        return False
    return True


def rows_are_independent(base_model: BaseModel, new_decoder: NewDecoder) -> bool:
    """Return whether a row's logits are bitwise the same at every place and beside any other rows.

    On some machines the libraries may compute a row differently at another place, and so may an
    architecture that sorts tokens by experts.

    Args:
        base_model: of an architecture that can share prompts.
        new_decoder: makes the decoder to try.
    """
    generator = np.random.default_rng(0)
    vocabulary, longest = base_model.vocabulary, base_model.context - DECODED
    lengths = [min(length, longest) for length in (3, TILE - 2, TILE + 9)]
    prompts = [generator.integers(0, vocabulary, length).astype(np.int32) for length in lengths]
    replies = generator.integers(0, vocabulary, (DECODED, len(prompts)))

    def decoded(order: list[int]) -> torch.Tensor:
        chosen = [prompts[number] for number in order]
        return _decoded(new_decoder, base_model.sampled, chosen, replies[:, order])

    alone = [decoded([number]) for number in range(len(prompts))]
    # Each first, last and in between, in full parts and in one of few rows.
    orders = ([0, 1, 2] * (LANES // 3 + 1) + [0], [2, 1, 1, 0, 2])
    return all(
        torch.equal(decoded(order), torch.cat([alone[number] for number in order], dim=1))
        for order in orders
    )


def _decoded(
    new_decoder: NewDecoder, model: Any, prompts: list[NDArray[np.int32]], tokens: NDArray[np.int64]
) -> torch.Tensor:
    """Return the logits [T, R, vocab] after each of the given tokens [T, R]."""
    decoder = new_decoder(model, PrefixCache(1 << 24), "trial")
    decoder.admit(prompts)
    return torch.stack([decoder.step(step) for step in tokens])
