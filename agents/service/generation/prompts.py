"""Prompts run through a model: their keys and values, and the logits that follow them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tokengym.agents.service.engine.attention import (
    AttentionState,
    Prefill,
    attending,
    hidden_states,
)
from tokengym.agents.service.engine.base_model import logits_of
from tokengym.agents.service.engine.chunk_sizes import pieces_for
from tokengym.agents.service.engine.packing import (
    ActivationSize,
    Tokens,
    pack,
    plan_padded,
    plan_shared,
)
from tokengym.agents.service.engine.tree_attention import cut_blocks
from tokengym.agents.service.generation.prefix_cache import Prefix, PrefixCache

ALONE = 128
"""Positions of a prompt that run at a time where it runs alone."""
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
        begun_tokens = [tokens[past.length :] for _, tokens, past in begun]
        for branches in plan_padded(begun_tokens, _POSITIONS, pieces_for(self.device).prefill):
            batch = [begun[branch.member] for branch in branches]
            prefixes = self._continued([(tokens, past) for _, tokens, past in batch])
            made.update(zip([key for key, _, _ in batch], prefixes, strict=True))
        for key, prefix in made.items():
            self._store.add(self._weights, missing[key][0], prefix)
        prefix_of.update(made)
        return [prefix_of[prompt.tobytes()] for prompt in prompts]

    def alone(self, prompt: Tokens) -> Prefix:
        """Return the same for one prompt, bit for bit whatever else runs or is remembered.

        It runs in pieces that begin at multiples of their size, so that what is remembered of a
        piece is what it would be computed as.
        """
        past: Prefix | None = None
        for end in (*range(ALONE, len(prompt), ALONE), len(prompt)):
            tokens = prompt[:end]
            piece = self._store.find(self._weights, tokens)
            if piece is None or piece.length < end:
                made = self._continued([(tokens, past)]) if past else self._packed([tokens])
                piece = made[0]
                self._store.add(self._weights, tokens, piece)
            past = piece
        assert past is not None, "a prompt has a token at least"
        return past

    def _packed(self, prompts: Sequence[Tokens]) -> list[Prefix]:
        """Run whole prompts, one after another; what several begin with is computed once."""
        made: dict[int, Prefix] = {}
        for branches in plan_shared(prompts, _POSITIONS, pieces_for(self.device).prefill):
            batch = pack(branches, self.device)
            assert batch.blocks is not None
            state = Prefill(batch.blocks)
            last = torch.tensor([nodes[-1] for nodes in batch.node_of.values()])
            logits = run_layers(self._model, state, batch.input_ids, batch.position_ids, last)
            states = torch.stack(state.states, dim=1)
            for line, (member, nodes) in enumerate(batch.node_of.items()):
                index = torch.from_numpy(nodes).to(self.device)
                own = states.index_select(3, index)
                made[member] = Prefix(None, len(nodes), own, logits[line].clone())
        return [made[member] for member in range(len(prompts))]

    def _continued(self, items: Sequence[tuple[Tokens, Prefix]]) -> list[Prefix]:
        """Run what follows prefixes, one after another; what they share is laid out once."""
        nodes = {id(node): node for _, past in items for node in reversed([*past.chain()])}
        place: dict[int, slice] = {}
        start = 0
        for key, node in nodes.items():
            place[key] = slice(start, start := start + node.states.shape[3])
        runs: list[tuple[NDArray[np.int64], slice]] = []
        for tokens, past in items:
            seen = np.r_[tuple(place[id(node)] for node in reversed([*past.chain()]))]
            runs.append((seen, slice(start, start := start + len(tokens) - past.length)))
        ids = np.concatenate([tokens[past.length :] for tokens, past in items]).astype(np.int64)
        at = np.concatenate([np.arange(past.length, len(tokens)) for tokens, past in items])
        state = Prefill(cut_blocks(runs, self.device), [node.states for node in nodes.values()])
        ends = np.cumsum([len(tokens) - past.length for tokens, past in items])
        row, positions = torch.from_numpy(ids)[None], torch.from_numpy(at)[None]
        logits = run_layers(self._model, state, row, positions, torch.from_numpy(ends - 1))
        states = torch.stack(state.states, dim=1).split(np.diff(ends, prepend=0).tolist(), dim=3)
        return [
            Prefix(past, len(tokens), own.contiguous(), line.clone())
            for (tokens, past), own, line in zip(items, states, logits, strict=True)
        ]


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
