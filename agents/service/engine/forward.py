"""Run a model over packed batches of sequences, for training and for scoring.

A prompt that sequences begin with is computed once. Rollouts of a Task share their opening: eight
of 100 + 12 tokens cost 196 positions and not 896.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from tokengym.agents.execution.memory import large_blocks_apart, return_free_pages
from tokengym.agents.service.engine.attention import Group, Packed, attending, hidden_states
from tokengym.agents.service.engine.base_model import logits_of
from tokengym.agents.service.engine.memory import (
    LARGE_BATCH,
    activation_bytes,
    pieces_for,
    recomputing,
)
from tokengym.agents.service.errors import BadRequestError

Tokens = NDArray[np.int32]
Indices = NDArray[np.int64]

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


class Layout(NamedTuple):
    """The positions of several groups in one row.

    Attributes:
        ids: int64 [N].
        positions: int64 [N], in their sequences.
        groups: how the positions attend.
        node_of: for each sequence, the index of each of its positions.
    """

    ids: Indices
    positions: Indices
    groups: Sequence[Group]
    node_of: Mapping[int, Indices]


def lay_out(batch: Sequence[TokenGroup], sequences: Sequence[Tokens]) -> Layout:
    """Lay the sequences of a batch out one after another, each prompt before its group's."""
    ids: list[Tokens] = []
    positions: list[Indices] = []
    node_of: dict[int, Indices] = {}
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
    return Layout(np.concatenate(ids).astype(np.int64), np.concatenate(positions), groups, node_of)


