"""Laws of sampling by prompt: who asks the same shares a request, and nobody waits for others."""

import asyncio
from collections.abc import Sequence
from typing import cast

import pytest
import tinker
from tinker_cookbook.completers import TokensWithLogprobs

from tests.training.rollouts import Scripted
from tokengym.agents.training.sampling import PromptSampler


def ask(
    script: Scripted, prompts: Sequence[Sequence[int]], at_once: int = 8
) -> list[TokensWithLogprobs]:
    async def all_at_once() -> list[TokensWithLogprobs]:
        sampler = PromptSampler(
            cast(tinker.SamplingClient, script), max_tokens=8, requests_at_once=at_once
        )
        return await asyncio.gather(
            *(sampler(tinker.ModelInput.from_ints(list(prompt)), [256]) for prompt in prompts)
        )

    return asyncio.run(all_at_once())


def numbered() -> Scripted:
    return Scripted(lambda text, number, temperature: f"{text}{number}")


def said(reply: TokensWithLogprobs) -> str:
    return bytes(reply.tokens[:-1]).decode()


def test_one_request_for_every_prompt_and_one_sample_for_everyone() -> None:
    script = numbered()
    replies = ask(script, [b"a", b"b", b"a", b"a"])
    assert sorted(script.asked) == [1, 3]
    assert sorted(map(said, replies)) == ["a0", "a1", "a2", "b0"]
    assert all(len(reply.logprobs) == len(reply.tokens) for reply in replies)


@pytest.mark.parametrize("at_once", [1, 3])
def test_no_more_requests_are_under_way_than_allowed(at_once: int) -> None:
    script = numbered()
    ask(script, [bytes([97 + number]) for number in range(9)], at_once)
    assert script.busiest == at_once
    assert len(script.asked) == 9


def test_a_tighter_bound_on_a_reply_is_another_question() -> None:
    script = numbered()

    async def both() -> tuple[TokensWithLogprobs, TokensWithLogprobs]:
        sampler = PromptSampler(cast(tinker.SamplingClient, script), max_tokens=8)
        prompt = tinker.ModelInput.from_ints(list(b"abcd"))
        return await asyncio.gather(
            sampler(prompt, [256], max_tokens=2), sampler(prompt, [256], max_tokens=100)
        )

    short, long = asyncio.run(both())
    assert script.asked == [1, 1]
    assert (len(short.tokens), len(long.tokens)) == (2, 6)


def test_an_error_reaches_everyone_who_asked_and_nobody_else() -> None:
    def says(text: str, number: int, temperature: float) -> str:
        if text == "bad":
            raise ValueError("no such prompt")
        return text

    async def all_at_once() -> list[TokensWithLogprobs | BaseException]:
        sampler = PromptSampler(cast(tinker.SamplingClient, Scripted(says)), max_tokens=8)
        prompts = (b"bad", b"good", b"bad")
        return await asyncio.gather(
            *(sampler(tinker.ModelInput.from_ints(list(prompt)), [256]) for prompt in prompts),
            return_exceptions=True,
        )

    first, good, last = asyncio.run(all_at_once())
    assert isinstance(first, ValueError)
    assert isinstance(last, ValueError)
    assert isinstance(good, TokensWithLogprobs)


def test_who_stops_waiting_takes_nothing_from_the_others() -> None:
    script = numbered()

    async def one_leaves() -> TokensWithLogprobs:
        sampler = PromptSampler(cast(tinker.SamplingClient, script), max_tokens=8)
        prompt = tinker.ModelInput.from_ints(list(b"a"))
        leaving, staying = (asyncio.ensure_future(sampler(prompt, [256])) for _ in range(2))
        await asyncio.sleep(0)
        leaving.cancel()
        return await staying

    assert said(asyncio.run(one_leaves())) == "a1"


def test_what_is_asked_later_is_sent_later() -> None:
    script = numbered()

    async def twice() -> None:
        sampler = PromptSampler(cast(tinker.SamplingClient, script), max_tokens=8)
        prompt = tinker.ModelInput.from_ints(list(b"a"))
        await asyncio.gather(sampler(prompt, [256]), sampler(prompt, [256]))
        await sampler(prompt, [256])

    asyncio.run(twice())
    assert script.asked == [2, 1]
