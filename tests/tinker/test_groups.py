"""A group plays one Task, pickles, and reports how its returns tie."""

import asyncio
import pickle
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import tinker
from hypothesis import given
from hypothesis import strategies as st
from tinker_cookbook.completers import TokenCompleter, TokensWithLogprobs
from tinker_cookbook.rl.data_processing import assemble_training_data, compute_advantages
from tinker_cookbook.rl.metric_util import compute_trajectory_metrics
from tinker_cookbook.rl.rollouts import do_group_rollout
from tinker_cookbook.rl.types import Trajectory, TrajectoryGroup, Transition

from tokengym.agents.tinker.env import Member
from tokengym.agents.tinker.groups import TaskGroupBuilder
from tokengym.envs.core.errors import OptionError, RoleError, UnknownWorldError
from tokengym.envs.core.task import Task
from tokengym.envs.registry import make_world
from tokengym.envs.tokens.codec import ByteCodec
from tokengym.rewards.ties import tie_statistics

BYTE = ByteCodec()


@pytest.fixture(scope="module")
def builder() -> TaskGroupBuilder:
    return TaskGroupBuilder(make_world("forecast").task("train", 3), "byte", 4)


class Forecaster(TokenCompleter):
    """States one probability after the other."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []

    async def __call__(
        self, model_input: tinker.ModelInput, stop: Any, *, max_tokens: int | None = None
    ) -> TokensWithLogprobs:
        self.asked.append(model_input.to_ints())
        tokens = BYTE.write(f"Hm.\nProbability: 0.{len(self.asked) % 10}00")
        return TokensWithLogprobs(tokens=tokens, maybe_logprobs=[-0.5] * len(tokens))


def test_a_group_holds_its_prompts_tokens_once(builder: TaskGroupBuilder) -> None:
    async def opened() -> set[int]:
        members = await builder.make_envs()
        held = set()
        for member in members:
            assert isinstance(member, Member)
            observation = await member.initial_observation()
            assert isinstance(observation, tuple)
            (chunk,) = observation[0].chunks
            assert isinstance(chunk, tinker.EncodedTextChunk)
            (piece,) = member.coordinator.episode.pieces_of(member.role)
            assert chunk.tokens is piece
            held.add(id(piece))
        return held

    assert len(asyncio.run(opened())) == 1


def test_a_group_rolls_out_and_trains(builder: TaskGroupBuilder) -> None:
    policy = Forecaster()
    group = asyncio.run(do_group_rollout(pickle.loads(pickle.dumps(builder)), policy))
    assert len(group.trajectories_G) == 4
    assert len(set(map(tuple, policy.asked))) == 1
    assert [rollout.stop_reason for rollout in group.trajectories_G] == ["completed"] * 4
    rewards = group.get_total_rewards()
    assert len(set(rewards)) > 1
    data, _ = assemble_training_data([group], compute_advantages([group]))
    assert len(data) == 4
    logged = compute_trajectory_metrics([group], [builder.logging_tags()])
    assert logged["env/all/malformed"] == 0.0
    assert logged["env/all/reward/total"] == pytest.approx(sum(rewards) / 4)
    for key, value in tie_statistics([rewards]).items():
        assert logged[f"env/all/{key}"] == pytest.approx(value)


def test_members_play_one_task_in_worlds_of_their_own(builder: TaskGroupBuilder) -> None:
    envs = asyncio.run(builder.make_envs())
    assert {env.task.fingerprint for env in envs if isinstance(env, Member)} == {
        builder.task.fingerprint
    }
    assert len({id(env.world) for env in envs if isinstance(env, Member)}) == 4


def test_a_builder_pickles_with_a_renderer(builder: TaskGroupBuilder, tokenizer_named: Any) -> None:
    named = replace(builder, codec=f"qwen3_instruct@{tokenizer_named('bpe')}")
    made = replace(builder, codec=asyncio.run(named.make_envs())[0].codec)  # type: ignore[attr-defined]
    for group in (named, made):
        twin = pickle.loads(pickle.dumps(group))
        assert twin == group
        assert len(asyncio.run(twin.make_envs())) == 4


def test_tags_name_world_and_level(builder: TaskGroupBuilder) -> None:
    assert builder.logging_tags() == ["forecast", "forecast-easy"]


def finished(builder: TaskGroupBuilder, returns: Sequence[float]) -> TrajectoryGroup:
    """Return a group whose members earned `returns`, in two steps each."""
    nothing = TokensWithLogprobs(tokens=[1], maybe_logprobs=[0.0])
    empty = tinker.ModelInput.empty()
    rollouts = [
        Trajectory([Transition(empty, nothing, value / 2, last) for last in (False, True)], empty)
        for value in returns
    ]
    results = asyncio.run(builder.compute_group_rewards(rollouts, []))
    assert [reward for reward, _ in results] == [0.0] * len(returns)
    return TrajectoryGroup(rollouts, [0.0] * len(returns), [metrics for _, metrics in results])


values = st.sampled_from((0.0, 0.25, 0.5, 0.5 + 1e-7, 1.0))


def logged(builder: TaskGroupBuilder, groups: list[list[float]], size: int) -> dict[str, float]:
    built = replace(builder, group_size=size, groups_in_batch=len(groups))
    finished_groups = [finished(built, returns) for returns in groups]
    return compute_trajectory_metrics(finished_groups, [built.logging_tags()] * len(groups))


@pytest.mark.nightly
def test_the_log_holds_the_pooled_statistics(builder: TaskGroupBuilder) -> None:
    """Where members were lost, all but the pair rate is exact."""

    def groups_of(least: int, most: int) -> Any:
        group = st.lists(values, min_size=least, max_size=most)
        return st.lists(group, min_size=1, max_size=5)

    @given(groups_of(1, 6) | st.integers(1, 6).flatmap(lambda size: groups_of(size, size)))
    def law(groups: list[list[float]]) -> None:
        sizes = {len(group) for group in groups}
        metrics = logged(builder, groups, max(sizes))
        for key, value in tie_statistics(groups).items():
            if len(sizes) == 1 or key != "reward_tie_pair_rate":
                # With no eligible group at all nothing but their number is reported.
                assert metrics.get(f"env/all/{key}", 0.0) == pytest.approx(value)

    law()


@pytest.mark.parametrize("sizes", [{"group_size": 0}, {"groups_in_batch": 0}])
def test_sizes_are_positive(builder: TaskGroupBuilder, sizes: dict[str, int]) -> None:
    with pytest.raises(OptionError, match="at least 1"):
        replace(builder, **sizes)  # type: ignore[arg-type]


def test_wrong_names_are_refused(builder: TaskGroupBuilder) -> None:
    alien = Task.create(world="x/Y-v0", level="a", split="train", index=0, instance={}, answer={})
    with pytest.raises(UnknownWorldError):
        replace(builder, task=alien)
    with pytest.raises(RoleError, match="nobody"):
        asyncio.run(replace(builder, opponents={"forecaster": "nobody"}).make_envs())
    with pytest.raises(OptionError, match="codec"):
        asyncio.run(replace(builder, codec="nonsense").make_envs())
    with pytest.raises(OptionError):
        asyncio.run(replace(builder, options={"nonsense": 1}).make_envs())
