"""Laws of episodes: order of calls, determinism, independence, ranges, what bad replies earn."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tokengym.envs.core.errors import EpisodeStateError, RoleError
from tokengym.envs.core.rollout import Policy, Record, play
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import StopReason, Turn
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines, make_world

Case = tuple[str, str]
Draw = Callable[[str, int], Task]

BAD_REPLIES = [
    "",
    "\n\n\n",
    "\x00\x01\x7f",
    "\u202e\u2066 drow \u2069",
    "9" * 5000,
    "Probability: " + "1" * 400,
    "TRIP " + "O1," * 500,
    "BATTERY 1e999",
    "LABEL",
    "\ud800".encode("utf-8", "replace").decode() * 50,
    "a" * 100_000,
]

replies = st.one_of(
    st.sampled_from(BAD_REPLIES),
    st.text(max_size=80),
    st.binary(max_size=80).map(lambda data: data.decode("utf-8", "replace")),
)


def fixed(reply: str) -> Policy:
    return lambda world, turn, rng: reply


def from_list(said: list[str]) -> Policy:
    remaining = iter(said)
    return lambda world, turn, rng: next(remaining, "")


def mixed(name: str, world: World) -> Policy:
    """A baseline that now and then speaks nonsense."""
    policy = baselines(world.spec.id)[name]

    def reply(world: World, turn: Turn, rng: np.random.Generator) -> str:
        if rng.random() < 0.2:
            return BAD_REPLIES[int(rng.integers(len(BAD_REPLIES)))]
        return policy(world, turn, rng)

    return reply


def check_ranges(world: World, record: Record) -> None:
    """Hold every declared range, the grid, that terms sum to the reward, what answers tell."""
    for turn in record.turns[1:]:
        assert turn.metrics["well_formed"] in (0.0, 1.0)
    for turn in record.turns:
        for role, reward in turn.rewards.items():
            assert reward in world.spec.step_range[role]
            assert reward * 65536 == int(reward * 65536)
            assert sum(turn.terms[role].values()) == reward
    for role, value in record.returns.items():
        assert value in world.spec.return_range[role]


def test_a_reply_before_the_start_or_after_the_end_is_refused(world: World, draw: Draw) -> None:
    with pytest.raises(EpisodeStateError):
        world.reply("x")
    play(world, draw("train", 0), fixed(""), np.random.default_rng(0))
    with pytest.raises(EpisodeStateError):
        world.reply("x")


def test_a_reply_by_another_role_is_refused(world: World, draw: Draw) -> None:
    world.start(draw("train", 0))
    with pytest.raises(RoleError, match="nobody"):
        world.reply("x", role="nobody")


def test_every_baseline_keeps_the_declared_ranges_and_the_turn_limit(
    world: World, draw: Draw
) -> None:
    task = draw("train", 1)
    for name in baselines(world.spec.id):
        for policy in (baselines(world.spec.id)[name], mixed(name, world)):
            record = play(world, task, policy, np.random.default_rng(5))
            check_ranges(world, record)
            spoken = [turn.role for turn in record.turns[:-1]]
            assert max(map(spoken.count, world.spec.roles)) <= world.turn_limit
            assert record.turns[-1].stop_reason is not None


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(said=st.lists(replies, max_size=6), seed=st.integers(0, 3))
def test_no_text_raises_or_leaves_the_ranges(
    case: Case, draw: Draw, said: list[str], seed: int
) -> None:
    world = make_world(*case)
    record = play(world, draw("train", seed), from_list(said), np.random.default_rng(seed))
    check_ranges(world, record)


def test_malformed_replies_never_earn_more_than_the_null_policy(world: World, draw: Draw) -> None:
    for index in range(3):
        task = draw("train", index)
        null = play(world, task, baselines(world.spec.id)["null"], np.random.default_rng(0))
        for reply in BAD_REPLIES:
            record = play(world, task, fixed(reply), np.random.default_rng(0))
            for role in world.spec.roles[:1]:
                assert record.returns[role] <= null.returns[role]


def test_a_truncated_reply_counts_as_malformed(world: World, draw: Draw) -> None:
    policy = baselines(world.spec.id)["oracle"]
    task = draw("train", 2)
    turn = world.start(task)
    while not turn.done:
        said = policy(world, turn, np.random.default_rng(0))
        turn = world.reply(said, complete=False)
    null = play(
        make_world(world.spec.id, world.level),
        task,
        baselines(world.spec.id)["null"],
        np.random.default_rng(0),
    )
    role = world.spec.roles[0]
    assert world.returns[role] <= null.returns[role]


def test_two_worlds_play_the_same_replies_alike_even_when_interleaved(
    case: Case, draw: Draw
) -> None:
    one, two = make_world(*case), make_world(*case)
    task = draw("train", 4)
    policy = baselines(case[0])["random"]
    rngs = np.random.default_rng(1), np.random.default_rng(1)
    turn, twin = one.start(task), two.start(task)
    assert turn == twin
    while not turn.done:
        turn = one.reply(policy(one, turn, rngs[0]))
        twin = two.reply(policy(two, twin, rngs[1]))
        assert turn == twin


def test_a_world_used_before_plays_like_a_fresh_one(case: Case, draw: Draw) -> None:
    used = make_world(*case)
    policy = baselines(case[0])["random"]
    play(used, draw("train", 0), policy, np.random.default_rng(8))
    task = draw("train", 4)
    again = play(used, task, policy, np.random.default_rng(9))
    fresh = play(make_world(*case), task, policy, np.random.default_rng(9))
    assert again == fresh


def test_a_fork_behaves_identically_and_independently(case: Case, draw: Draw) -> None:
    world = make_world(*case)
    policy = baselines(case[0])["random"]
    task = draw("train", 5)
    turn = world.start(task)
    fork = world.fork()
    saved = np.random.default_rng(2), np.random.default_rng(2)
    fork_turn = turn
    while not turn.done:
        turn = world.reply(policy(world, turn, saved[0]))
    while not fork_turn.done:
        fork_turn = fork.reply(policy(fork, fork_turn, saved[1]))
    assert fork_turn == turn
    assert fork.returns == world.returns


def test_no_policy_beats_the_oracle_beyond_chance(case: Case, draw: Draw) -> None:
    world = make_world(*case)
    policies = baselines(case[0])
    role = world.spec.roles[0]
    tasks = [draw("validation", index) for index in range(12)]
    earned = {
        name: np.array(
            [
                play(world, task, policy, np.random.default_rng(number)).returns[role]
                for number, task in enumerate(tasks)
            ]
        )
        for name, policy in policies.items()
    }
    for name, returns in earned.items():
        lead = earned["oracle"] - returns
        assert lead.mean() + 2.5 * lead.std(ddof=1) / math.sqrt(len(tasks)) >= 0, name


def test_stopping_early_ends_the_episode_within_its_range(world: World, draw: Draw) -> None:
    world.start(draw("train", 3))
    turn = world.stop()
    assert turn.truncated
    assert not turn.terminated
    assert turn.stop_reason is StopReason.TOKEN_BUDGET
    for role, value in world.returns.items():
        assert value in world.spec.return_range[role]
    with pytest.raises(EpisodeStateError):
        world.reply("x")
