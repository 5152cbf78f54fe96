"""Test at start-up whether a model may share the keys and values of common prompts."""

from __future__ import annotations

import dataclasses
import logging
from typing import TYPE_CHECKING

import numpy as np
import torch

from tokengym.agents.service.engine.forward import score
from tokengym.agents.service.generation.decoder import SlotDecoder
from tokengym.agents.service.generation.prefix_cache import PrefixCache

if TYPE_CHECKING:
    from tokengym.agents.service.engine.base_model import BaseModel
    from tokengym.agents.service.engine.forward import PackedForward

# Two ways to the same logits differ by rounding; an architecture that does not fit is far off.
# Root mean square of the difference over the logits' standard deviation, by type of the model.
TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.25}

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
    length = min(24, base_model.context // 2)
    prompt = generator.integers(0, base_model.vocabulary, length)
    pair = [
        np.concatenate([prompt, generator.integers(0, base_model.vocabulary, 4)]).astype(np.int32)
        for _ in range(2)
    ]
    plain = dataclasses.replace(scoring, share=False)
    try:
        expected = score(plain, pair)
        packed = score(scoring, pair)
        decoder = SlotDecoder(base_model.sampled, PrefixCache(1 << 20), "probe")
        decoded = decoder.admit([sequence[:length] for sequence in pair])
        for at in range(length, len(pair[0])):
            decoded = decoder.step(np.array([sequence[at] for sequence in pair], np.int64))
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
