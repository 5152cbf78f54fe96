"""Groups of token sequences that begin with one prompt, which is computed once.

Rollouts of a Task share their opening: eight of 100 + 12 tokens cost 196 positions and not 896.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tokengym.agents.service.engine.attention import Group
from tokengym.agents.service.errors import BadRequestError

Tokens = NDArray[np.int32]

MIN_SHARED = 8
"""Shorter common beginnings are computed for each sequence."""


def check_ids(what: str, ids: NDArray[np.integer[Any]], vocabulary: int) -> None:
    """Raise `BadRequestError` unless all of at least one number are tokens."""
    if ids.min() < 0 or ids.max() >= vocabulary:
        raise BadRequestError(
            f"{what} must be token ids below {vocabulary}, got {int(ids.min())} to {int(ids.max())}"
        )


@dataclass(frozen=True)
class TokenGroup:
    """Sequences of a request, by index, and the length of the prompt they begin with."""

    members: Sequence[int]
    shared: int

    def positions(self, sequences: Sequence[Tokens]) -> int:
        """Return how many positions are computed."""
        rests = sum(len(sequences[member]) - self.shared for member in self.members)
        return self.shared + rests


@dataclass(frozen=True)
class PackedBatch:
    """The positions of several groups in one row, ready for a model.

    Attributes:
        input_ids: int64 [1, N].
        position_ids: int64 [1, N].
        groups: how the positions attend.
        node_of: for each sequence, the index of each of its positions.
    """

    input_ids: torch.Tensor
    position_ids: torch.Tensor
    groups: Sequence[Group]
    node_of: dict[int, NDArray[np.int64]]


def common_length(first: Tokens, second: Tokens) -> int:
    """Return how many tokens two sequences have in common at their beginning."""
    length = min(len(first), len(second))
    if length == 0:
        return 0
    differs = first[:length] != second[:length]
    at = int(differs.argmax())
    return at if differs[at] else length


def plan(sequences: Sequence[Tokens], most: int) -> list[list[TokenGroup]]:
    """Return batches of at most `most` positions, or of one sequence, those alike side by side."""
    batches: list[list[TokenGroup]] = []
    filled = most
    for group in _grouped(sequences, most):
        size = group.positions(sequences)
        if filled + size > most:
            batches.append([])
            filled = 0
        batches[-1].append(group)
        filled += size
    return batches


def _grouped(sequences: Sequence[Tokens], most: int) -> Iterator[TokenGroup]:
    """Yield groups of at most `most` positions; a sequence joins where that saves positions."""
    members: list[int] = []
    shared = 0
    for member in sorted(range(len(sequences)), key=lambda index: sequences[index].tobytes()):
        if members:
            # Of each sequence a position is left: of equal ones the last tokens.
            common = common_length(sequences[members[0]][:-1], sequences[member][:-1])
            if len(members) > 1:
                common = min(common, shared)
            joined = TokenGroup([*members, member], common)
            saves = len(members) * common > (len(members) - 1) * shared
            if common >= MIN_SHARED and saves and joined.positions(sequences) <= most:
                members, shared = [*members, member], common
                continue
            yield TokenGroup(members, shared)
        members, shared = [member], 0
    if members:
        yield TokenGroup(members, shared)


def lay_out(
    batch: Sequence[TokenGroup], sequences: Sequence[Tokens], device: torch.device
) -> PackedBatch:
    """Lay the sequences of a batch out one after another, each prompt before its group's."""
    ids: list[Tokens] = []
    positions: list[NDArray[np.int64]] = []
    node_of: dict[int, NDArray[np.int64]] = {}
    groups: list[Group] = []
    start = 0

    def place(tokens: Tokens, first: int) -> slice:
        nonlocal start
        ids.append(tokens)
        positions.append(np.arange(first, first + len(tokens)))
        own = slice(start, start := start + len(tokens))
        return own

    for group in batch:
        prompt = place(sequences[group.members[0]][: group.shared], 0)
        rests = []
        for member in group.members:
            rests.append(own := place(sequences[member][group.shared :], group.shared))
            node_of[member] = np.r_[prompt, own]
        groups.append(Group(prompt, rests))
    row, at = np.concatenate(ids).astype(np.int64), np.concatenate(positions)
    return PackedBatch(
        torch.from_numpy(row)[None].to(device),
        torch.from_numpy(at)[None].to(device),
        groups,
        node_of,
    )
