"""Run a model over packed batches of sequences, for training and for scoring."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from tokengym.agents.execution.memory import return_free_pages
from tokengym.agents.service.engine.attention import Packed, attending, hidden_states
from tokengym.agents.service.engine.base_model import logits_of
from tokengym.agents.service.engine.chunk_sizes import pieces_for
from tokengym.agents.service.engine.groups import PackedBatch, TokenGroup, Tokens, lay_out, plan
from tokengym.agents.service.engine.memory import LARGE_BATCH, activation_bytes, recomputing


@dataclass(frozen=True)
class PackedForward:
    """How to run a model over many sequences.

    Attributes:
        model: a causal language model with plain (`sdpa` or `eager`) attention.
        device: where it lives.
        share: whether sequences are packed, and their prompts computed once; else each runs alone.
        size: bytes of the activations that a position keeps for the backward pass.
        recomputed: of those that it keeps if the backward pass computes layers again.
        memory: bytes that the activations of one batch may take.
        most: positions of one batch, where the memory has room for more.
        max_logits: positions whose logits are computed at once.
    """

    model: Any
    device: torch.device
    share: bool
    size: int
    recomputed: int
    memory: int
    most: int
    max_logits: int

    def plan(self, sequences: Sequence[Tokens]) -> list[list[TokenGroup]]:
        """Return `sequences` in batches that fit into the memory.

        For a backward pass these are the batches that take the least work. Where layers are
        computed again more sequences fit into one, so that more prompts are shared.
        """

        def batches(each: int) -> list[list[TokenGroup]]:
            return plan(sequences, min(self.memory // each, self.most), share=self.share)

        def work(batches: list[list[TokenGroup]]) -> int:
            """How often a position is computed: forwards, backwards twice, and maybe again."""
            sizes = [sum(group.positions(sequences) for group in batch) for batch in batches]
            return sum(size * (4 if size * self.size > self.memory else 3) for size in sizes)

        smaller = batches(self.size)
        return min(smaller, batches(self.recomputed), key=work)

    @contextmanager
    def running(
        self, groups: list[TokenGroup], sequences: Sequence[Tokens]
    ) -> Iterator[tuple[PackedBatch, torch.Tensor]]:
        """Run one batch; yields it with the hidden states [N, hidden] of its positions.

        A backward pass has to be within the block. A batch that exceeds the memory keeps only what
        goes into each layer, and the backward pass computes the rest again.
        """
        batch = lay_out(groups, sequences, self.device)
        kept = self.size * batch.input_ids.numel()
        with ExitStack() as stack:
            if self.device.type == "cpu" and kept >= LARGE_BATCH:
                return_free_pages()
                stack.callback(return_free_pages)
            if kept > self.memory and torch.is_grad_enabled():
                stack.enter_context(recomputing(self.model))
            if self.share:
                stack.enter_context(attending(self.model, Packed(batch.groups)))
                hidden = hidden_states(self.model, batch.input_ids, batch.position_ids)
            else:
                layers = self.model.base_model
                hidden = layers(input_ids=batch.input_ids, use_cache=False).last_hidden_state
            yield batch, hidden.flatten(0, 1)

    def logits(
        self, hidden: torch.Tensor, nodes: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], torch.Tensor]]:
        """Compute logits at positions `nodes` [M] of `hidden` [N, hidden], a piece at a time.

        Yields for each piece the indices into `nodes` that it covers, their rows in the piece,
        and float32 logits [n, vocab]. A node that occurs several times is computed once.
        """
        distinct, row_of = np.unique(nodes, return_inverse=True)
        for start in range(0, len(distinct), self.max_logits):
            piece = torch.from_numpy(distinct[start : start + self.max_logits]).to(self.device)
            index = np.flatnonzero((row_of >= start) & (row_of < start + len(piece)))
            yield index, row_of[index] - start, logits_of(self.model, hidden[piece])


def packed_forward(
    model: Any, device: torch.device, share: bool, memory: int | None = None
) -> PackedForward:
    """Return a `PackedForward` for batches of at most `memory` bytes of activations.

    Without a limit they are as large as suits the device.
    """
    pieces = pieces_for(device)
    vocabulary, width = map(int, model.get_input_embeddings().weight.shape)
    layers = int(model.config.get_text_config().num_hidden_layers)
    size = activation_bytes(model, share=share)
    return PackedForward(
        model=model,
        device=device,
        share=share,
        size=size,
        # Inputs of each layer, and activations that one of them keeps.
        recomputed=layers * width * int(model.dtype.itemsize) + size // layers,
        memory=pieces.batch if memory is None else memory,
        most=pieces.positions,
        max_logits=max(1, pieces.logits // (4 * vocabulary)),
    )


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


def score(
    forward: PackedForward,
    sequences: Sequence[Tokens],
    topk: Sequence[int] = (),
    targets: Sequence[NDArray[np.int64] | None] = (),
) -> list[TokenScores]:
    """Score sequences under a model, without gradients.

    Args:
        forward: runs the model.
        sequences: the sequences.
        topk: how many of the likeliest tokens to report for each, none if left out.
        targets: token ids [n - 1, K] to score at each place of a sequence but the first, -1 for
            none; None, or left out, for no such tokens.
    """
    results: dict[int, TokenScores] = {}
    for part in scored(forward, sequences, topk, targets):
        results.update(part)
    return [results[index] for index in range(len(sequences))]


def scored(
    forward: PackedForward,
    sequences: Sequence[Tokens],
    topk: Sequence[int] = (),
    targets: Sequence[NDArray[np.int64] | None] = (),
) -> Iterator[dict[int, TokenScores]]:
    """Yield what `score` returns a batch at a time, by index."""
    topk, targets = topk or [0] * len(sequences), targets or [None] * len(sequences)
    for groups in forward.plan(sequences):
        # Whoever goes on between two batches has a mode of its own.
        with torch.inference_mode(), forward.running(groups, sequences) as (batch, hidden):
            part = _score_batch(forward, batch, hidden, sequences, topk, targets)
        yield part


def _score_batch(
    forward: PackedForward,
    batch: PackedBatch,
    hidden: torch.Tensor,
    sequences: Sequence[Tokens],
    topk: Sequence[int],
    targets: Sequence[NDArray[np.int64] | None],
) -> dict[int, TokenScores]:
    members = list(batch.node_of)
    ends = np.cumsum([len(batch.node_of[member]) for member in members])
    # The token after a sequence is unknown: zero stands for it, and its value is not used.
    following = np.concatenate([np.append(sequences[m][1:], 0) for m in members]).astype(np.int64)
    most = max(topk[member] for member in members)
    values = np.empty(len(following), np.float32)
    best_ids = np.empty((len(following), most), np.int32)
    best_values = np.empty((len(following), most), np.float32)
    asked_of = [(end, targets[m]) for m, end in zip(members, ends, strict=True)]
    widest = max(0 if asked is None else asked.shape[1] for _, asked in asked_of)
    target_ids = np.full((len(following), widest), -1, np.int64)
    for end, asked in asked_of:
        if asked is not None:
            target_ids[end - 1 - len(asked) : end - 1, : asked.shape[1]] = asked
    target_values = np.zeros(target_ids.shape, np.float32)
    last: dict[int, torch.Tensor] = {}
    nodes = np.concatenate([batch.node_of[member] for member in members])
    for index, rows, logits in forward.logits(hidden, nodes):
        final = np.isin(index + 1, ends)
        for end, row in zip((index[final] + 1).tolist(), rows[final].tolist(), strict=True):
            last[end] = logits[row].clone()
        logprobs = torch.log_softmax(logits, dim=-1)
        values[index] = logprobs[rows, following[index]].cpu().numpy()
        if most:
            best = torch.topk(logprobs, most, dim=-1)
            best_ids[index] = best.indices[rows].cpu().numpy()
            best_values[index] = best.values[rows].cpu().numpy()
        if target_ids.size:
            asked = target_ids[index]
            picked = logprobs[rows[:, None], np.maximum(asked, 0)].cpu().numpy()
            target_values[index] = np.where(asked >= 0, picked, 0.0)
    results: dict[int, TokenScores] = {}
    for member, end in zip(members, ends.tolist(), strict=True):
        own, k = slice(end - len(sequences[member]), end - 1), topk[member]
        own_targets = targets[member]
        results[member] = TokenScores(
            np.append(np.float32(np.nan), values[own]),
            last[end],
            # The first token has nothing before it: the SDK reads (0, -99999) as "not computed".
            (
                np.pad(best_ids[own, :k], ((1, 0), (0, 0))),
                np.pad(best_values[own, :k], ((1, 0), (0, 0)), constant_values=-99999.0),
            )
            if k > 0
            else None,
            None if own_targets is None else target_values[own, : own_targets.shape[1]],
        )
    return results
