"""Sampling by prompt: rollouts that ask about the same tokens at once share one request."""

import asyncio
import dataclasses
from dataclasses import dataclass, field
from typing import Any

import tinker
from tinker_cookbook.completers import StopCondition, TokenCompleter, TokensWithLogprobs

REQUESTS_AT_ONCE = 256


@dataclass(frozen=True)
class _Question:
    """A prompt and who waits for a sample of it."""

    prompt: tinker.ModelInput
    stop: StopCondition
    max_tokens: int
    askers: list[asyncio.Future[TokensWithLogprobs]] = field(default_factory=list)


class PromptSampler(TokenCompleter):
    """Samples replies, one request for all rollouts that ask the same thing at the same time.

    Questions asked in one turn of the event loop are sent together at its end. Members of a group
    open with the same observation and are asked for side by side: the first turn of a group of G is
    one request for G samples, whose prompt a service reads once. Later turns share a request only
    where observations still coincide. Nobody waits for anybody else's episode.

    Use it within one event loop.

    Args:
        client: samples.
        max_tokens: most tokens of one reply.
        temperature: of sampling.
        requests_at_once: bound on the requests under way, at least 1.
    """

    def __init__(
        self,
        client: tinker.SamplingClient,
        max_tokens: int,
        temperature: float = 1.0,
        requests_at_once: int = REQUESTS_AT_ONCE,
    ) -> None:
        self._client = client
        self._max_tokens = max_tokens
        self._temperature = temperature
        self._gate = asyncio.Semaphore(requests_at_once)
        self._asked: dict[tuple[object, ...], _Question] = {}
        self._under_way: set[asyncio.Task[None]] = set()

    async def __call__(
        self,
        model_input: tinker.ModelInput,
        stop: StopCondition,
        *,
        max_tokens: int | None = None,
    ) -> TokensWithLogprobs:
        """Sample one reply to a prompt of text; see `TokenCompleter`."""
        limit = self._max_tokens if max_tokens is None else min(max_tokens, self._max_tokens)
        loop = asyncio.get_running_loop()
        if not self._asked:
            loop.call_soon(self._send)
        key = (tuple(model_input.to_ints()), tuple(stop), limit)
        question = self._asked.setdefault(key, _Question(model_input, stop, limit))
        asker: asyncio.Future[TokensWithLogprobs] = loop.create_future()
        question.askers.append(asker)
        return await asker

    def _send(self) -> None:
        """Send all that was asked since the last time."""
        asked, self._asked = self._asked, {}
        for question in asked.values():
            request = asyncio.get_running_loop().create_task(self._answer(question))
            self._under_way.add(request)
            request.add_done_callback(self._under_way.discard)

    async def _answer(self, question: _Question) -> None:
        try:
            async with self._gate:
                found = await self._client.sample_async(
                    prompt=question.prompt,
                    num_samples=len(question.askers),
                    sampling_params=tinker.SamplingParams(
                        stop=question.stop,
                        max_tokens=question.max_tokens,
                        temperature=self._temperature,
                    ),
                )
        except Exception as error:
            # It belongs to those who asked: each raises it where it waits.
            for asker in question.askers:
                if not asker.done():
                    asker.set_exception(error)
            return
        for asker, sequence in zip(question.askers, found.sequences, strict=True):
            if not asker.done():
                asker.set_result(_completion(sequence))


def _completion(sequence: tinker.SampledSequence) -> TokensWithLogprobs:
    # From 0.6 on the cookbook's type names the sequence, for losses that look it up.
    names = {field.name for field in dataclasses.fields(TokensWithLogprobs)} & {"sequence_id"}
    named: dict[str, Any] = dict.fromkeys(names, sequence.sequence_id)
    return TokensWithLogprobs(sequence.tokens, sequence.logprobs, sequence.stop_reason, **named)
