"""A dataset is the same batches of Tasks every time, drawn when they are asked for."""

import asyncio
from collections.abc import Callable
from typing import Any

import chz
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokengym.agents.tinker.dataset import TaskDataset, TaskDatasetBuilder, TaskRange
from tokengym.agents.tinker.groups import TaskGroupBuilder
from tokengym.envs.core.errors import OptionError, UnknownWorldError
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World
from tokengym.envs.registry import make_world


def build(**fields: Any) -> tuple[TaskDataset, TaskDataset | None]:
    return asyncio.run(TaskDatasetBuilder(**{"world": "forecast", "codec": "byte", **fields})())


def prints(dataset: TaskDataset, index: int) -> list[str]:
    return [group.task.fingerprint for group in dataset.get_batch(index)]


def test_batches_hold_the_tasks_in_order() -> None:
    world = make_world("forecast")
    tasks = [world.task("train", index) for index in range(11)]
    group = TaskGroupBuilder(tasks[0], "byte", 2)

    @settings(max_examples=30)
    @given(st.integers(1, 12), st.integers(1, 11))
    def law(groups_per_batch: int, count: int) -> None:
        dataset = TaskDataset(tasks[:count], groups_per_batch, group)
        batches = [dataset.get_batch(index) for index in range(len(dataset))]
        assert [g.task for batch in batches for g in batch] == tasks[:count]
        assert all(len(batch) == groups_per_batch for batch in batches[:-1])
        assert all(g.groups_in_batch == len(batch) for batch in batches for g in batch)
        for index in (-1, len(dataset)):
            with pytest.raises(IndexError, match="batches are"):
                dataset.get_batch(index)

    law()


def test_the_same_names_build_the_same_sets() -> None:
    (train, test), (again, test_again) = (
        build(n_batches=3, groups_per_batch=4, group_size=5, test_size=6) for _ in range(2)
    )
    assert test is not None
    assert test_again is not None
    assert (len(train), len(test)) == (3, 1)
    assert prints(train, 2) == prints(again, 2) == prints(train, 2)
    assert prints(test, 0) == prints(test_again, 0)
    trained = {name for index in range(3) for name in prints(train, index)}
    assert len(trained) == 12
    assert not trained & set(prints(test, 0))
    assert {group.group_size for group in train.get_batch(0)} == {5}
    assert {group.group_size for group in test.get_batch(0)} == {1}


def test_tasks_are_drawn_when_asked_for() -> None:
    world = make_world("forecast")
    drawn: list[int] = []

    class Counting(TaskRange):
        def __getitem__(self, index: Any) -> Any:
            if isinstance(index, int):
                drawn.append(index)
            return super().__getitem__(index)

    tasks = Counting(world, "train", 1_000_000)
    dataset = TaskDataset(tasks, 2, TaskGroupBuilder(world.task(), "byte", 2))
    dataset.get_batch(7)
    assert drawn == [14, 15]
    with pytest.raises(IndexError):
        tasks[1_000_000]
    assert tasks[-1] == world.task("train", 999_999)


def test_there_is_no_test_set_unless_asked_for() -> None:
    assert build()[1] is None


def test_it_is_configured_from_a_command_line(tokenizer_named: Callable[[str], str]) -> None:
    builder = chz.Blueprint(TaskDatasetBuilder).make_from_argv(
        [
            "world=forecast",
            "level=easy",
            f"model_name_for_tokenizer={tokenizer_named('bpe')}",
            "renderer_name=role_colon",
            "n_batches=1",
            "groups_per_batch=2",
            'options={"label": "expected"}',
        ]
    )
    train, _ = asyncio.run(builder())
    group = train.get_batch(0)[0]
    assert group.codec == f"role_colon@{tokenizer_named('bpe')}"
    assert group.options == {"label": "expected"}
    assert len(asyncio.run(group.make_envs())) == 8


def test_thinking_is_kept_when_asked_for(tokenizer_named: Callable[[str], str]) -> None:
    model = tokenizer_named("bpe")
    builder = TaskDatasetBuilder(
        world="forecast",
        model_name_for_tokenizer=model,
        renderer_name="qwen3",
        keep_thinking=True,
    )
    assert builder.codec_name() == f"qwen3+keep_thinking@{model}"


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"world": "forecats"}, UnknownWorldError),
        ({"level": "impossible"}, OptionError),
        ({"split": "trian"}, OptionError),
        ({"options": {"scroe": "log"}}, OptionError),
        ({"codec": "bite"}, OptionError),
        ({"codec": None}, OptionError),
        ({"model_name_for_tokenizer": "x"}, OptionError),
        ({"n_batches": 0}, OptionError),
        ({"groups_per_batch": 0}, OptionError),
        ({"group_size": 0}, OptionError),
    ],
)
def test_a_wrong_name_fails_before_training(fields: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        build(**fields)


def test_any_sequence_of_tasks_will_do() -> None:
    world: World = make_world("forecast")
    tasks: tuple[Task, ...] = (world.task("validation", 0), world.task("validation", 5))
    dataset = TaskDataset(tasks, 1, TaskGroupBuilder(tasks[0], "byte", 2))
    assert prints(dataset, 1) == [tasks[1].fingerprint]
