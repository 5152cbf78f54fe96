"""Continuous batching: one batch for each client and set of weights, rows join and leave.

Compute thread only. `submit` queues a request; each `step` admits queued requests of a client and
appends one token to its running sequences. A request that fails takes no other down with it.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import torch

from tokengym.agents.service.engine.forward import PackedForward, TokenScores, scored
from tokengym.agents.service.generation.decoder import KeptDecoder
from tokengym.agents.service.generation.jobs import (
    SampleRequest,
    SampleResult,
    SamplingJob,
    Sequence,
)
from tokengym.agents.service.generation.token_sampling import sample_tokens, uniforms

MAX_ROWS = 1024
# Sets of weights whose conversations are kept for a client: a policy's and an opponent's.
KEPT = 2
# Decoding this many tokens is enough to see any stop string that ends in the newest one.
STOP_WINDOW = 64
_DONE = object()

log = logging.getLogger(__name__)


@dataclass(eq=False)
class _Row:
    """A sequence that runs, and its number in the decoder."""

    job: SamplingJob
    sequence: Sequence
    number: int = -1


@dataclass(eq=False)
class _Batch:
    """The requests of a client for one set of weights.

    Attributes:
        client: who asks.
        weights: key of the weights.
        decoder: holds the keys and values of its conversations.
        queue: requests with sequences that have not begun.
        scoring: scores the prompts of some of them, a batch at a time.
        rows: what runs.
    """

    client: str
    weights: str
    decoder: KeptDecoder
    queue: list[SamplingJob] = field(default_factory=list)
    scoring: Iterator[None] | None = None
    rows: list[_Row] = field(default_factory=list)

    @property
    def busy(self) -> bool:
        """Whether any request is queued or running."""
        return bool(self.rows or self.queue)

    @property
    def held(self) -> int:
        """The most tokens that its rows may hold: all slots have the room of the longest."""
        return len(self.rows) * max((row.job.most for row in self.rows), default=0)


class Sampler:
    """All sampling of one base model.

    Args:
        forward: scores prompts.
        decoder: makes a decoder.
        use_weights: switches the model to the weights of a key.
        decode_text: turns tokens into text.
        capacity: half of the tokens that there is memory for. A client's sequences that run take
            at most three quarters of it, and more of them wait: the rest is for other clients and
            for conversations whose next turn is awaited.
        missing: ids that are never sampled: the tokenizer has no such tokens.
    """

    def __init__(
        self,
        forward: PackedForward,
        decoder: Callable[[], KeptDecoder],
        use_weights: Callable[[str], None],
        decode_text: Callable[[list[int]], str],
        capacity: int = 1 << 20,
        missing: torch.Tensor | None = None,
    ) -> None:
        self._forward = forward
        self._new_decoder = decoder
        self._use_weights = use_weights
        self._decode_text = decode_text
        self._capacity = capacity
        self._missing = missing
        # By client and key of weights, the least recently used first.
        self._batches: dict[tuple[str, str], _Batch] = {}

    def submit(self, request: SampleRequest, future: Future[SampleResult]) -> None:
        """Queue a request; the arguments are the attributes of `SamplingJob`."""
        key = (request.client, request.weights)
        if key not in self._batches:
            self._batches[key] = _Batch(*key, self._new_decoder())
        self._batches[key].queue.append(SamplingJob(request, future))

    def in_use(self, weights: str) -> bool:
        """Return whether a request for such weights is queued or running."""
        return any(batch.busy for batch in self._batches.values() if batch.weights == weights)

    def forget(self, key: str) -> None:
        """Free the conversations of a client that has gone, or of weights."""
        self._drop(
            batch for batch in self._batches.values() if key in (batch.client, batch.weights)
        )

    @property
    def busy(self) -> bool:
        """Whether any request is queued or running."""
        return any(batch.busy for batch in self._batches.values())

    def waiting(self) -> Iterable[str]:
        """Return the clients that have a next step."""
        return {batch.client for batch in self._batches.values() if self._is_ready(batch)}

    def step(self, client: str = "") -> None:
        """Admit requests of a client for one set of weights and append a token to its rows."""
        batches = [batch for batch in self._batches.values() if batch.client == client]
        batch = next(filter(self._is_ready, batches))
        # A client's sets of weights take turns.
        key = (client, batch.weights)
        self._batches[key] = self._batches.pop(key)
        try:
            self._use_weights(batch.weights)
            self._admit(batch)
            self._advance(batch)
        except Exception as error:
            log.warning("sampling from %s failed", batch.weights, exc_info=True)
            self._fail(batch, error)
        if not batch.busy:
            own = [other for other in self._batches.values() if other.client == client]
            self._drop([other for other in own if not other.busy][:-KEPT])

    def _fail(self, batch: _Batch, error: Exception) -> None:
        """Fail every request of a batch, and no other."""
        for job in (*(row.job for row in batch.rows), *batch.queue):
            # A request that has ended already stays as it is.
            with suppress(InvalidStateError):
                job.future.set_exception(error)
        batch.queue, batch.scoring, batch.rows = [], None, []
        batch.decoder = self._new_decoder()

    def _drop(self, batches: Iterable[_Batch]) -> None:
        """Free the conversations of batches that are not busy."""
        for batch in [batch for batch in batches if not batch.busy]:
            del self._batches[batch.client, batch.weights]

    def _is_ready(self, batch: _Batch) -> bool:
        """Return whether a batch can do anything."""
        if batch.rows or batch.scoring:
            return True
        return any(j.unscored or j.future.done() for j in batch.queue) or bool(self._fitting(batch))

    def _room(self, batch: _Batch) -> int:
        """Return how many tokens a batch may hold besides those it holds.

        Whoever waits and holds less than others goes first, and one client leaves the memory of
        conversations to others: nobody waits for the end of all that another one asks.
        """
        held = Counter[str]()
        for other in self._batches.values():
            held[other.client] += other.held
        mine = held[batch.client]
        waiting = [other for other in self._batches.values() if other.queue]
        if any((held[other.client], other.held) < (mine, batch.held) for other in waiting):
            return 0
        return min(3 * self._capacity // 4 - mine, 2 * self._capacity - held.total())

    def _admit(self, batch: _Batch) -> None:
        batch.queue = [job for job in batch.queue if not job.future.done()]
        fresh = [job for job in batch.queue if job.unscored]
        if fresh:
            batch.scoring = batch.scoring or self._score(fresh)
        if batch.scoring and next(batch.scoring, _DONE) is _DONE:
            batch.scoring = None
        rows, before = self._fitting(batch), len(batch.rows)
        if rows:
            for row in rows:
                row.job.unstarted.popleft()
            batch.rows += rows
            prompts = [row.job.request.prompt for row in rows]
            ends = [row.job.most for row in rows]
            numbers, logits = batch.decoder.admit(prompts, ends, self._freed(batch))
            for row, number in zip(rows, numbers, strict=True):
                row.number = number
            self._retire(batch, {before + row for row in self._append(rows, logits)})
        # More may have come meanwhile.
        batch.queue = [job for job in batch.queue if job.unstarted]

    def _fitting(self, batch: _Batch) -> list[_Row]:
        """Return the sequences that there is room for; at least one if none runs at all.

        If not all fit, requests that continue a conversation go first, the longest before others:
        those that have begun come to their end, and need not be read once more when their turn
        comes. Others follow in their order; they take a conversation's place if nothing runs.
        """
        queue, rows = [job for job in batch.queue if not job.unscored], len(batch.rows)
        if not queue:
            return []
        longest = max((row.job.most for row in batch.rows), default=0)
        limit = batch.held + self._room(batch)
        all_of_them = rows + sum(len(job.unstarted) for job in queue)
        if all_of_them * max((longest, *(job.most for job in queue))) > limit:
            known = {id(job): batch.decoder.known(job.request.prompt) for job in queue}
            queue.sort(key=lambda job: -known[id(job)])
        idle = not any(other.rows for other in self._batches.values())
        kept = sum(other.decoder.tokens for other in self._batches.values() if other is not batch)
        fitting: list[_Row] = []
        for job in queue:
            asked = job.request.prompt, job.most, 2 * self._capacity - kept, len(fitting)
            if (rows or fitting) and batch.decoder.displaces(*asked):
                continue
            longest = max(longest, job.most)
            for sequence in job.unstarted:
                count = rows + len(fitting) + 1
                # Whoever comes first waits for room; nobody may pass and take it.
                if count > MAX_ROWS or (count * longest > limit and (fitting or not idle)):
                    return fitting
                fitting.append(_Row(job, sequence))
        return fitting

    def _freed(self, batch: _Batch) -> int:
        """Free what others keep, the oldest first, as memory needs; returns a batch's tokens."""
        need = max(batch.held, batch.decoder.tokens)
        others = [other for other in self._batches.values() if other is not batch]
        kept = sum(other.decoder.tokens for other in others)
        for other in others:
            if need + kept > 2 * self._capacity and not other.busy:
                kept -= other.decoder.tokens
                self._drop([other])
        return max(batch.held, 2 * self._capacity - kept)

    def _score(self, jobs: list[SamplingJob]) -> Iterator[None]:
        """Score the prompts of requests, a batch at a time."""
        parts = scored(
            self._forward,
            [job.request.prompt for job in jobs],
            [job.request.topk_prompt for job in jobs],
            [job.request.targets for job in jobs],
        )
        for part in parts:
            for member, scores in part.items():
                self._take_scores(jobs[member], scores)
            yield

    def _take_scores(self, job: SamplingJob, scores: TokenScores) -> None:
        # The logits are as many as the vocabulary has tokens, and of no more use.
        job.result.scores = scores._replace(last=scores.last.new_empty(0))
        if job.request.max_tokens == 1:
            # Scoring already gave the logits that the only token is sampled from.
            job.unstarted.clear()
            rows = [_Row(job, sequence) for sequence in job.result.sequences]
            for _ in self._append(rows, scores.last.expand(len(rows), -1)):
                job.close_one()

    def _advance(self, batch: _Batch) -> None:
        self._retire(batch, {n for n, row in enumerate(batch.rows) if row.job.future.done()})
        if not batch.rows:
            return
        tokens = np.array([row.sequence.tokens[-1] for row in batch.rows], np.int64)
        logits = batch.decoder.step([row.number for row in batch.rows], tokens)
        self._retire(batch, set(self._append(batch.rows, logits)))

    def _append(self, rows: list[_Row], logits: torch.Tensor) -> list[int]:
        """Append a token to every row; returns the rows that have ended."""
        keys = np.array([row.sequence.key for row in rows], np.uint64)
        positions = np.array([len(row.sequence.tokens) for row in rows], np.int64)
        samplings = [row.job.request.sampling for row in rows]
        numbers = uniforms(keys, positions)
        tokens, logprobs, every = sample_tokens(logits, samplings, numbers, self._missing)
        ended: list[int] = []
        for place, (row, token, logprob) in enumerate(
            zip(rows, tokens.tolist(), logprobs.tolist(), strict=True)
        ):
            request, sequence = row.job.request, row.sequence
            if request.topk_sample:
                best = every[place].topk(request.topk_sample)
                sequence.topk_ids.append(best.indices.cpu().numpy().astype(np.int32))
                sequence.topk_logprobs.append(best.values.cpu().numpy())
            sequence.tokens.append(token)
            sequence.logprobs.append(logprob)
            sequence.stopped = token in request.stop_tokens or (
                bool(request.stop_strings) and self._has_stop(sequence, request.stop_strings)
            )
            if sequence.stopped or len(sequence.tokens) >= request.max_tokens:
                ended.append(place)
        return ended

    def _has_stop(self, sequence: Sequence, stops: tuple[str, ...]) -> bool:
        window = max(STOP_WINDOW, 2 * max(len(stop) for stop in stops))
        text = self._decode_text(sequence.tokens[-window:].tolist())
        return any(stop in text for stop in stops)

    def _retire(self, batch: _Batch, ended: set[int]) -> None:
        for place in ended:
            row = batch.rows[place]
            batch.decoder.release(row.number, np.array(row.sequence.tokens, np.int32))
            row.job.close_one()
        batch.rows = [row for place, row in enumerate(batch.rows) if place not in ended]
