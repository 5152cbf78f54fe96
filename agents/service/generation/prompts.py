"""Prompts run through a model: their keys and values, and the logits that follow them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tokengym.agents.service.engine.attention import (
    AttentionState,
    Prefill,
    attending,
    hidden_states,
)
from tokengym.agents.service.engine.base_model import logits_of
from tokengym.agents.service.engine.pieces import pieces_for
from tokengym.agents.service.generation.prefix_cache import Prefix, PrefixCache

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokengym.agents.service.engine.packing import Tokens


class Prompts:
    """The prompts of one set of weights, remembered as long as the cache has room.

    Args:
        model: runs with these weights.
        store: holds what was computed.
        weights: their key.

    Attributes:
        device: of the model.
    """

    def __init__(self, model: Any, store: PrefixCache, weights: str) -> None:
        self._model = model
        self._store = store
        self._weights = weights
        self.device = next(model.parameters()).device

    def add(self, tokens: Tokens, prefix: Prefix) -> None:
        """Remember the keys and values of a token sequence."""
        self._store.add(self._weights, tokens, prefix)

    def prefixes(self, prompts: Sequence[Tokens]) -> list[Prefix]:
        """Return keys, values and next logits of prompts; each distinct one is computed once."""
        found: dict[bytes, Prefix] = {}
        missing: dict[bytes, tuple[Tokens, Prefix | None]] = {}
        for prompt in prompts:
            key = prompt.tobytes()
            if key in found or key in missing:
                continue
            prefix = self._store.find(self._weights, prompt)
            if prefix is not None and prefix.length == len(prompt):
                found[key] = prefix
            else:
                missing[key] = (prompt, prefix)
        # Alike in length, those without a past first: a batch is either all with or all without.
        order = sorted(missing, key=lambda key: (missing[key][1] is not None, len(missing[key][0])))
        batches: list[list[bytes]] = []
        for key in order:
            if not batches or self._full([missing[k] for k in [*batches[-1], key]]):
                batches.append([])
            batches[-1].append(key)
        for batch in batches:
            made = self._prefill([missing[key] for key in batch])
            for key, prefix in zip(batch, made, strict=True):
                found[key] = prefix
                self._store.add(self._weights, missing[key][0], prefix)
        return [found[prompt.tobytes()] for prompt in prompts]

    def _full(self, items: list[tuple[Tokens, Prefix | None]]) -> bool:
        mixed = (items[0][1] is None) != (items[-1][1] is None)
        positions = max(len(tokens) for tokens, _ in items) * len(items)
        return mixed or positions > pieces_for(self.device).prefill

    def _prefill(self, items: list[tuple[Tokens, Prefix | None]]) -> list[Prefix]:
        pasts = [0 if past is None else past.length for _, past in items]
        news = [len(tokens) - past for (tokens, _), past in zip(items, pasts, strict=True)]
        width = max(news)
        ids = np.zeros((len(items), width), np.int64)
        at = np.zeros((len(items), width), np.int64)
        for line, ((tokens, _), past, new) in enumerate(zip(items, pasts, news, strict=True)):
            ids[line, :new] = tokens[past:]
            at[line, :new] = np.arange(past, past + new)
        state = Prefill()
        if max(pasts):
            joined = [past.joined() for _, past in items if past is not None]
            longest = max(pasts)
            state.past_keys = torch.stack([_padded(keys, longest) for keys, _ in joined], dim=1)
            state.past_values = torch.stack([_padded(vals, longest) for _, vals in joined], dim=1)
            past_seen = torch.arange(longest)[None, :] < torch.tensor(pasts)[:, None]
            causal = torch.ones(width, width, dtype=torch.bool).tril()
            state.mask = torch.cat(
                [
                    past_seen[:, None, :].expand(-1, width, -1),
                    causal[None].expand(len(items), -1, -1),
                ],
                dim=-1,
            )[:, None].to(self.device)
        last = torch.tensor([line * width + new - 1 for line, new in enumerate(news)])
        logits = run_layers(self._model, state, torch.from_numpy(ids), torch.from_numpy(at), last)
        keys, values = torch.stack(state.keys), torch.stack(state.values)
        return [
            Prefix(
                past,
                len(tokens),
                keys[:, line, :, :new].contiguous(),
                values[:, line, :, :new].contiguous(),
                logits[line].clone(),
            )
            for line, ((tokens, past), new) in enumerate(zip(items, news, strict=True))
        ]


def run_layers(
    model: Any, state: AttentionState, ids: torch.Tensor, at: torch.Tensor, wanted: torch.Tensor
) -> torch.Tensor:
    """Run tokens [R, T] at positions [R, T]; logits at `wanted` of the R * T places."""
    device = next(model.parameters()).device
    with torch.inference_mode(), attending(model, state):
        hidden = hidden_states(model, ids.to(device), at.to(device))
        return logits_of(model, hidden.flatten(0, 1)[wanted.to(device)])


def next_logits(prefix: Prefix) -> torch.Tensor:
    """Return the float32 logits [vocab] after a prompt."""
    assert prefix.logits is not None, "a prompt's prefix carries the logits after it"
    return prefix.logits


def _padded(tensor: torch.Tensor, length: int) -> torch.Tensor:
    """Zero-pad the second to last dimension to `length`."""
    short = length - int(tensor.shape[-2])
    return tensor if short == 0 else torch.nn.functional.pad(tensor, (0, 0, 0, short))
