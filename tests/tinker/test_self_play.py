"""Groups of several trained roles: one Task, one baseline and one set of tie metrics a role."""

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
from tinker_cookbook.rl.rollout_strategy import RetryOnFailure
from tinker_cookbook.rl.rollouts import do_group_rollout
from tinker_cookbook.rl.types import Trajectory, TrajectoryGroup, Transition

from tokengym.agents.tinker.coordinator import Coordinator
from tokengym.agents.tinker.dataset import TaskDatasetBuilder
from tokengym.agents.tinker.env import Member
from tokengym.agents.tinker.groups import TaskGroupBuilder
from tokengym.agents.tinker.role_baselines import role_rewards, split_roles
from tokengym.envs.core.errors import OptionError, RoleError
from tokengym.envs.registry import make_world, spec
from tokengym.envs.tokens.codec import ByteCodec
from tokengym.rewards.ties import tie_statistics

BYTE = ByteCodec()
ROLES = ("predictor", "challenger")


@pytest.fixture(scope="module")
def builder() -> TaskGroupBuilder:
    return TaskGroupBuilder(make_world("disruption").task("train", 3), "byte", 4, role=ROLES)


class Debater(TokenCompleter):
    """Speaks for either role, never twice alike; one call in `lost` fails."""

    def __init__(self, lost: int = 0) -> None:
        self.calls = 0
        self.lost = lost

    async def __call__(
        self, model_input: tinker.ModelInput, stop: Any, *, max_tokens: int | None = None
    ) -> TokensWithLogprobs:
        self.calls += 1
        call = self.calls
        await asyncio.sleep(0)
        if call == self.lost:
            raise ConnectionError("lost")
        number = call % 8
        label = ("disruptive", "consolidating", "neutral")[call % 3]
        text = bytes(token for token in model_input.to_ints() if token < 256).decode()
        if "A predictor answered" in text:
            reply = f"ARGUE {label}\nCLAIM n_i >= {number}"
        else:
            reply = f"LABEL {label}\nP 0.{number} 0.1 0.{9 - number}\nCLAIM n_k >= 0"
        tokens = BYTE.write(reply)
        return TokensWithLogprobs(tokens=tokens, maybe_logprobs=[-0.5] * len(tokens))


def test_all_roles_of_all_episodes_play_one_task(builder: TaskGroupBuilder) -> None:
    members = asyncio.run(pickle.loads(pickle.dumps(builder)).make_envs())
    assert [member.role for member in members] == list(ROLES) * 4
    assert {member.task.fingerprint for member in members} == {builder.task.fingerprint}
    assert len({id(member.world) for member in members}) == 4


def test_advantages_are_returns_less_the_roles_mean(builder: TaskGroupBuilder) -> None:
    group = asyncio.run(do_group_rollout(builder, Debater()))
    earned = [sum(step.reward for step in rollout.transitions) for rollout in group.trajectories_G]
    (advantages,) = compute_advantages([group])
    for place, role in enumerate(ROLES):
        own = earned[place::2]
        assert len(set(own)) > 1
        mean = sum(own) / len(own)
        assert advantages.tolist()[place::2] == pytest.approx([value - mean for value in own])
        assert advantages[place::2].sum().item() == pytest.approx(0.0, abs=1e-6), role
    data, _ = assemble_training_data([group], [advantages])
    assert len(data) == 8
    logged = compute_trajectory_metrics([group], [builder.logging_tags()])
    assert logged["env/all/reward/total"] == pytest.approx(sum(earned[::2]) / 4)
    for place, role in enumerate(ROLES):
        assert logged[f"env/all/{role}/reward"] == pytest.approx(sum(earned[place::2]) / 4)
        assert f"env/all/{role}/malformed" in logged
        for name, value in tie_statistics([earned[place::2]]).items():
            assert logged[f"env/all/{role}/{name}"] == pytest.approx(value)
    for name, value in tie_statistics([earned[::2], earned[1::2]]).items():
        assert logged[f"env/all/{name}"] == pytest.approx(value)


returns = st.sampled_from((-1.0, 0.0, 0.25, 0.5, 1.5))
outcome = st.tuples(returns, st.booleans(), st.booleans())
"""A member's return, whether it replied, and whether its episode was abandoned."""


