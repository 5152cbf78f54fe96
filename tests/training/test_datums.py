"""Laws of training data: the cookbook's layout, an advantage for every turn, the same metrics."""

import numpy as np
import pytest
import tinker
import torch
from hypothesis import given
from hypothesis import strategies as st
from tinker_cookbook.completers import TokensWithLogprobs
from tinker_cookbook.rl.data_processing import trajectory_to_data
from tinker_cookbook.rl.metrics import compute_kl_sample_train
from tinker_cookbook.rl.types import Trajectory, TrajectoryGroup, Transition

from tests.training.rollouts import group_of, groups, rollout, rollouts, tokens
from tokengym.agents.training.batches.datums import drift, rollout_data, tokens_of, turn_table
from tokengym.agents.training.loop import without_mask


def assert_equal(mine: list[tinker.Datum], theirs: list[tinker.Datum]) -> None:
    assert len(mine) == len(theirs)
    for one, other in zip(mine, theirs, strict=True):
        assert one.model_input.to_ints() == other.model_input.to_ints()
        assert set(one.loss_fn_inputs) == set(other.loss_fn_inputs)
        for name, tensor in one.loss_fn_inputs.items():
            expected = other.loss_fn_inputs[name]
            assert (tensor.dtype, tensor.shape) == (expected.dtype, expected.shape)
            assert tensor.data == pytest.approx(expected.data)


@given(rollouts, st.floats(-3, 3, width=32))
def test_one_advantage_for_all_turns_gives_the_cookbooks_data(
    drawn: Trajectory, advantage: float
) -> None:
    mine = rollout_data(drawn, [advantage] * len(drawn.transitions))
    assert_equal(mine, trajectory_to_data(drawn, advantage))
    assert len(mine) == 1


@given(st.lists(st.tuples(tokens, tokens), min_size=1, max_size=4), st.floats(-3, 3, width=32))
def test_conversations_rendered_anew_are_several_data_like_the_cookbooks(
    drawn: list[tuple[list[int], list[int]]], advantage: float
) -> None:
    anew = Trajectory(
        [
            Transition(
                ob=tinker.ModelInput.from_ints(read),
                ac=TokensWithLogprobs(said, [-0.5] * len(said)),
                reward=0.0,
                episode_done=False,
            )
            for read, said in drawn
        ],
        tinker.ModelInput.empty(),
    )
    assert_equal(rollout_data(anew, [advantage] * len(drawn)), trajectory_to_data(anew, advantage))


@given(rollouts)
def test_only_sampled_tokens_have_their_turns_advantage(drawn: Trajectory) -> None:
    turns = range(1, len(drawn.transitions) + 1)
    (datum,) = rollout_data(drawn, [float(turn) for turn in turns])
    expected: list[float] = []
    for turn, step in zip(turns, drawn.transitions, strict=True):
        expected += [0.0] * (step.ob.length - len(expected)) + [turn] * len(step.ac.tokens)
    found = datum.loss_fn_inputs
    assert found["advantages"].data == expected[1:]
    assert found["mask"].data == [float(value > 0) for value in expected[1:]]


def test_the_mask_stays_at_home() -> None:
    (datum,) = without_mask(rollout_data(rollout([([1], [2], 0.0)]), [1.0]))
    assert set(datum.loss_fn_inputs) == {"target_tokens", "logprobs", "advantages"}


@given(st.lists(rollouts, min_size=1, max_size=4), st.integers(0, 2**32))
def test_drift_is_what_the_cookbook_logs(drawn: list[Trajectory], seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = [datum for one in drawn for datum in rollout_data(one, [1.0] * len(one.transitions))]
    trained = [rng.normal(size=datum.model_input.length).astype(np.float32) for datum in data]
    outputs = [
        tinker.ForwardBackwardOutput(
            loss_fn_output_type="ArrayRecord",
            loss_fn_outputs=[{"logprobs": tinker.TensorData.from_numpy(row)} for row in part],
            metrics={},
        )
        for part in (trained[:1], trained[1:])
    ]
    theirs = compute_kl_sample_train(data, [torch.from_numpy(row) for row in trained])
    assert drift(data, outputs) == pytest.approx(theirs, rel=1e-4, abs=1e-6)


@given(groups)
def test_tables_hold_what_was_played(drawn: TrajectoryGroup) -> None:
    table = turn_table([drawn])
    assert table.returns_NG()[0].tolist() == drawn.get_total_rewards()
    assert table.taken_NGT.sum() == sum(len(one.transitions) for one in drawn.trajectories_G)
    spoken = sum(len(s.ac.tokens) for one in drawn.trajectories_G for s in one.transitions)
    assert table.tokens_NGT.sum() == spoken
    read = sum(s.ob.length for one in drawn.trajectories_G for s in one.transitions)
    assert tokens_of(drawn) == read + spoken


def test_group_pay_beyond_turns_comes_with_the_last() -> None:
    group = group_of([1.0, 0.0], [0.5])
    group.final_rewards_G = [2.0, 4.0]
    assert turn_table([group]).rewards_NGT.tolist() == [[[1.0, 2.0], [4.5, 0.0]]]
