"""Opponents play any share of the roles, fail for all members, and leave nothing running."""

import asyncio
import itertools
from typing import Any

import numpy as np

from tests.tinker.relay import ROLES, Player, reason, rolled, table, total
from tokengym.agents.tinker.coordinator import Opponent
from tokengym.envs.core.episode import DecodedReply
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World


def test_any_share_of_the_roles_may_be_opponents() -> None:
    async def slowly(world: World, turn: Turn, rng: np.random.Generator) -> str:
        await asyncio.sleep(0.001)
        return "slow"

    def cut_off(world: World, turn: Turn, rng: np.random.Generator) -> DecodedReply:
        return DecodedReply("half a w", complete=False)

    for count in (1, 2, 3):
        for roles in itertools.combinations(ROLES, count):
            for opponent, worth in ((slowly, 2.0), (cut_off, -2.0)):
                members = table(roles, {role: opponent for role in ROLES if role not in roles})
                rollouts = asyncio.run(rolled(members, [Player(role) for role in roles]))
                assert [total(rollout) for rollout in rollouts] == [2.0] * count
                returns = members[0].world.returns
                assert all(returns[role] == worth for role in ROLES if role not in roles)


def test_an_opponents_error_reaches_every_member() -> None:
    async def later(world: World, turn: Turn, rng: np.random.Generator) -> str:
        await asyncio.sleep(0)
        raise ValueError("no reply today")

    def at_once(world: World, turn: Turn, rng: np.random.Generator) -> str:
        raise ValueError("no reply today")

    for opponent in (later, at_once):
        members = table(("ada", "cleo"), {"ben": opponent})
        found = asyncio.run(rolled(members, [Player("a"), Player("c")]))
        assert [str(error) for error in found] == ["no reply today"] * 2


def test_an_opponent_that_hangs_is_given_up() -> None:
    async def hanging(world: World, turn: Turn, rng: np.random.Generator) -> str:
        await asyncio.sleep(3600)
        return ""

    for roles in (("ada", "cleo"), ("ada",)):
        opponents: dict[str, Opponent] = {"ben": hanging}
        if "cleo" not in roles:
            opponents["cleo"] = lambda world, turn, rng: "hm"
        members = table(roles, opponents, reply_timeout=0.1)
        rollouts = asyncio.run(rolled(members, [Player(role) for role in roles]))
        assert [reason(rollout) for rollout in rollouts] == ["rollout_timeout"] * len(roles)
        assert members[0].coordinator.abandoned


def test_an_opponent_that_is_given_up_is_cancelled() -> None:
    """Nothing of an abandoned episode is left running, nor writes into it later."""
    ended: list[str] = []

    async def hanging(world: World, turn: Turn, rng: np.random.Generator) -> str:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return "too late"

    async def play() -> set[asyncio.Task[Any]]:
        members = table(("ada", "cleo"), {"ben": hanging}, reply_timeout=0.1)
        await rolled(members, [Player("a"), Player("c")])
        await asyncio.sleep(0)
        return asyncio.all_tasks()

    assert len(asyncio.run(play())) == 1  # this one
    assert ended == ["cancelled"]