def finished(outcomes: Sequence[Sequence[tuple[float, bool, bool]]]) -> Any:
    """Return members and rollouts of episodes that came to the given ends."""
    world = make_world("disruption")
    task = world.task("train", 0)
    members, rollouts = [], []
    empty = tinker.ModelInput.empty()
    for episode in outcomes:
        made = Coordinator(world.fork(), task, "byte", roles=ROLES)
        made.abandoned = any(abandoned for _, _, abandoned in episode)
        for role, (value, replied, _) in zip(ROLES, episode, strict=True):
            action = TokensWithLogprobs(tokens=[1] * replied, maybe_logprobs=[0.0] * replied)
            members.append(Member(made, role))
            end = Transition(
                empty, action, value, True, metrics={"abandoned": float(made.abandoned)}
            )
            rollouts.append(Trajectory([end], empty))
    return members, rollouts


@pytest.mark.nightly
@given(st.lists(st.tuples(outcome, outcome), min_size=1, max_size=5))
def test_each_role_is_centred_alone(
    outcomes: list[tuple[tuple[float, bool, bool], tuple[float, bool, bool]]],
) -> None:
    members, rollouts = finished(outcomes)
    results = role_rewards(ROLES, members, rollouts, 1)
    group = TrajectoryGroup(rollouts, [r for r, _ in results], [m for _, m in results])
    (advantages,) = compute_advantages([group])
    for place, role in enumerate(ROLES):
        own = [
            (episode[place][0], episode[place][1] and not any(end for *_, end in episode))
            for episode in outcomes
        ]
        kept = [value for value, counts in own if counts]
        for (value, counts), advantage in zip(own, advantages.tolist()[place::2], strict=True):
            wanted = value - sum(kept) / len(kept) if counts else 0.0
            assert advantage == pytest.approx(wanted, abs=1e-6)
        key = f"{role}/reward_tie_eligible_groups"
        (reported,) = [metrics for _, metrics in results if key in metrics]
        eligible = len(kept) >= 2
        assert reported[key] == eligible
        assert (f"{role}/reward_tie_pair_rate" in reported) == eligible
    found = split_roles(group, ROLES)
    for place, role in enumerate(ROLES):
        wanted_returns = [
            episode[place][0]
            for episode in outcomes
            if episode[place][1] and not any(end for *_, end in episode)
        ]
        assert (role in found) == bool(wanted_returns)
        assert not wanted_returns or found[role].get_total_rewards() == wanted_returns


def test_a_retried_member_does_not_hold_up_its_group(
    builder: TaskGroupBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cookbook replaces a lost member by one whose partners never begin."""
    monkeypatch.setattr("tokengym.agents.tinker.coordinator.JOIN_TIMEOUT", 0.3)
    small = replace(builder, group_size=2)

    async def play() -> TrajectoryGroup:
        async with asyncio.timeout(20):
            return await do_group_rollout(small, Debater(lost=2), RetryOnFailure())

    group = asyncio.run(play())
    assert len(group.trajectories_G) == 4
    assert len(group.rollout_errors) == 1
    stops = [rollout.stop_reason for rollout in group.trajectories_G]
    assert stops.count("rollout_timeout") == 2  # the retried one and the lost one's partner
    (advantages,) = compute_advantages([group])
    for stop, advantage in zip(stops, advantages.tolist(), strict=True):
        assert stop != "rollout_timeout" or advantage == pytest.approx(0.0, abs=1e-6)


def test_the_dataset_trains_the_roles_without_an_opponent() -> None:
    row = spec("disruption")
    made = TaskDatasetBuilder(world="disruption", codec="byte", n_batches=1, self_play=True)
    dataset, _ = asyncio.run(made())
    for group in dataset.get_batch(0):
        assert isinstance(group, TaskGroupBuilder)
        assert group.role == row.roles
    with pytest.raises(OptionError, match="self_play"):
        asyncio.run(
            TaskDatasetBuilder(world="disruption", codec="byte", self_play=True, role="predictor")()
        )


def test_a_role_is_trained_or_an_opponents_but_not_both(builder: TaskGroupBuilder) -> None:
    with pytest.raises(RoleError, match="opponents must play"):
        asyncio.run(replace(builder, opponents={"challenger": "null"}).make_envs())
