"""Laws of sampling a group: seeds by who asks and when, one request for the openings."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import pytest
import tinker
from tinker_cookbook.completers import TinkerTokenCompleter, TokensWithLogprobs
from tinker_cookbook.rl.rollouts import do_group_rollout
from tinker_cookbook.rl.types import Env, EnvGroupBuilder, StepResult, Trajectory

from tests.training.rollouts import Scripted
from tokengym.agents.tinker.dataset import TaskDatasetBuilder
from tokengym.agents.tinker.groups import TaskGroupBuilder
from tokengym.agents.training.batches.sampling import GroupSampler, PolicySampler, SeededRollouts


@dataclass
class Parrot(Env):
    """Opens with a text, answers with the reply, and ends after two turns."""

    opening: bytes
    wait: float = 0.0
    turns: int = 0

    async def initial_observation(self) -> tuple[tinker.ModelInput, list[int]]:
        await asyncio.sleep(self.wait)
        return tinker.ModelInput.from_ints(list(self.opening)), [256]

    async def step(self, action: Sequence[int], *, extra: object = None) -> StepResult:
        self.turns += 1
        await asyncio.sleep(self.wait)
        seen = tinker.ModelInput.from_ints([*self.opening, *action])
        return StepResult(0.0, self.turns == 2, seen, [256])


@dataclass(frozen=True)
class Parrots(EnvGroupBuilder):
    openings: tuple[bytes, ...]
    waits: tuple[float, ...]

    async def make_envs(self) -> Sequence[Env]:
        return [Parrot(*both) for both in zip(self.openings, self.waits, strict=True)]


def seeded() -> Scripted:
    """Replies with the seed of the request and the number of the sample."""
    return Scripted(lambda text, number, temperature: f"{number}", by_seed=True)


def completer(script: Scripted, max_tokens: int = 64) -> TinkerTokenCompleter:
    return TinkerTokenCompleter(cast(tinker.SamplingClient, script), max_tokens)


def roll(builder: EnvGroupBuilder, script: Scripted, *key: int) -> list[Trajectory]:
    strategy = SeededRollouts(key or (0,))
    return asyncio.run(do_group_rollout(builder, completer(script), strategy)).trajectories_G


def said(rollouts: Sequence[Trajectory]) -> list[list[str]]:
    return [[bytes(step.ac.tokens[:-1]).decode() for step in one.transitions] for one in rollouts]


def test_replies_do_not_depend_on_who_asks_first() -> None:
    waits = [(0.0, 0.0, 0.0), (0.03, 0.0, 0.015), (0.0, 0.03, 0.015)]
    found = [said(roll(Parrots((b"a",) * 3, wait), seeded())) for wait in waits]
    assert found[0] == found[1] == found[2]
    replies = [reply for one in found[0] for reply in one]
    assert len(set(replies)) == len(replies) == 6


def test_the_openings_of_a_group_are_one_request() -> None:
    script = seeded()
    roll(Parrots((b"a",) * 4, (0.0,) * 4), script)
    assert script.asked == [4, 1, 1, 1, 1]


def test_who_opens_otherwise_has_a_request_of_its_own() -> None:
    script = seeded()
    roll(Parrots((b"a", b"a", b"b"), (0.0, 0.0, 0.01)), script)
    assert sorted(script.asked) == [1, 1, 1, 1, 3]


def test_another_key_task_or_number_gives_other_replies() -> None:
    dataset, _ = asyncio.run(
        TaskDatasetBuilder(world="forecast", codec="byte", groups_per_batch=2, group_size=2)()
    )
    one, two = dataset.get_batch(0)
    later = dataset.get_batch(1)[0]
    assert [one.number, two.number, later.number] == [0, 1, 2]
    builders: list[TaskGroupBuilder] = [one, two, replace(one, number=2)]
    found = [said(roll(builder, seeded())) for builder in builders]
    found.append(said(roll(one, seeded(), 1)))
    assert len({str(replies) for replies in found}) == 4
    assert said(roll(one, seeded())) == found[0]


@pytest.mark.parametrize("at_once", [1, 3])
def test_no_more_requests_are_under_way_than_allowed(at_once: int) -> None:
    script = seeded()

    async def ask() -> None:
        sampler = PolicySampler(completer(script), at_once)
        prompts = [tinker.ModelInput.from_ints([97 + number]) for number in range(9)]
        await asyncio.gather(*(sampler.sample(prompt, [256], 8, 1, 0) for prompt in prompts))

    asyncio.run(ask())
    assert script.busiest == at_once
    assert len(script.asked) == 9


def test_a_tighter_bound_on_a_reply_holds() -> None:
    sampler = PolicySampler(completer(seeded(), 8))
    assert [sampler.limit(bound) for bound in (None, 2, 100)] == [8, 2, 8]


def test_an_error_of_the_openings_reaches_everyone() -> None:
    def says(text: str, number: int, temperature: float) -> str:
        raise ValueError("no such prompt")

    with pytest.raises(ValueError, match="no such prompt"):
        roll(Parrots((b"a",) * 2, (0.0, 0.01)), Scripted(says))


def test_a_member_that_ends_early_takes_nothing_from_the_others() -> None:
    async def one_leaves() -> TokensWithLogprobs | None:
        group, sampler = GroupSampler((0,), [0, 1]), PolicySampler(completer(seeded()))
        prompt = tinker.ModelInput.from_ints([97])
        leaving, staying = (
            asyncio.ensure_future(group.opening(sampler, episode, prompt, [256], 64))
            for episode in range(2)
        )
        await asyncio.sleep(0)
        leaving.cancel()
        return await staying

    reply = asyncio.run(one_leaves())
    assert reply is not None
    assert bytes(reply.tokens[:-1]).decode().endswith(" 1")
