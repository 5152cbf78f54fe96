"""Continuous batching: one batch of sampling requests per set of weights, rows join and leave.

Compute thread only. `submit` queues a request; each `step` admits queued requests and appends one
token to every running sequence. A request that fails takes no other down with it.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from concurrent.futures import InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tokengym.agents.service.engine.forward import PackedForward, score
from tokengym.agents.service.generation.token_sampling import (
    TokenSampling,
    sample_tokens,
    sequence_key,
    uniforms,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    import torch
    from numpy.typing import NDArray

    from tokengym.agents.service.engine.packing import Tokens
    from tokengym.agents.service.generation.decoder import Decoder

MAX_ROWS = 1024
# What one request may take, as a multiple of what it leaves free.
SHARE = 3
# Decoding this many tokens is enough to see any stop string that ends in the newest one.
STOP_WINDOW = 64

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SampleRequest:
    """A checked sampling request.

    Attributes:
        weights: key of the weights to sample from.
        prompt: token ids, at least one.
        count: number of sequences.
        sampling: temperature, top-k, top-p and seed.
        max_tokens: longest sequence, at least one token.
        stop_tokens: ids that end a sequence (the id itself is part of it).
        stop_strings: texts that end a sequence once they occur in it.
        score: whether log-probabilities of the prompt are wanted.
        topk_prompt: likeliest tokens wanted at each place of the prompt.
        topk_sample: likeliest tokens wanted at each sampled place.
        targets: int64 [n - 1, K], ids whose log-probabilities are wanted at each place of the
            prompt but the first, -1 for none.
    """

    weights: str
    prompt: Tokens
    count: int
    sampling: TokenSampling
    max_tokens: int
    stop_tokens: frozenset[int]
    stop_strings: tuple[str, ...] = ()
    score: bool = False
    topk_prompt: int = 0
    topk_sample: int = 0
    targets: NDArray[np.int64] | None = None

    @property
    def scored(self) -> bool:
        """Whether anything about the prompt is wanted."""
        return self.score or self.topk_prompt > 0 or self.targets is not None


@dataclass
class Sequence:
    """One sampled sequence as it grows."""

    key: int
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    topk_ids: list[NDArray[np.int64]] = field(default_factory=list)
    topk_logprobs: list[NDArray[np.float32]] = field(default_factory=list)
    stopped: bool = False


@dataclass
class SampleResult:
    """The result of a sampling request."""

    sequences: list[Sequence]
    prompt_logprobs: NDArray[np.float32] | None = None
    prompt_topk: tuple[NDArray[np.int32], NDArray[np.float32]] | None = None
    target_logprobs: NDArray[np.float32] | None = None


@dataclass(eq=False)
class SamplingJob:
    """A request in progress.

    Attributes:
        request: what to sample.
        future: gets the result or the error.
        on_tokens: called with the growing result after each step that appended to it.
        result: what was sampled so far.
        unstarted: the sequences of the result that do not run yet.
        open: number of sequences that have not ended.
        prepared: whether its prompt has been scored, if it asks for that.
    """

    request: SampleRequest
    future: Future[SampleResult]
    on_tokens: Callable[[SampleResult], None] | None = None
    result: SampleResult = field(init=False)
    unstarted: deque[Sequence] = field(init=False)
    open: int = field(init=False)
    prepared: bool = False

    def __post_init__(self) -> None:
        """Create the empty sequences."""
        seed = self.request.sampling.seed
        assert seed is not None, "the service seeds what the client did not"
        count = self.request.count
        self.result = SampleResult([Sequence(sequence_key(seed, i)) for i in range(count)])
        self.unstarted = deque(self.result.sequences)
        self.open = count

    def close_one(self) -> None:
        """Note that one of the sequences has ended; the last one completes the request."""
        self.open -= 1
        if self.open == 0:
            # A cancelled request is already done.
            with suppress(InvalidStateError):
                self.future.set_result(self.result)


_Row = tuple[SamplingJob, Sequence]


@dataclass
class _Batch:
    decoder: Decoder
    rows: list[_Row] = field(default_factory=list)


class Sampler:
    """All sampling of one base model.

    Args:
        forward: scores prompts.
        decoder: makes an empty batch for a key of weights.
        use_weights: switches the model to the weights of a key.
        decode_text: turns tokens into text.
        capacity: tokens whose keys and values there is memory for; more sequences wait.
    """

    def __init__(
        self,
        forward: PackedForward,
        decoder: Callable[[str], Decoder],
        use_weights: Callable[[str], None],
        decode_text: Callable[[list[int]], str],
        capacity: int = 1 << 20,
    ) -> None:
        self._forward = forward
        self._new_decoder = decoder
        self._use_weights = use_weights
        self._decode_text = decode_text
        self._capacity = capacity
        # By key of weights, in the order in which they take turns.
        self._queued: dict[str, list[SamplingJob]] = {}
        self._batches: dict[str, _Batch] = {}
        self._turn = 0

    def submit(
        self,
        request: SampleRequest,
        future: Future[SampleResult],
        on_tokens: Callable[[SampleResult], None] | None = None,
    ) -> None:
        """Queue a request; the arguments are the attributes of `SamplingJob`."""
        job = SamplingJob(request, future, on_tokens)
        self._queued.setdefault(request.weights, []).append(job)

    @property
    def busy(self) -> bool:
        """Whether any request is queued or running."""
        return bool(self._queued or self._batches)

    def step(self) -> None:
        """Admit queued requests for one set of weights and append one token to its rows."""
        keys = list(self._batches | self._queued)
        # The sets of weights take turns.
        self._turn += 1
        weights = keys[self._turn % len(keys)]
        try:
            self._use_weights(weights)
            self._admit(weights)
            self._advance(weights)
        except Exception as error:
            log.warning("sampling from %s failed", weights, exc_info=True)
            self._fail(weights, error)

    def _fail(self, weights: str, error: Exception) -> None:
        """Fail every request for these weights, and no other."""
        batch = self._batches.pop(weights, None)
        running = [job for job, _ in batch.rows] if batch else []
        for job in (*running, *self._queued.pop(weights, ())):
            # A request that has ended already stays as it is.
            with suppress(InvalidStateError):
                job.future.set_exception(error)

    def _admit(self, weights: str) -> None:
        if weights not in self._queued:
            return
        queue = [job for job in self._queued[weights] if not job.future.done()]
        fresh = [job for job in queue if not job.prepared]
        self._score([job for job in fresh if job.request.scored])
        for job in fresh:
            job.prepared = True
        rows = self._take(queue, self._batches.get(weights))
        if rows:
            batch = self._batches.get(weights) or _Batch(self._new_decoder(weights))
            self._batches[weights] = batch
            before = len(batch.rows)
            batch.rows.extend(rows)
            logits = batch.decoder.admit([job.request.prompt for job, _ in rows])
            ended = self._append(rows, logits)
            self._retire(weights, batch, {before + row for row in ended}, fed=False)
        self._queued[weights] = [job for job in queue if job.unstarted]
        if not self._queued[weights]:
            del self._queued[weights]

    def _take(self, queue: list[SamplingJob], batch: _Batch | None) -> list[_Row]:
        """Take from requests the sequences that there is room for; at least one if none runs.

        Requests come in their order. One that has a row leaves a quarter of the rows and of the
        memory to those that come later: a small request need not wait for the end of a large one.
        """
        rows = MAX_ROWS - (len(batch.rows) if batch else 0)
        room = self._capacity - sum(_held_tokens(other.rows) for other in self._batches.values())
        running = Counter(id(job) for job, _ in batch.rows) if batch else Counter()
        taken: list[_Row] = []
        full = False
        for job in queue:
            own = running[id(job)]
            while job.unstarted and not full:
                each, prompt = job.request.max_tokens, len(job.request.prompt)
                cost = each if own else each + prompt
                held = prompt + (own + 1) * each
                if own and (own + 1 > SHARE * (rows - 1) or held > SHARE * (room - cost)):
                    break
                # Whoever comes first waits for room; nobody may pass and take it.
                full = rows == 0 or (cost > room and bool(running or taken))
                if not full:
                    rows, room, own = rows - 1, room - cost, own + 1
                    taken.append((job, job.unstarted.popleft()))
        return taken

    def _score(self, jobs: list[SamplingJob]) -> None:
        if not jobs:
            return
        results = score(
            self._forward,
            [job.request.prompt for job in jobs],
            [job.request.topk_prompt for job in jobs],
            [job.request.targets for job in jobs],
        )
        for job, scores in zip(jobs, results, strict=True):
            if job.request.score:
                job.result.prompt_logprobs = scores.logprobs
            job.result.prompt_topk = scores.topk
            job.result.target_logprobs = scores.targets
            if job.request.max_tokens == 1:
                # Scoring already gave the logits that the only token is sampled from.
                job.unstarted.clear()
                rows = [(job, sequence) for sequence in job.result.sequences]
                for _ in self._append(rows, scores.last.expand(len(rows), -1)):
                    job.close_one()

    def _advance(self, weights: str) -> None:
        batch = self._batches.get(weights)
        if batch is None:
            return
        gone = {row for row, (job, _) in enumerate(batch.rows) if job.future.done()}
        if gone:
            self._retire(weights, batch, gone, fed=False)
        if not batch.rows:
            return
        tokens = np.array([sequence.tokens[-1] for _, sequence in batch.rows], np.int64)
        logits = batch.decoder.step(tokens)
        self._retire(weights, batch, set(self._append(batch.rows, logits)), fed=True)

    def _append(self, rows: list[_Row], logits: torch.Tensor) -> list[int]:
        """Append a token to every row; returns the rows that have ended."""
        keys = np.array([sequence.key for _, sequence in rows], np.uint64)
        positions = np.array([len(sequence.tokens) for _, sequence in rows], np.int64)
        samplings = [job.request.sampling for job, _ in rows]
        tokens, logprobs, every = sample_tokens(logits, samplings, uniforms(keys, positions))
        for row, (job, sequence) in enumerate(rows):
            if job.request.topk_sample:
                best = every[row].topk(job.request.topk_sample)
                sequence.topk_ids.append(best.indices.cpu().numpy())
                sequence.topk_logprobs.append(best.values.cpu().numpy())
        ended: list[int] = []
        for row, ((job, sequence), token, logprob) in enumerate(
            zip(rows, tokens.tolist(), logprobs.tolist(), strict=True)
        ):
            sequence.tokens.append(token)
            sequence.logprobs.append(logprob)
            request = job.request
            sequence.stopped = token in request.stop_tokens or (
                bool(request.stop_strings) and self._has_stop(sequence, request.stop_strings)
            )
            if sequence.stopped or len(sequence.tokens) >= request.max_tokens:
                ended.append(row)
        for job in {id(job): job for job, _ in rows if job.on_tokens}.values():
            assert job.on_tokens is not None, "only those with a listener are here"
            job.on_tokens(job.result)
        return ended

    def _has_stop(self, sequence: Sequence, stops: tuple[str, ...]) -> bool:
        window = max(STOP_WINDOW, 2 * max(len(stop) for stop in stops))
        text = self._decode_text(sequence.tokens[-window:])
        return any(stop in text for stop in stops)

    def _retire(self, weights: str, batch: _Batch, ended: set[int], *, fed: bool) -> None:
        if ended:
            for row in sorted(ended):
                job, sequence = batch.rows[row]
                if fed and not job.future.done():
                    reply = np.array(sequence.tokens[:-1], np.int32)
                    batch.decoder.remember(row, np.concatenate([job.request.prompt, reply]))
                job.close_one()
            left = _filled(len(batch.rows), ended)
            batch.rows = [batch.rows[row] for row in left]
            if left:
                batch.decoder.keep(left)
        if not batch.rows:
            self._batches.pop(weights, None)

    def status(self) -> dict[str, Any]:
        """Return counts for the status route."""
        queued = [job for jobs in self._queued.values() for job in jobs]
        return {
            "waiting_requests": sum(not job.prepared for job in queued),
            "queued_sequences": sum(len(job.unstarted) for job in queued if job.prepared),
            "running_sequences": sum(len(batch.rows) for batch in self._batches.values()),
        }


def _held_tokens(rows: list[_Row]) -> int:
    """Return the most tokens that rows may hold; a request's prompt counts once."""
    prompts = {id(job): len(job.request.prompt) for job, _ in rows}
    return sum(prompts.values()) + sum(job.request.max_tokens for job, _ in rows)


def _filled(rows: int, ended: set[int]) -> list[int]:
    """Return the rows that continue, the last ones moved into the slots of those that ended.

    Moving few rows matters: each carries the keys and values of all its tokens.
    """
    count = rows - len(ended)
    order = list(range(count))
    spare = [row for row in range(count, rows) if row not in ended]
    for place in sorted(row for row in ended if row < count):
        order[place] = spare.pop()
    return order
