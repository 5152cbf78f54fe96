"""Prompts run through a model: their keys and values, and the logits that follow them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tokengym.agents.service.engine.attention import (
    AttentionState,
    Continued,
    PackedPrefill,
    attending,
    hidden_states,
)
from tokengym.agents.service.engine.base_model import logits_of
from tokengym.agents.service.engine.chunk_sizes import pieces_for
from tokengym.agents.service.engine.packing import ActivationSize, pack, plan_padded, plan_shared
from tokengym.agents.service.generation.prefix_cache import Prefix, PrefixCache

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokengym.agents.service.engine.packing import Tokens

# Sampling keeps nothing for a backward pass: batches are as large as they have positions.
_POSITIONS = ActivationSize(per_position=1, per_pair=0, queries=1)


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
        prefix_of: dict[bytes, Prefix] = {}
        missing: dict[bytes, tuple[Tokens, Prefix | None]] = {}
        for prompt in prompts:
            key = prompt.tobytes()
            if key in prefix_of or key in missing:
                continue
            prefix = self._store.find(self._weights, prompt)
            if prefix is not None and prefix.length == len(prompt):
                prefix_of[key] = prefix
            else:
                missing[key] = (prompt, prefix)
        whole = [key for key, (_, past) in missing.items() if past is None]
        made = dict(zip(whole, self._packed([missing[key][0] for key in whole]), strict=True))
        begun = [(k, tokens, past) for k, (tokens, past) in missing.items() if past is not None]
        begun_tokens = [tokens for _, tokens, _ in begun]
        for branches in plan_padded(begun_tokens, _POSITIONS, pieces_for(self.device).prefill):
            batch = [begun[branch.member] for branch in branches]
            prefixes = self._continued([(tokens, past) for _, tokens, past in batch])
            made.update(zip([key for key, _, _ in batch], prefixes, strict=True))
        for key, prefix in made.items():
            self._store.add(self._weights, missing[key][0], prefix)
        prefix_of.update(made)
        return [prefix_of[prompt.tobytes()] for prompt in prompts]

    def _packed(self, prompts: Sequence[Tokens]) -> list[Prefix]:
        """Run whole prompts, one after another; what several begin with is computed once."""
        made: dict[int, Prefix] = {}
        for branches in plan_shared(prompts, _POSITIONS, pieces_for(self.device).prefill):
            batch = pack(branches, self.device)
            assert batch.blocks is not None
            state = PackedPrefill(batch.blocks)
            last = torch.tensor([nodes[-1] for nodes in batch.node_of.values()])
            logits = run_layers(self._model, state, batch.input_ids, batch.position_ids, last)
            states = torch.cat(state.states, dim=1)
            for line, (member, nodes) in enumerate(batch.node_of.items()):
                index = torch.from_numpy(nodes).to(self.device)
                own = states.index_select(3, index)
                made[member] = Prefix(None, len(nodes), own, logits[line].clone())
        return [made[member] for member in range(len(prompts))]

    def _continued(self, items: Sequence[tuple[Tokens, Prefix]]) -> list[Prefix]:
        """Run what follows prefixes, side by side."""
        pasts = [past.length for _, past in items]
        news = [len(tokens) - past for (tokens, _), past in zip(items, pasts, strict=True)]
        width, longest = max(news), max(pasts)
        ids = np.zeros((len(items), width), np.int64)
        at = np.zeros((len(items), width), np.int64)
        for line, ((tokens, _), past, new) in enumerate(zip(items, pasts, news, strict=True)):
            ids[line, :new] = tokens[past:]
            at[line, :new] = np.arange(past, past + new)
        past_seen = torch.arange(longest)[None, :] < torch.tensor(pasts)[:, None]
        causal = torch.ones(width, width, dtype=torch.bool).tril()
        seen = [
            past_seen[:, None, :].expand(-1, width, -1),
            causal[None].expand(len(items), -1, -1),
        ]
        state = Continued(
            torch.stack([_padded(past.joined(), longest) for _, past in items], dim=2),
            torch.cat(seen, dim=-1)[:, None].to(self.device),
        )
        last = torch.tensor([line * width + new - 1 for line, new in enumerate(news)])
        logits = run_layers(self._model, state, torch.from_numpy(ids), torch.from_numpy(at), last)
        states = torch.stack(state.states, dim=1)
        prefixes = []
        for line, ((tokens, parent), new) in enumerate(zip(items, news, strict=True)):
            own = states[:, :, line, :, :new].contiguous()
            prefixes.append(Prefix(parent, len(tokens), own, logits[line].clone()))
        return prefixes


def run_layers(
    model: Any, state: AttentionState, ids: torch.Tensor, at: torch.Tensor, places: torch.Tensor
) -> torch.Tensor:
    """Run tokens [R, T] at positions [R, T]; logits at `places` [M] of the R * T."""
    device = next(model.parameters()).device
    with torch.inference_mode(), attending(model, state):
        hidden = hidden_states(model, ids.to(device), at.to(device))
        return logits_of(model, hidden.flatten(0, 1)[places.to(device)])


def next_logits(prefix: Prefix) -> torch.Tensor:
    """Return the float32 logits [vocab] after a prompt."""
    assert prefix.logits is not None, "a prompt's prefix carries the logits after it"
    return prefix.logits


def _padded(tensor: torch.Tensor, length: int) -> torch.Tensor:
    """Zero-pad the second to last dimension to `length`."""
    short = length - int(tensor.shape[-2])
    return tensor if short == 0 else torch.nn.functional.pad(tensor, (0, 0, 0, short))
