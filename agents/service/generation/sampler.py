"""Continuous batching: one batch for each client and set of weights, rows join and leave.

Compute thread only. `submit` queues a request; each `step` admits queued requests of a client and
appends one token to its running sequences. A request that fails takes no other down with it.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch

from tokengym.agents.service.engine.compute_thread import resume_with
from tokengym.agents.service.engine.forward import PackedForward, Score, scored
from tokengym.agents.service.generation.decoder import Decoder
from tokengym.agents.service.generation.jobs import (
    SampleRequest,
    SampleResult,
    SamplingJob,
    Sequence,
)
from tokengym.agents.service.generation.prefix_cache import PrefixCache
from tokengym.agents.service.generation.token_sampling import sample_tokens, uniforms

MAX_ROWS = 1024
# What a client may take of the memory, and a request of its client's part and of a batch's rows, as
# a multiple of what it leaves free.
SHARE = 3
# Requests that are looked at to tell how large a step will be.
SEEN = 64
# Decoding this many tokens is enough to see any stop string that ends in the newest one.
STOP_WINDOW = 64
_DONE = object()

log = logging.getLogger(__name__)

_Row = tuple[SamplingJob, Sequence]


@dataclass(eq=False)
class _Batch:
    """The requests of a client for one set of weights.

    Attributes:
        client: who asks.
        weights: key of the weights.
        queue: requests of which not every sequence has begun.
        scoring: scores the prompts of some of them, a batch at a time.
        rows: what runs.
        held: the most tokens that its rows may hold.
        decoder: holds their keys and values.
        copied: whether each row holds a copy of its prompt; else a request's prompt counts once.
    """

    client: str
    weights: str
    copied: bool
    queue: list[SamplingJob] = field(default_factory=list)
    scoring: Iterator[None] | None = None
    rows: list[_Row] = field(default_factory=list)
    held: int = 0
    decoder: Decoder | None = None

    def set_rows(self, rows: list[_Row]) -> None:
        """Run these rows from now on."""
        self.rows = rows
        prompts = {
            row if self.copied else id(job): len(job.request.prompt)
            for row, (job, _) in enumerate(rows)
        }
        self.held = sum(prompts.values()) + sum(job.request.max_tokens for job, _ in rows)

    def in_turn(self) -> list[SamplingJob]:
        """Return the queue in the order in which sequences begin; see `Sampler._take`."""
        return sorted(self.queue, key=lambda job: -job.cached)

    @property
    def size(self) -> int:
        """The positions of its next step, about."""
        fresh = (len(job.request.prompt) + len(job.unstarted) for job in self.queue[:SEEN])
        return len(self.rows) + sum(fresh)


class Sampler:
    """All sampling of one base model.

    Args:
        forward: scores prompts.
        decoder: makes an empty batch, over a cache of prefixes, for a key of weights.
        prefixes: that cache.
        use_weights: switches the model to the weights of a key.
        decode_text: turns tokens into text.
        capacity: tokens whose keys and values there is memory for; more sequences wait.
        copied: whether each sequence holds a copy of its prompt.
    """

    def __init__(
        self,
        forward: PackedForward,
        decoder: Callable[[PrefixCache, str], Decoder],
        prefixes: PrefixCache,
        use_weights: Callable[[str], None],
        decode_text: Callable[[list[int]], str],
        capacity: int = 1 << 20,
        copied: bool = False,
    ) -> None:
        self._forward = forward
        self._new_decoder = decoder
        self._prefixes = prefixes
        self._use_weights = use_weights
        self._decode_text = decode_text
        self._capacity = capacity
        self._copied = copied
        # By client and key of weights, in the order in which a client's take turns.
        self._batches: dict[tuple[str, str], _Batch] = {}
        self._next: _Batch | None = None

    def submit(
        self,
        request: SampleRequest,
        future: Future[SampleResult],
        on_tokens: Callable[[SampleResult], None] | None = None,
    ) -> None:
        """Queue a request; the arguments are the attributes of `SamplingJob`."""
        key = (request.client, request.weights)
        batch = self._batches.setdefault(key, _Batch(*key, self._copied))
        job = SamplingJob(request, future, on_tokens)
        job.continues(self._prefixes.find(request.weights, request.prompt))
        batch.queue.append(job)

    @property
    def busy(self) -> bool:
        """Whether any request is queued or running."""
        return bool(self._batches)

    def waiting(self) -> dict[str, int]:
        """Return the size of the next step of each client that has one, in positions."""
        ready: dict[str, int] = {}
        for batch in self._batches.values():
            if batch.client not in ready and self._is_ready(batch):
                ready[batch.client] = batch.size
        return ready

    def step(self, client: str = "") -> None:
        """Admit requests of a client for one set of weights and append a token to its rows."""
        batches = [batch for batch in self._batches.values() if batch.client == client]
        batch = next(filter(self._is_ready, batches))
        # A client's sets of weights take turns.
        key = (client, batch.weights)
        self._batches[key] = self._batches.pop(key)
        try:
            use = partial(self._use_weights, batch.weights)
            use()
            resume_with(use)
            self._admit(batch)
            self._advance(batch)
        except Exception as error:
            log.warning("sampling from %s failed", batch.weights, exc_info=True)
            self._fail(batch, error)
        if not batch.rows and not batch.queue:
            del self._batches[key]

    def _fail(self, batch: _Batch, error: Exception) -> None:
        """Fail every request of a batch, and no other."""
        for job in (*(job for job, _ in batch.rows), *batch.queue):
            # A request that has ended already stays as it is.
            with suppress(InvalidStateError):
                job.future.set_exception(error)
        batch.queue, batch.scoring, batch.decoder = [], None, None
        batch.set_rows([])

    def _is_ready(self, batch: _Batch) -> bool:
        """Return whether a batch can do anything; who then waits for room is the next to get it."""
        if batch.rows or batch.scoring or not batch.queue:
            return True
        job = batch.in_turn()[0]
        if job.future.done() or job.unscored:
            return True
        room = self._room(batch)
        if room is None or len(job.request.prompt) + job.request.max_tokens <= room:
            return True
        self._next = self._next or batch
        return False

    def _room(self, batch: _Batch) -> int | None:
        """Return how many tokens a batch may hold besides those it holds, None if it is alone.

        A client leaves a quarter of the memory to others. Whoever waits for room is next: until it
        has got some, nobody else gets more.
        """
        if self._next is not None and (self._next.rows or not self._next.queue):
            self._next = None
        held = sum(other.held for other in self._batches.values())
        if held == 0:
            return None
        if self._next not in (None, batch):
            return 0
        own = sum(other.held for other in self._batches.values() if other.client == batch.client)
        return (SHARE * (self._capacity - held) - own) // (SHARE + 1)

    def _admit(self, batch: _Batch) -> None:
        batch.queue = [job for job in batch.queue if not job.future.done()]
        fresh = [job for job in batch.queue if job.unscored]
        if fresh:
            batch.scoring = batch.scoring or self._score(fresh)
        if batch.scoring and next(batch.scoring, _DONE) is _DONE:
            batch.scoring = None
        rows = self._take(batch)
        if rows:
            batch.decoder = batch.decoder or self._new_decoder(self._prefixes, batch.weights)
            before = len(batch.rows)
            batch.set_rows([*batch.rows, *rows])
            logits = batch.decoder.admit([job.request.prompt for job, _ in rows])
            ended = self._append(rows, logits)
            self._retire(batch, {before + row for row in ended}, fed=False)
        # More may have come meanwhile.
        batch.queue = [job for job in batch.queue if job.unstarted]

    def _take(self, batch: _Batch) -> list[_Row]:
        """Take from requests the sequences that there is room for; at least one if none runs.

        Requests that continue a cached sequence go first, the longest before others: where memory
        is short, conversations that have begun come to their end, and need not be read once more
        when their turn comes. Others follow in their order. A request that has a row leaves a
        quarter of the rows, and of its client's memory, to those that come later: a small one need
        not wait for the end of a large one.
        """
        rows = MAX_ROWS - len(batch.rows)
        room = self._room(batch)
        alone = room is None
        if room is None:
            room = SHARE * self._capacity // (SHARE + 1)
        running = Counter(id(job) for job, _ in batch.rows)
        taken: list[_Row] = []
        full = False
        for job in batch.in_turn():
            if job.unscored:
                continue
            own = running[id(job)]
            while job.unstarted and not full:
                each, prompt = job.request.max_tokens, len(job.request.prompt)
                cost = each if own and not self._copied else each + prompt
                held = own * (each + prompt * self._copied) + each + prompt
                if own and (own + 1 > SHARE * (rows - 1) or held > SHARE * (room - cost)):
                    break
                # Whoever comes first waits for room; nobody may pass and take it.
                full = rows == 0 or (cost > room and not (alone and not taken))
                if not full:
                    rows, room, own = rows - 1, room - cost, own + 1
                    taken.append((job, job.unstarted.popleft()))
        return taken

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

    def _take_scores(self, job: SamplingJob, scores: Score) -> None:
        # The logits are as many as the vocabulary has tokens, and of no more use.
        job.result.scores = scores._replace(last=scores.last.new_empty(0))
        if job.request.max_tokens == 1:
            # Scoring already gave the logits that the only token is sampled from.
            job.unstarted.clear()
            rows = [(job, sequence) for sequence in job.result.sequences]
            for _ in self._append(rows, scores.last.expand(len(rows), -1)):
                job.close_one()

    def _advance(self, batch: _Batch) -> None:
        gone = {row for row, (job, _) in enumerate(batch.rows) if job.future.done()}
        if gone:
            self._retire(batch, gone, fed=False)
        if batch.decoder is None:
            return
        tokens = np.array([sequence.tokens[-1] for _, sequence in batch.rows], np.int64)
        logits = batch.decoder.step(tokens)
        self._retire(batch, set(self._append(batch.rows, logits)), fed=True)

    def _append(self, rows: list[_Row], logits: torch.Tensor) -> list[int]:
        """Append a token to every row; returns the rows that have ended."""
        keys = np.array([sequence.key for _, sequence in rows], np.uint64)
        positions = np.array([len(sequence.tokens) for _, sequence in rows], np.int64)
        samplings = [job.request.sampling for job, _ in rows]
        tokens, logprobs, every = sample_tokens(logits, samplings, uniforms(keys, positions))
        for row, (job, sequence) in enumerate(rows):
            if job.request.topk_sample:
                best = every[row].topk(job.request.topk_sample)
                sequence.topk_ids.append(best.indices.cpu().numpy().astype(np.int32))
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
        text = self._decode_text(sequence.tokens[-window:].tolist())
        return any(stop in text for stop in stops)

    def _retire(self, batch: _Batch, ended: set[int], *, fed: bool) -> None:
        if not ended or batch.decoder is None:
            return
        for row in sorted(ended):
            job, sequence = batch.rows[row]
            if fed and not job.future.done():
                reply = np.array(sequence.tokens[:-1], np.int32)
                batch.decoder.remember(row, np.concatenate([job.request.prompt, reply]))
            job.close_one()
        left = [row for row in range(len(batch.rows)) if row not in ended]
        batch.set_rows([batch.rows[row] for row in left])
        if left:
            batch.decoder.keep(left)
        else:
            batch.decoder = None

    def status(self) -> dict[str, Any]:
        """Return counts for the status route."""
        batches = list(self._batches.values())  # They change meanwhile.
        return {"running_sequences": sum(len(batch.rows) for batch in batches)}
