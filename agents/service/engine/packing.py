"""Pack token sequences so that a common prefix is computed once.

Rollouts of a group share their prompt, and prompts of a world share their first sentences. Sorted,
each sequence follows the one it has most in common with and adds only what differs: eight of
100 + 12 tokens after one prompt cost 196 positions and not 896. The model's layers see all
positions as one row; only attention keeps apart what belongs to different sequences.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tokengym.agents.service.engine.tree_attention import Block, cut_blocks
from tokengym.agents.service.errors import BadRequestError

Tokens = NDArray[np.int32]

MIN_SHARED = 8


def check_ids(what: str, ids: NDArray[np.integer[Any]], vocabulary: int) -> None:
    """Raise `BadRequestError` unless all of at least one number are tokens."""
    if ids.min() < 0 or ids.max() >= vocabulary:
        raise BadRequestError(
            f"{what} must be token ids below {vocabulary}, got {int(ids.min())} to {int(ids.max())}"
        )


@dataclass(frozen=True)
class ActivationSize:
    """Size of the activations that a backward pass keeps.

    Attributes:
        per_position: bytes for each position.
        per_pair: bytes for each pair of positions of which one attends to the other.
        queries: most positions of one block of attention; a block keeps what its mask hides too.
    """

    per_position: int
    per_pair: int
    queries: int

    def of(self, length: int, shared: int = 0) -> int:
        """Return the bytes of a sequence whose first `shared` positions are kept elsewhere."""
        own = length - shared
        pairs = own * (shared + (own + self.queries) // 2)
        return self.per_position * own + self.per_pair * pairs


@dataclass(frozen=True)
class Branch:
    """One sequence of a batch.

    Attributes:
        member: its index.
        tokens: its token ids.
        shared: leading tokens that are computed with the sequence before it in the batch.
    """

    member: int
    tokens: Tokens
    shared: int = 0


@dataclass(frozen=True)
class PackedBatch:
    """The positions of several sequences, ready for a model.

    Attributes:
        input_ids: int64 [1, N], one sequence's own positions after another's; or [B, L], padded at
            the end.
        position_ids: int64, the same shape.
        blocks: how the positions attend; None for plain causal attention within [B, L].
        node_of: for each sequence, the flat index of each of its positions.
    """

    input_ids: torch.Tensor
    position_ids: torch.Tensor
    blocks: list[Block] | None
    node_of: dict[int, NDArray[np.int64]]


def plan_shared(
    sequences: Sequence[Tokens], size: ActivationSize, memory: int
) -> Iterator[list[Branch]]:
    """Yield batches of at most `memory` bytes, or of one sequence, for `pack`."""
    batch: list[Branch] = []
    filled = 0
    for member in sorted(range(len(sequences)), key=lambda index: sequences[index].tobytes()):
        tokens = sequences[member]
        shared = _common(batch[-1].tokens, tokens) if batch else 0
        if shared < MIN_SHARED:
            shared = 0
        added = size.of(len(tokens), shared)
        if batch and filled + added > memory:
            yield batch
            batch, filled, shared, added = [], 0, 0, size.of(len(tokens))
        batch.append(Branch(member, tokens, shared))
        filled += added
    if batch:
        yield batch


def plan_padded(
    sequences: Sequence[Tokens], size: ActivationSize, memory: int
) -> Iterator[list[Branch]]:
    """Yield batches of sequences of similar length, of at most `memory` bytes, for `pad`."""
    batch: list[Branch] = []
    for member in sorted(range(len(sequences)), key=lambda index: -len(sequences[index])):
        # Sorted from long to short: the first is as long as those after it are padded to.
        if batch and size.of(len(batch[0].tokens)) * (len(batch) + 1) > memory:
            yield batch
            batch = []
        batch.append(Branch(member, sequences[member]))
    if batch:
        yield batch


def pack(batch: Sequence[Branch], device: torch.device) -> PackedBatch:
    """Lay sequences out one after another, for `tree_attention`."""
    positions: list[NDArray[np.int64]] = []
    node_of: dict[int, NDArray[np.int64]] = {}
    runs: list[tuple[NDArray[np.int64], slice]] = []
    nodes = np.empty(0, np.int64)
    start = 0
    for branch in batch:
        prefix = nodes[: branch.shared]
        own = slice(start, start := start + len(branch.tokens) - branch.shared)
        nodes = node_of[branch.member] = np.r_[prefix, own]
        runs.append((prefix, own))
        positions.append(np.arange(branch.shared, len(branch.tokens)))
    ids = np.concatenate([branch.tokens[branch.shared :] for branch in batch]).astype(np.int64)
    return PackedBatch(
        input_ids=torch.from_numpy(ids)[None].to(device),
        position_ids=torch.from_numpy(np.concatenate(positions))[None].to(device),
        blocks=cut_blocks(runs, device),
        node_of=node_of,
    )


def pad(batch: Sequence[Branch], device: torch.device) -> PackedBatch:
    """Lay sequences out side by side, for a model's own causal attention."""
    width = max(len(branch.tokens) for branch in batch)
    ids = np.zeros((len(batch), width), np.int64)
    node_of: dict[int, NDArray[np.int64]] = {}
    for line, branch in enumerate(batch):
        ids[line, : len(branch.tokens)] = branch.tokens
        node_of[branch.member] = line * width + np.arange(len(branch.tokens))
    return PackedBatch(
        input_ids=torch.from_numpy(ids).to(device),
        position_ids=torch.arange(width, device=device)[None].expand(len(batch), -1),
        blocks=None,
        node_of=node_of,
    )


def _common(first: Tokens, second: Tokens) -> int:
    length = min(len(first), len(second))
    differs = np.flatnonzero(first[:length] != second[:length])
    return int(differs[0]) if len(differs) else length