class PackedForward:
    """How to run a model over many sequences.

    Args:
        model: a causal language model.
        memory: bytes that the activations of one batch may take; what suits the device if `None`.

    Attributes:
        model: the same.
        device: where it lives.
        size: bytes of the activations that a position keeps for the backward pass.
        recomputed: of those that it keeps if the backward pass computes layers again.
        memory: bytes that the activations of one batch may take.
        most: positions of one batch, where the memory has room for more.
        max_logits: positions whose logits are computed at once.
    """

    def __init__(self, model: Any, memory: int | None = None) -> None:
        self.model, self.device = model, model.device
        pieces = pieces_for(self.device)
        vocabulary, width = map(int, model.get_input_embeddings().weight.shape)
        layers = int(model.config.get_text_config().num_hidden_layers)
        self.size = activation_bytes(model)
        # Inputs of each layer, and activations that one of them keeps.
        self.recomputed = layers * width * int(model.dtype.itemsize) + self.size // layers
        self.memory = pieces.batch if memory is None else memory
        self.most = pieces.positions
        self.max_logits = max(1, pieces.logits // (4 * vocabulary))

    def plan(self, sequences: Sequence[Tokens]) -> list[list[TokenGroup]]:
        """Return `sequences` in batches that fit into the memory.

        For a backward pass these are the batches that take the least work. Where layers are
        computed again more sequences fit into one, so that more prompts are shared.
        """

        def batches(each: int) -> list[list[TokenGroup]]:
            return plan(sequences, min(self.memory // each, self.most))

        def work(batches: list[list[TokenGroup]]) -> int:
            """How often a position is computed: forwards, backwards twice, and maybe again."""
            sizes = [sum(group.positions(sequences) for group in batch) for batch in batches]
            return sum(size * (4 if size * self.size > self.memory else 3) for size in sizes)

        smaller = batches(self.size)
        return min(smaller, batches(self.recomputed), key=work)

    @contextmanager
    def running(
        self, groups: list[TokenGroup], sequences: Sequence[Tokens]
    ) -> Iterator[tuple[Mapping[int, Indices], torch.Tensor]]:
        """Run one batch; yields the hidden states [N, hidden], and which are those of a sequence.

        A backward pass has to be within the block. A batch that exceeds the memory keeps only what
        goes into each layer, and the backward pass computes the rest again.
        """
        batch = lay_out(groups, sequences)
        row, at = (torch.from_numpy(part)[None].to(self.device) for part in batch[:2])
        kept = self.size * row.numel()
        with ExitStack() as stack:
            if self.device.type == "cpu" and kept >= LARGE_BATCH:
                return_free_pages()
                stack.callback(return_free_pages)
            if kept > self.memory and torch.is_grad_enabled():
                stack.enter_context(recomputing(self.model))
                stack.enter_context(large_blocks_apart())
            stack.enter_context(attending(self.model, Packed(batch.groups)))
            yield batch.node_of, hidden_states(self.model, row, at).flatten(0, 1)

    def logits(
        self, hidden: torch.Tensor, nodes: Indices
    ) -> Iterator[tuple[Indices, Indices, torch.Tensor]]:
        """Compute logits at positions `nodes` [M] of `hidden` [N, hidden], a piece at a time.

        Yields for each piece the indices into `nodes` that it covers, their rows in the piece,
        and float32 logits [n, vocab]. A node that occurs several times is computed once.
        """
        distinct, row_of = np.unique(nodes, return_inverse=True)
        for start in range(0, len(distinct), self.max_logits):
            piece = torch.from_numpy(distinct[start : start + self.max_logits]).to(self.device)
            index = np.flatnonzero((row_of >= start) & (row_of < start + len(piece)))
            yield index, row_of[index] - start, logits_of(self.model, hidden[piece])


class TokenScores(NamedTuple):
    """A model's scores of one sequence of length n.

    Attributes:
        logprobs: float32 [n], of every token given those before it; the first is NaN.
        last: float32 [vocab], the logits that follow the last token.
        topk: ids and log-probabilities [n, k] of the likeliest tokens at each place, if asked for.
        targets: float32 [n - 1, K], log-probabilities of the tokens asked about at each place but
            the first, 0 where none is; None if none are asked about.
    """

    logprobs: NDArray[np.float32]
    last: torch.Tensor
    topk: tuple[NDArray[np.int32], NDArray[np.float32]] | None
    targets: NDArray[np.float32] | None


def scored(
    forward: PackedForward,
    sequences: Sequence[Tokens],
    topk: Sequence[int] = (),
    targets: Sequence[NDArray[np.int64] | None] = (),
) -> Iterator[dict[int, TokenScores]]:
    """Score sequences under a model, without gradients; yields scores a batch at a time, by index.

    Args:
        forward: runs the model.
        sequences: the sequences.
        topk: how many of the likeliest tokens to report for each, none if left out.
        targets: token ids [n - 1, K] to score at each place of a sequence but the first, -1 for
            none; None, or left out, for no such tokens.
    """
    topk, targets = topk or [0] * len(sequences), targets or [None] * len(sequences)
    for groups in forward.plan(sequences):
        # Whoever goes on between two batches has a mode of its own.
        with torch.inference_mode(), forward.running(groups, sequences) as (node_of, hidden):
            part = {
                member: _scores(
                    forward, hidden[nodes], sequences[member], topk[member], targets[member]
                )
                for member, nodes in node_of.items()
            }
        yield part


def _scores(
    forward: PackedForward,
    hidden: torch.Tensor,
    tokens: Tokens,
    topk: int,
    targets: NDArray[np.int64] | None,
) -> TokenScores:
    """Score one sequence by its hidden states [n, hidden], some places at a time."""
    following = torch.from_numpy(tokens[1:, None].astype(np.int64)).to(hidden.device)
    asked = np.empty((len(tokens) - 1, 0), np.int64) if targets is None else targets
    ids = torch.from_numpy(asked).to(hidden.device)
    rows: list[tuple[torch.Tensor, ...]] = []
    logits = hidden[:0]
    for start in range(0, len(tokens), forward.max_logits):
        places = slice(start, start + forward.max_logits)
        logits = logits_of(forward.model, hidden[places])
        logprobs = torch.log_softmax(logits[: len(following[places])], dim=-1)
        best = torch.topk(logprobs, topk, dim=-1)
        picked = logprobs.gather(-1, ids[places].clamp(min=0)).masked_fill_(ids[places] < 0, 0.0)
        own = logprobs.gather(-1, following[places])[:, 0]
        rows.append((own, best.indices.int(), best.values, picked))
    values, best_ids, best_values, of_targets = (
        torch.cat(parts).cpu().numpy() for parts in zip(*rows, strict=True)
    )
    # The first token has nothing before it: the SDK reads (0, -99999) as "not computed".
    before = ((1, 0), (0, 0))
    likeliest = np.pad(best_ids, before), np.pad(best_values, before, constant_values=-99999.0)
    return TokenScores(
        np.append(np.float32(np.nan), values),
        logits[-1].clone(),
        likeliest if topk else None,
        None if targets is None else of_targets,
    )
