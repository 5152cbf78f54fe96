"""Whatever one member of an episode does, every other one gets its turn or the end in time."""

import asyncio
import selectors
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tinker_cookbook.completers import TokenCompleter
from tinker_cookbook.rl.rollout_limits import RolloutLimits
from tinker_cookbook.rl.rollout_runner import run_rollout
from tinker_cookbook.rl.rollouts import do_single_rollout
from tinker_cookbook.rl.types import Trajectory

from tests.every import every
from tests.tinker.relay import BYTE, ROLES, ROUNDS, Player, Relay, reason, rolled, table, total
from tokengym.agents.tinker.env import Member
from tokengym.envs.core.errors import EpisodeStateError, RoleError


def test_three_roles_play_one_episode_in_turn() -> None:
    members = table()
    rollouts = asyncio.run(rolled(members, [Player(role) for role in ROLES]))
    world = members[0].world
    assert isinstance(world, Relay)
    assert world.words == ["ada1", "ben1", "cleo1", "ada2", "ben2", "cleo2"]
    assert [total(rollout) for rollout in rollouts] == [2.0] * 3
    assert [reason(rollout) for rollout in rollouts] == ["max_turns"] * 3
    for rollout in rollouts:
        assert isinstance(rollout, Trajectory)
        assert [step.episode_done for step in rollout.transitions] == [False, True]
        assert rollout.transitions[-1].metrics["abandoned"] == 0.0
        first, second = rollout.transitions
        kept = first.ob.to_ints() + first.ac.tokens
        assert second.ob.to_ints()[: len(kept)] == kept


async def fail(call: int) -> None:
    raise ConnectionError(f"lost at call {call}")


async def hang(call: int) -> None:
    await asyncio.sleep(3600)


async def cancel_me(call: int) -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


def at(number: int, does: Callable[[int], Any]) -> Callable[[int], Any]:
    """Do it at one call only."""

    async def before(call: int) -> None:
        if call == number:
            await does(call)

    return before


@pytest.mark.parametrize("does", [fail, hang, cancel_me])
@every("who", range(3))
@pytest.mark.parametrize("call", [1, 2])
def test_a_silent_member_ends_the_episode_for_all(
    does: Callable[[int], Any], who: int, call: int
) -> None:
    async def play() -> tuple[list[Trajectory | BaseException], list[Member]]:
        members = table(reply_timeout=0.2)
        policies = [
            Player(role, at(call, does) if k == who else None) for k, role in enumerate(ROLES)
        ]
        tasks = [
            asyncio.create_task(do_single_rollout(policy, member))
            for policy, member in zip(policies, members, strict=True)
        ]
        others = [task for k, task in enumerate(tasks) if k != who]
        began = time.monotonic()
        async with asyncio.timeout(10):
            await asyncio.gather(*others)
        assert time.monotonic() - began < 5
        tasks[who].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True), members

    rollouts, members = asyncio.run(play())
    world = members[0].world
    assert isinstance(world, Relay)
    assert members[0].coordinator.abandoned
    replies = 3 * (call - 1) + who
    assert [bool(word) for word in world.words] == [k < replies for k in range(3 * ROUNDS)]
    expected = ConnectionError if does is fail else asyncio.CancelledError
    assert isinstance(rollouts[who], expected)
    for k, role in enumerate(ROLES):
        if k != who:
            # What the empty replies earned is paid.
            assert total(rollouts[k]) == world.returns[role]
            assert reason(rollouts[k]) == "rollout_timeout"
            found = rollouts[k]
            assert isinstance(found, Trajectory)
            assert found.transitions[-1].metrics["abandoned"] == 1.0


def test_a_member_that_never_begins_is_not_waited_for() -> None:
    for missing in range(3):
        members = table(reply_timeout=0.1)
        present = [member for k, member in enumerate(members) if k != missing]
        rollouts = asyncio.run(rolled(present, [Player("x"), Player("y")]))
        assert [reason(rollout) for rollout in rollouts] == ["rollout_timeout"] * 2


@pytest.mark.nightly
def test_a_late_member_gets_the_end_and_its_earnings() -> None:
    async def slow(call: int) -> None:
        await asyncio.sleep(1.0)

    members = table(reply_timeout=0.4)
    rollouts = asyncio.run(rolled(members, [Player("a"), Player("b", slow), Player("c")]))
    assert [total(rollout) for rollout in rollouts] == [0.0, -2.0, -2.0]
    late = rollouts[1]
    assert isinstance(late, Trajectory)
    assert "malformed" not in late.transitions[-1].metrics  # nobody read it
    assert reason(late) == "rollout_timeout"


