"""Requests to sample, and the tokens sampled for them so far."""

from array import array
from collections import deque
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from tinker.types import SamplingParams

from tokengym.agents.service.engine.forward import Tokens, TokenScores
from tokengym.agents.service.generation.token_sampling import sequence_key

# The memory of a sampled sequence, of one of its tokens, and of one of the likeliest tokens at a
# place, with its copies while it is encoded.
SEQUENCE_BYTES, TOKEN_BYTES, TOP_BYTES = 2048, 24, 24


@dataclass(frozen=True)
class SampleRequest:
    """A checked sampling request.

    Attributes:
        weights: key of the weights to sample from.
        prompt: token ids, at least one.
        count: number of sequences.
        sampling: temperature, top-k, top-p and seed; the rest of it is in the fields below.
        max_tokens: longest sequence, at least one token.
        stop_tokens: ids that end a sequence (the id itself is part of it).
        stop_strings: texts that end a sequence once they occur in it.
        score: whether log-probabilities of the prompt are wanted.
        topk_prompt: likeliest tokens wanted at each place of the prompt.
        topk_sample: likeliest tokens wanted at each sampled place.
        targets: int64 [n - 1, K], ids whose log-probabilities are wanted at each place of the
            prompt but the first, -1 for none.
        client: who asks; each has batches of its own.
    """

    weights: str
    prompt: Tokens
    count: int
    sampling: SamplingParams
    max_tokens: int
    stop_tokens: frozenset[int]
    stop_strings: tuple[str, ...] = ()
    score: bool = False
    topk_prompt: int = 0
    topk_sample: int = 0
    targets: NDArray[np.int64] | None = None
    client: str = ""

    @property
    def result_bytes(self) -> int:
        """The most memory that its result takes, and its encoding."""
        places = self.topk_prompt + (0 if self.targets is None else self.targets.shape[1]) + 1
        sampled = self.max_tokens * (TOKEN_BYTES + TOP_BYTES * self.topk_sample) + SEQUENCE_BYTES
        return self.count * sampled + len(self.prompt) * TOP_BYTES * places

    @property
    def scored(self) -> bool:
        """Whether anything about the prompt is wanted."""
        return self.score or self.topk_prompt > 0 or self.targets is not None


@dataclass
class Sequence:
    """One sampled sequence as it grows."""

    key: int
    tokens: "array[int]" = field(default_factory=lambda: array("i"))
    logprobs: "array[float]" = field(default_factory=lambda: array("f"))
    topk_ids: list[NDArray[np.int32]] = field(default_factory=list)
    topk_logprobs: list[NDArray[np.float32]] = field(default_factory=list)
    stopped: bool = False


@dataclass
class SampleResult:
    """The result of a sampling request, with the scores of its prompt if any are wanted."""

    sequences: list[Sequence]
    scores: TokenScores | None = None


class SamplingJob:
    """A request in progress.

    Attributes:
        request: what to sample.
        future: gets the result or the error.
        result: what was sampled so far.
        unstarted: the sequences of the result that do not run yet.
        open: number of sequences that have not ended.
    """

    def __init__(self, request: SampleRequest, future: Future[SampleResult]) -> None:
        seed, self.open = request.sampling.seed, request.count
        assert seed is not None, "the service seeds what the client did not"
        self.request, self.future = request, future
        self.result = SampleResult([Sequence(sequence_key(seed, i)) for i in range(self.open)])
        self.unstarted = deque(self.result.sequences)

    @property
    def most(self) -> int:
        """The most tokens that a sequence with its prompt may come to have."""
        return len(self.request.prompt) + self.request.max_tokens

    @property
    def unscored(self) -> bool:
        """Whether its prompt still has to be scored."""
        return self.request.scored and self.result.scores is None

    def close_one(self) -> None:
        """Note that one of the sequences has ended; the last one completes the request."""
        self.open -= 1
        if self.open == 0:
            # A cancelled request is already done.
            with suppress(InvalidStateError):
                self.future.set_result(self.result)
