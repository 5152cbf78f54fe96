"""Pack token sequences so that a common prefix is computed once.

A group of rollouts shares its prompt: written as one row `prompt | reply 1 | reply 2 | ...`, with
attention in which each reply sees the prompt and itself, eight sequences of 100 + 12 tokens cost
196 positions and not 896. The model's layers see all rows as one; only attention tells them apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch

from tokengym.agents.service.engine.tree_attention import cut_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tokengym.agents.service.engine.tree_attention import Block

    Tokens = NDArray[np.int32]

MIN_SHARED = 8


@dataclass(frozen=True)
class ActivationSize:
    """What a backward pass keeps.

    Attributes:
        per_position: bytes for each position.
        per_pair: bytes for each pair of positions of which one attends to the other.
        queries: most positions of one block of attention; a block keeps what its mask hides too.
    """

    per_position: int
    per_pair: int
    queries: int

    def of(self, shared: int, lengths: Sequence[int]) -> int:
        """Return the bytes of one row: sequences of `lengths` with `shared` tokens in common."""
        rests = [length - shared for length in lengths]
        pairs = sum(rest * (shared + (rest + self.queries) // 2) for rest in rests)
        pairs += shared * (shared + self.queries) // 2
        return self.per_position * (shared + sum(rests)) + self.per_pair * pairs


@dataclass
class Row:
    """Sequences laid out in one row: the shared prefix, then the rest of each.

    Attributes:
        members: indices of the sequences, in order of their rests.
        shared: number of common leading tokens.
        tokens: the row's token ids, length `length`.
        rests: start of each member's own tokens in the row.
        lengths: whole length of each member's sequence.
    """

    members: list[int]
    shared: int
    tokens: Tokens
    rests: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)

    @property
    def length(self) -> int:
        """Number of positions."""
        return len(self.tokens)


@dataclass(frozen=True)
class PackedBatch:
    """The positions of several rows, ready for a model.

    Attributes:
        input_ids: int64 [1, N], the rows one after another; or [B, L], padded at the end.
        position_ids: int64, the same shape.
        blocks: how the positions attend; None for plain causal attention within [B, L].
        node_of: for each sequence, the flat index of each of its positions.
    """

    input_ids: torch.Tensor
    position_ids: torch.Tensor
    blocks: list[Block] | None
    node_of: dict[int, NDArray[np.int64]]


def plan_rows(
    sequences: Sequence[Tokens], size: ActivationSize, memory: int, share: bool
) -> list[Row]:
    """Lay `sequences` out in rows of at most `memory` bytes, or of one sequence.

    Sequences with a common prefix share a row where that saves positions, if `share` is true.
    """
    rows: list[Row] = []
    group: list[int] = []
    shared = 0
    for index in sorted(range(len(sequences)), key=lambda index: sequences[index].tobytes()):
        common = _common(sequences[group[0]], sequences[index], shared) if share and group else 0
        # A shorter prefix makes every member's rest longer.
        saves = common >= MIN_SHARED and len(group) * common > (len(group) - 1) * shared
        lengths = [len(sequences[member]) for member in (*group, index)]
        if group and not (saves and size.of(common, lengths) <= memory):
            rows.append(_row(sequences, group, shared))
            group = []
        group.append(index)
        shared = common if len(group) > 1 else len(sequences[index])
    if group:
        rows.append(_row(sequences, group, shared))
    return rows


def batches(rows: list[Row], size: ActivationSize, memory: int) -> Iterator[list[Row]]:
    """Yield batches of rows of similar length, of at most `memory` bytes or of one row."""
    batch: list[Row] = []
    largest = 0
    for row in sorted(rows, key=lambda item: -item.length):
        # Sorted from long to short: the first row is as long as those after it are padded to.
        if batch and largest * (len(batch) + 1) > memory:
            yield batch
            batch = []
        if not batch:
            largest = size.of(row.shared, row.lengths)
        batch.append(row)
    if batch:
        yield batch


def pack(rows: list[Row], device: torch.device) -> PackedBatch:
    """Lay rows out one after another, for `tree_attention`."""
    positions: list[NDArray[np.int64]] = []
    node_of: dict[int, NDArray[np.int64]] = {}
    runs: list[tuple[slice, slice]] = []
    start = 0
    for row in rows:
        prefix = slice(start, start + row.shared)
        if row.shared:
            runs.append((slice(0, 0), prefix))
            positions.append(np.arange(row.shared))
        for member, rest, length in zip(row.members, row.rests, row.lengths, strict=True):
            own = slice(start + rest, start + rest + length - row.shared)
            runs.append((prefix if row.shared else slice(0, 0), own))
            positions.append(np.arange(row.shared, length))
            node_of[member] = np.r_[prefix, own]
        start += row.length
    ids = np.concatenate([row.tokens for row in rows]).astype(np.int64)
    return PackedBatch(
        input_ids=torch.from_numpy(ids)[None].to(device),
        position_ids=torch.from_numpy(np.concatenate(positions))[None].to(device),
        blocks=cut_blocks(runs, device),
        node_of=node_of,
    )


def pad(rows: list[Row], device: torch.device) -> PackedBatch:
    """Lay rows of one sequence each out side by side, for a model's own causal attention."""
    width = max(row.length for row in rows)
    ids = np.zeros((len(rows), width), np.int64)
    for line, row in enumerate(rows):
        ids[line, : row.length] = row.tokens
    return PackedBatch(
        input_ids=torch.from_numpy(ids).to(device),
        position_ids=torch.arange(width, device=device)[None].expand(len(rows), -1),
        blocks=None,
        node_of={
            row.members[0]: line * width + np.arange(row.length) for line, row in enumerate(rows)
        },
    )


def _common(first: Tokens, second: Tokens, limit: int) -> int:
    length = min(len(first), len(second), limit)
    differs = np.flatnonzero(first[:length] != second[:length])
    return int(differs[0]) if len(differs) else length


def _row(sequences: Sequence[Tokens], members: list[int], shared: int) -> Row:
    if len(members) == 1:
        shared = 0
    rests: list[int] = []
    at = shared
    for member in members:
        rests.append(at)
        at += len(sequences[member]) - shared
    parts = [sequences[members[0]][:shared], *(sequences[member][shared:] for member in members)]
    return Row(
        members=list(members),
        shared=shared,
        tokens=np.concatenate(parts),
        rests=rests,
        lengths=[len(sequences[member]) for member in members],
    )
