"""Pack token sequences so that a common prefix is computed once.

A group of rollouts shares its prompt: written as one row `prompt | reply 1 | reply 2 | ...`, with
an attention mask under which each reply sees the prompt and itself, eight sequences of 100 + 12
tokens cost 196 positions and not 896. Rows without a shared prefix are plain padded rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Tokens = NDArray[np.int32]

MIN_SHARED = 8


@dataclass(frozen=True)
class CostModel:
    """Cost of a row in multiply-adds, up to a constant: a linear and a quadratic term."""

    per_token: float
    per_pair: float

    def row(self, length: int) -> float:
        """Return the cost of one row of `length` positions."""
        return self.per_token * length + self.per_pair * length * length


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


@dataclass
class PackedBatch:
    """Rows padded to one length, ready for a model.

    Attributes:
        rows: the rows.
        input_ids: int64 [B, L].
        position_ids: int64 [B, L], or None when every row is one plain sequence.
        mask: float [B, 1, L, L], 0 where a position may look and very negative elsewhere; None
            when every row is one plain sequence (then plain causal attention is right, because
            padding comes last).
        nodes: int64 [N], flat indices of the positions that hold a token.
        node_of: for each sequence, index into `nodes` of each of its positions.
    """

    rows: list[Row]
    input_ids: torch.Tensor
    position_ids: torch.Tensor | None
    mask: torch.Tensor | None
    nodes: torch.Tensor
    node_of: dict[int, NDArray[np.int64]]


def plan_rows(sequences: Sequence[Tokens], cost: CostModel, share: bool) -> list[Row]:
    """Lay `sequences` out in rows, grouping those with a common prefix where that is cheaper."""
    if not share:
        return [_row(sequences, [index], 0) for index in range(len(sequences))]
    order = sorted(range(len(sequences)), key=lambda index: sequences[index].tobytes())
    rows: list[Row] = []
    group: list[int] = []
    shared = 0
    for index in order:
        if group:
            common = _common(sequences[group[0]], sequences[index], shared)
            if common >= MIN_SHARED and _is_cheaper(sequences, group, index, shared, common, cost):
                group.append(index)
                shared = common
                continue
            rows.append(_row(sequences, group, shared if len(group) > 1 else 0))
        group = [index]
        shared = len(sequences[index])
    if group:
        rows.append(_row(sequences, group, shared if len(group) > 1 else 0))
    return rows


def batches(rows: list[Row], max_positions: int) -> Iterator[list[Row]]:
    """Yield batches of rows of similar length, at most `max_positions` padded positions each."""
    batch: list[Row] = []
    for row in sorted(rows, key=lambda item: -item.length):
        # Sorted from long to short, so the first row sets the padded length.
        if batch and batch[0].length * (len(batch) + 1) > max_positions:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def pack(rows: list[Row], device: torch.device, dtype: torch.dtype = torch.float32) -> PackedBatch:
    """Build the tensors of one batch."""
    width = max(row.length for row in rows)
    ids = np.zeros((len(rows), width), np.int64)
    positions = np.zeros((len(rows), width), np.int64)
    segment = np.full((len(rows), width), -1, np.int64)
    node_of: dict[int, NDArray[np.int64]] = {}
    nodes: list[NDArray[np.int64]] = []
    start = 0
    for line, row in enumerate(rows):
        ids[line, : row.length] = row.tokens
        positions[line, : row.shared] = np.arange(row.shared)
        segment[line, : row.shared] = 0
        prefix = np.arange(row.shared)
        for order, (member, rest, length) in enumerate(
            zip(row.members, row.rests, row.lengths, strict=True)
        ):
            own = np.arange(rest, rest + length - row.shared)
            positions[line, own] = np.arange(row.shared, length)
            segment[line, own] = order + 1
            node_of[member] = start + np.concatenate([prefix, own])
        nodes.append(line * width + np.arange(row.length))
        start += row.length
    shares = any(len(row.members) > 1 for row in rows)
    flat = torch.from_numpy(np.concatenate(nodes)).to(device)
    return PackedBatch(
        rows=rows,
        input_ids=torch.from_numpy(ids).to(device),
        position_ids=torch.from_numpy(positions).to(device) if shares else None,
        mask=_tree_mask(torch.from_numpy(segment).to(device), dtype) if shares else None,
        nodes=flat,
        node_of=node_of,
    )


def _tree_mask(segment: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    _, width = segment.shape
    query, key = segment[:, :, None], segment[:, None, :]
    earlier = torch.ones(width, width, dtype=torch.bool, device=segment.device).tril()
    sees = ((key == 0) | (key == query)) & (key >= 0) & earlier
    # A padded position must see something, or its softmax is not a number.
    sees |= torch.eye(width, dtype=torch.bool, device=segment.device)
    mask = torch.zeros(sees.shape, dtype=dtype, device=segment.device)
    mask.masked_fill_(~sees, torch.finfo(dtype).min)
    return mask.unsqueeze(1)


def _common(first: Tokens, second: Tokens, limit: int) -> int:
    length = min(len(first), len(second), limit)
    differs = np.flatnonzero(first[:length] != second[:length])
    return int(differs[0]) if len(differs) else length


def _is_cheaper(
    sequences: Sequence[Tokens],
    group: list[int],
    index: int,
    shared: int,
    common: int,
    cost: CostModel,
) -> bool:
    # Marginal: a sequence joins when the longer row costs less than the row as it is and one more.
    total = sum(len(sequences[member]) for member in group)
    now = total - (len(group) - 1) * shared
    alone = len(sequences[index])
    joined = total + alone - len(group) * common
    return cost.row(joined) < cost.row(now) + cost.row(alone)


def _row(sequences: Sequence[Tokens], members: list[int], shared: int) -> Row:
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
