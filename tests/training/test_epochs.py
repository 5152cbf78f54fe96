"""A run over a user's own data goes through all of it, mixed anew, and says when it goes round."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.forecasting.questions_file import plain, write_lines
from tokengym.agents.tinker.dataset import TaskDatasetBuilder
from tokengym.agents.training.config import JobConfig, SftConfig, TrainConfig
from tokengym.agents.training.job import Job
from tokengym.agents.training.presets import preset, preset_for
from tokengym.envs.registry import make_world

GROUPS, SIZE = 8, 2


@pytest.fixture
def data(tmp_path: Path) -> str:
    return str(write_lines(tmp_path / "q.jsonl", [plain(number) for number in range(60)]))


def job(data: str, kind: type[JobConfig] = TrainConfig, **changes: Any) -> Job:
    sizes = {"groups_per_batch": GROUPS, "group_size": SIZE, "steps": 40}
    return Job.resolve(preset_for(kind, "forecast", options={"data": data}, **{**sizes, **changes}))


def indices(made: Job, steps: int) -> list[list[int]]:
    """Return the indices of the Tasks of the first steps."""
    dataset, _ = asyncio.run(made.dataset({role: {} for role in made.roles})())
    return [[group.task.index for group in dataset.get_batch(step)] for step in range(steps)]


def test_a_run_says_which_epoch_begins_and_only_then(data: str) -> None:
    made = job(data)
    size = made.world.size("train")
    assert size is not None
    seen: Counter[int] = Counter()
    for step, batch in enumerate(indices(made, 40)):
        before = seen.total() // size + (seen.total() % size > 0)
        seen.update(batch)
        epochs = -(-seen.total() // size)
        said = f"epoch {epochs} of {size} questions" if epochs > max(before, 1) else None
        assert made.epoch_begun(step) == said
        assert max(seen.values()) - min(seen[one] for one in range(size)) <= 1


def test_the_command_and_the_builder_go_through_data_alike(data: str) -> None:
    other = job(data, seed=1)
    first = [one for batch in indices(job(data), 12) for one in batch]
    assert first != [one for batch in indices(other, 12) for one in batch]
    for seed, made in enumerate((job(data), other)):
        builder = TaskDatasetBuilder(
            world="forecast", options={"data": data}, codec="byte", n_batches=12,
            groups_per_batch=GROUPS, first_task=1_000_000 * seed,
        )  # fmt: skip
        dataset, _ = asyncio.run(builder())
        built = [[group.task.index for group in dataset.get_batch(k)] for k in range(12)]
        assert built == indices(made, 12)


def test_worlds_without_end_have_no_epochs(data: str) -> None:
    size = make_world("forecast", data=data).size("train")
    assert size is not None
    taught = job(data, SftConfig)  # a step has an example for every rollout
    said = [taught.epoch_begun(step) for step in range(6)]
    assert len([one for one in said if one]) == -(-6 * GROUPS * SIZE // size) - 1 > 0
    made = Job.resolve(preset("forecast"))
    assert {made.epoch_begun(step) for step in range(1000)} == {None}
