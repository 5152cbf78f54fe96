"""A game of three roles whose members are rolled out together, each by a policy of its own."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tinker
from tinker_cookbook.completers import TokenCompleter, TokensWithLogprobs
from tinker_cookbook.rl.rollouts import do_single_rollout
from tinker_cookbook.rl.types import Trajectory

from tokengym.agents.tinker.coordinator import Coordinator, Opponent
from tokengym.agents.tinker.env import Member
from tokengym.envs.core.optimum import Optimum
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import StopReason, Turn
from tokengym.envs.core.world import World
from tokengym.envs.tokens.codec import ByteCodec
from tokengym.rewards.bounds import Range

BYTE = ByteCodec()
ROLES = ("ada", "ben", "cleo")
ROUNDS = 2
RELAY = WorldSpec(
    id="test/Relay-v0",
    summary="Three pass a word on; each earns for not leaving it empty, the last for the others.",
    entry_point="",
    baselines="",
    roles=ROLES,
    turn_limits={"only": ROUNDS},
    step_range=dict.fromkeys(ROLES, Range(-10.0, 10.0)),
    return_range=dict.fromkeys(ROLES, Range(-10.0, 10.0)),
)


class Relay(World):
    expected_form = "a word"

    def optimum(self, task: Task) -> Mapping[str, Optimum]:
        return dict.fromkeys(ROLES, Optimum(10.0, exact=False))

    def _draw(self, rng: np.random.Generator) -> Mapping[str, Any]:
        return {"seed": int(rng.integers(1000))}

    def _solve(self, instance: Mapping[str, Any], rng: np.random.Generator) -> Mapping[str, Any]:
        return {}

    def _begin(self, task: Task) -> Turn:
        self.words: list[str] = []
        return Turn(ROLES[0], "Begin.")

    def _respond(self, text: str, complete: bool) -> Turn:
        role = ROLES[len(self.words) % 3]
        self.words.append(text if complete else "")
        terms = {role: {"word": 1.0 if self.words[-1] else -1.0}}
        if len(self.words) == 3 * ROUNDS:
            return self._end(role, "Over.", terms, StopReason.TURN_LIMIT)
        rewards, rounded = self._pay(terms, final=False)
        return Turn(ROLES[len(self.words) % 3], f"Heard: {text}", rewards, rounded)


def table(
    roles: Sequence[str] = ROLES,
    opponents: Mapping[str, Opponent] | None = None,
    reply_timeout: float = 60.0,
) -> list[Member]:
    world = Relay(RELAY)
    task = world.task("train", 0)
    made = Coordinator(
        world, task, "byte", roles=roles, opponents=opponents, reply_timeout=reply_timeout
    )
    return [Member(made, role) for role in roles]


class Player(TokenCompleter):
    """Replies with one word after the other; `before` may hang, raise or do nothing."""

    def __init__(self, word: str, before: Callable[[int], Any] | None = None) -> None:
        self.word = word
        self.before = before
        self.calls = 0

    async def __call__(
        self, model_input: tinker.ModelInput, stop: Any, *, max_tokens: int | None = None
    ) -> TokensWithLogprobs:
        self.calls += 1
        await asyncio.sleep(0)
        if self.before is not None:
            await self.before(self.calls)
        tokens = BYTE.write(f"{self.word}{self.calls}")
        return TokensWithLogprobs(tokens=tokens, maybe_logprobs=[-0.5] * len(tokens))


async def rolled(
    members: Sequence[Member], policies: Sequence[TokenCompleter]
) -> list[Trajectory | BaseException]:
    """Roll all members out; nobody may need more than ten seconds."""
    rollouts = [do_single_rollout(*pair) for pair in zip(policies, members, strict=True)]
    async with asyncio.timeout(10):
        return await asyncio.gather(*rollouts, return_exceptions=True)


def total(rollout: Trajectory | BaseException) -> float:
    assert isinstance(rollout, Trajectory)
    return sum(step.reward for step in rollout.transitions)


def reason(rollout: Trajectory | BaseException) -> str | None:
    assert isinstance(rollout, Trajectory)
    return rollout.stop_reason
