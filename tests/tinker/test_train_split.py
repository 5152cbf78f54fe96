"""The cookbook's builders pay what a world declares for training, and what they keep says so."""

import asyncio
import pickle
from typing import Any

import pytest

from tests.tinker.test_groups import Forecaster
from tokengym.agents.rollouts import RolloutOrigin, RolloutRecord
from tokengym.agents.tinker.dataset import TaskDatasetBuilder
from tokengym.agents.tinker.groups import TaskGroupBuilder
from tokengym.agents.training.presets import preset
from tokengym.envs import make_world, specs

pytest.importorskip("tinker_cookbook")

from tinker_cookbook.rl.rollouts import do_group_rollout

REPLIES = [f"Hm.\nProbability: 0.{member}00" for member in range(1, 5)]


def returns(builder: TaskGroupBuilder) -> list[float]:
    """Return what a group of forecasts from .1 to .4 earns."""
    group = asyncio.run(do_group_rollout(builder, Forecaster()))
    return sorted(group.get_total_rewards())


def worth(index: int, split: str, **options: Any) -> list[float]:
    """Return what a world with these options pays the same forecasts."""
    world = make_world("forecast", **options)
    paid = []
    for reply in REPLIES:
        world.start(world.task(split, index))
        paid.append(world.reply(reply).rewards["forecaster"])
    return sorted(paid)


def groups(split: str, **options: Any) -> list[TaskGroupBuilder]:
    """Return groups on the third Task of a split, however they are built."""
    task = make_world("forecast", **options).task(split, 2)
    alone = TaskGroupBuilder(task, "byte", 4, options=options)
    made = TaskDatasetBuilder(
        world="forecast", codec="byte", options=options, split=split, n_batches=3,
        groups_per_batch=1, group_size=4,
    )  # fmt: skip
    training, _ = asyncio.run(made())
    return [alone, pickle.loads(pickle.dumps(alone)), training.get_batch(2)[0]]


@pytest.mark.parametrize("label", [None, "outcome", "replay:8"])
@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_groups_are_paid_the_declared_label_unless_another_is_named(
    split: str, label: str | None
) -> None:
    options = {} if label is None else {"label": label}
    declared = {"label": "expected"} if split == "train" else {}
    for builder in groups(split, **options):
        assert returns(builder) == worth(2, split, **{**declared, **options})


def test_the_test_set_of_a_builder_is_paid_by_outcomes() -> None:
    made = TaskDatasetBuilder(world="forecast", codec="byte", n_batches=1, test_size=3)
    training, test = asyncio.run(made())
    assert test is not None
    for dataset, label in ((training, {"label": "expected"}), (test, {})):
        members = asyncio.run(dataset.get_batch(0)[0].make_envs())
        kinds = {str(member.task.options) for member in members}  # type: ignore[attr-defined]
        assert kinds == {str(label)}


def test_records_name_the_options_that_they_were_paid_by() -> None:
    kept: list[RolloutRecord] = []
    task = make_world("forecast").task("train", 0)
    builder = TaskGroupBuilder(task, "byte", 2, origin=RolloutOrigin("train"), record=kept.extend)
    asyncio.run(do_group_rollout(builder, Forecaster()))
    assert len(kept) == 2
    for record in kept:
        world = make_world(record.world, record.level, **record.origin.options)
        world.start(world.task(record.split, record.index))
        (turn,) = record.own_turns
        assert world.reply(str(turn.said)).rewards["forecaster"] == record.total


def test_the_command_takes_its_options_at_the_same_place() -> None:
    for row in specs().values():
        declared = {key: preset(row.id).options.get(key) for key in row.training}
        assert declared == dict(row.training)
    assert preset("forecast", options={"label": "outcome"}).options["label"] == "outcome"
    assert "label" not in preset("forecast", options={"data": "q.jsonl"}).options