def test_a_rollout_that_its_runner_ends_early_is_gone() -> None:
    async def play() -> list[Any]:
        members = table()
        first = run_rollout(Player("a"), members[0], limits=RolloutLimits(max_turns=1))
        others = [do_single_rollout(Player("x"), member) for member in members[1:]]
        async with asyncio.timeout(10):
            return await asyncio.gather(first, *others)

    rollouts = asyncio.run(play())
    assert [reason(rollout) for rollout in rollouts] == ["max_turns", *["rollout_timeout"] * 2]


class HurriedLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer whenever there is nothing else to do."""

    def __init__(self) -> None:
        super().__init__(_HurriedSelector(self))
        self.skipped = 0.0

    def time(self) -> float:
        return super().time() + self.skipped


class _HurriedSelector(selectors.DefaultSelector):
    def __init__(self, loop: HurriedLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready and timeout:
            self._loop.skipped += timeout
        return ready


def waited(
    members: Sequence[Member], policies: Sequence[TokenCompleter]
) -> tuple[list[Any], float]:
    """Roll out members; returns the rollouts, and how many seconds that would have taken."""

    async def play() -> tuple[list[Any], float]:
        loop = asyncio.get_running_loop()
        began = loop.time()
        found = await asyncio.gather(
            *(do_single_rollout(*pair) for pair in zip(policies, members, strict=True))
        )
        return found, loop.time() - began

    with asyncio.Runner(loop_factory=HurriedLoop) as runner:
        return runner.run(play())


def test_absent_members_are_given_up_early() -> None:
    present = table(reply_timeout=1800.0)[:2]
    rollouts, seconds = waited(present, [Player("a"), Player("b")])
    assert [reason(rollout) for rollout in rollouts] == ["rollout_timeout"] * 2
    assert 30.0 <= seconds < 31.0
    # Whoever has joined has its whole time, and no more.
    for pause, end, most in (
        (1700.0, "max_turns", 6 * 1700.0),
        (1900.0, "rollout_timeout", 2000.0),
    ):

        async def slowly(call: int, pause: float = pause) -> None:
            await asyncio.sleep(pause)

        members = table(reply_timeout=1800.0)
        rollouts, seconds = waited(members, [Player(role, slowly) for role in ROLES])
        assert {reason(rollout) for rollout in rollouts} == {end}
        assert seconds < most + 1.0


def test_members_can_be_played_by_hand() -> None:
    async def play() -> list[float]:
        members = table()
        opened = [asyncio.create_task(member.initial_observation()) for member in members]
        earned = [0.0] * 3
        steps: list[asyncio.Task[Any]] = list(opened)
        for turn in range(3 * ROUNDS):
            who = turn % 3
            result = await steps[who]
            earned[who] += getattr(result, "reward", 0.0)
            steps[who] = asyncio.create_task(members[who].step(BYTE.write("hi")))
        return [value + (await step).reward for value, step in zip(earned, steps, strict=True)]

    assert asyncio.run(play()) == [2.0] * 3


def test_no_interleaving_deadlocks() -> None:
    delays = st.lists(st.sampled_from((0.0, 0.001, 0.003)), min_size=6, max_size=6)
    ends = st.sampled_from(("reply", "fail", "cancel"))

    @given(delays, st.integers(0, 2), st.integers(1, 2), ends)
    def law(waits: list[float], who: int, call: int, end: str) -> None:
        def before(place: int) -> Callable[[int], Any]:
            async def wait(number: int) -> None:
                await asyncio.sleep(waits[2 * place + number - 1])
                if place == who and number == call and end != "reply":
                    await (fail if end == "fail" else cancel_me)(number)

            return wait

        members = table()
        policies = [Player(role, before(place)) for place, role in enumerate(ROLES)]
        rollouts = asyncio.run(rolled(members, policies))
        assert members[0].coordinator.abandoned == (end != "reply")
        whole = [rollout for rollout in rollouts if isinstance(rollout, Trajectory)]
        assert len(whole) == (3 if end == "reply" else 2)

    law()


@pytest.mark.parametrize(
    ("roles", "opponents"),
    [((), dict.fromkeys(ROLES)), (ROLES, {"ada": None}), (("ada",), {"ben": None}), (("dan",), {})],
)
def test_every_role_has_exactly_one_player(roles: Sequence[str], opponents: Any) -> None:
    with pytest.raises(RoleError, match="opponents must play"):
        table(roles, opponents)


def test_a_member_joins_once() -> None:
    async def twice() -> None:
        (member,) = table(("ada",), dict.fromkeys(("ben", "cleo"), lambda world, turn, rng: "x"))
        await member.initial_observation()
        with pytest.raises(EpisodeStateError, match="one episode"):
            await member.initial_observation()

    asyncio.run(twice())
