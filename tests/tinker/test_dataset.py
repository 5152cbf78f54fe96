"""A dataset is the same batches of Tasks every time, drawn when they are asked for."""

import asyncio
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from threading import Event
from typing import Any

import chz
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.forecasting.questions_file import plain, write_lines
from tokengym.agents.tinker.dataset import (
    TASKS_A_SEED,
    TaskDataset,
    TaskDatasetBuilder,
    TaskRange,
    number_in_epochs,
)
from tokengym.agents.tinker.env import TinkerEnv
from tokengym.agents.tinker.groups import TaskGroupBuilder
from tokengym.envs.core.errors import OptionError, UnknownWorldError
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.registry import make_world, scripted_opponent, specs


def build(**fields: Any) -> tuple[TaskDataset, TaskDataset | None]:
    return asyncio.run(TaskDatasetBuilder(**{"world": "forecast", "codec": "byte", **fields})())


def prints(dataset: TaskDataset, index: int) -> list[str]:
    return [group.task.fingerprint for group in dataset.get_batch(index)]


def test_batches_hold_the_tasks_in_order() -> None:
    world = make_world("forecast")
    tasks = [world.task("train", index) for index in range(11)]
    group = TaskGroupBuilder(tasks[0], "byte", 2)

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


@pytest.mark.parametrize("prefetch", [False, True])
def test_groups_are_numbered_and_drawn_once_if_asked_ahead(prefetch: bool) -> None:
    world = make_world("forecast")
    drawn: list[int] = []
    ahead = Event()

    class Counting(TaskRange):
        def __getitem__(self, index: Any) -> Any:
            if isinstance(index, int):
                drawn.append(index)
                if index == 5:
                    ahead.set()
            return super().__getitem__(index)

    group = TaskGroupBuilder(world.task(), "byte", 2)
    dataset = TaskDataset(Counting(world, "train", 7), 3, group, prefetch=prefetch)
    assert [one.number for one in dataset.get_batch(0)] == [0, 1, 2]
    assert ahead.wait(20.0 if prefetch else 0.0) is prefetch
    assert drawn == [*range(6 if prefetch else 3)]
    assert [[one.number for one in dataset.get_batch(n)] for n in (1, 2)] == [[3, 4, 5], [6]]
    assert drawn == [*range(7)]
    for index in (0, 2, 0, 1):
        expected = [world.task("train", number) for number in range(7)[3 * index : 3 * index + 3]]
        assert [one.task for one in dataset.get_batch(index)] == expected


@pytest.mark.parametrize("spec", [spec for spec in specs().values() if len(spec.roles) > 1])
def test_a_trained_role_meets_the_usual_opponents(spec: WorldSpec) -> None:
    for role in spec.roles:
        usual = {other: scripted_opponent(spec, other) for other in spec.roles if other != role}
        sets = {"n_batches": 1, "groups_per_batch": 1, "group_size": 1, "role": role}
        read = []
        for opponents in ({}, usual):
            dataset, _ = build(world=spec.id, opponents=opponents, **sets)
            group = dataset.get_batch(0)[0]
            (env,) = asyncio.run(group.make_envs())
            alone = TinkerEnv(make_world(spec), group.task, role=role, opponents=opponents)
            for one in (env, alone):
                observation, _ = asyncio.run(one.initial_observation())  # type: ignore[misc]
                said = list(alone.codec.write("ARGUE nothing"))
                result = asyncio.run(one.step(said))
                read.append((observation.to_ints(), result.logs["answer"]))
        assert read[0] == read[2]
        assert read[1] == read[3]


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
        world="forecast", model_name_for_tokenizer=model, renderer_name="qwen3", keep_thinking=True
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


@given(st.integers(1, 60), st.integers(0, 9), st.integers(0, 5))
def test_every_epoch_has_every_example_once(count: int, seed: int, epoch: int) -> None:
    places = range(epoch * count, (epoch + 1) * count)
    assert sorted(number_in_epochs(place, count, seed) for place in places) == list(range(count))


def test_data_are_shuffled_by_epoch_and_seed(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "q.jsonl", [plain(number) for number in range(300)])
    world = make_world("forecast", data=path)
    size = world.size("train")
    assert size is not None

    def order(seed: int) -> list[int]:
        made, _ = build(
            options={"data": path}, first_task=seed * TASKS_A_SEED, n_batches=3 * size,
            groups_per_batch=1,
        )  # fmt: skip
        return [made.get_batch(index)[0].task.index for index in range(3 * size)]

    orders = [order(seed) for seed in (0, 1, 7)]
    assert order(1) == orders[1]  # as a resumed run builds it
    epochs = [places[k : k + size] for places in orders for k in range(0, 3 * size, size)]
    assert all(sorted(epoch) == list(range(size)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 9
    for epoch in epochs:
        rising = sum(a < b for a, b in pairwise(epoch)) / (size - 1)
        assert 0.35 < rising < 0.65  # .5 where it is mixed, 1 in the order of the file
    batches = [Counter(epoch[k : k + 8]) for epoch in epochs for k in range(0, size - 8, 8)]
    assert len({frozenset(batch) for batch in batches}) == len(batches)


@pytest.mark.parametrize("world", ["forecast", "energy:small"])
def test_made_up_tasks_come_in_index_order(world: str) -> None:
    made = make_world(world)
    for first in (0, 5, 3 * TASKS_A_SEED + 2):
        drawn = list(TaskRange(made, "train", 3, first))
        assert drawn == [made.task("train", first + k) for k in range(3)]


def test_a_test_set_holds_each_task_once(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "q.jsonl", [plain(number) for number in range(60)])
    _, test = build(options={"data": path}, test_size=1000)
    assert test is not None
    indices = [group.task.index for group in test.get_batch(0)]
    assert indices == list(range(make_world("forecast", data=path).size("test") or 0))
