"""A run over a user's own data goes through all of it, mixed anew, and says when it goes round."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.forecasting.questions_file import plain, write_lines
from tests.training.jobs import run_job
from tokengym.agents.rollouts import train_segment
from tokengym.agents.tinker.dataset import TaskDatasetBuilder
from tokengym.agents.training.config import JobConfig, SftConfig, TrainConfig
from tokengym.agents.training.folder.run import RunFolder
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


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
def test_a_run_shows_the_epoch(data: str, tmp_path: Path, served: dict[str, Any]) -> None:
    size = make_world("forecast", data=data).size("train")
    assert size is not None
    sizes: dict[str, Any] = {"steps": 2, "groups_per_batch": size, "group_size": 2}
    sizes["evaluation_tasks"] = 2
    options = {"data": data}
    config = preset("forecast", options=options, low_tasks=0, **sizes, **served)
    _, shown = run_job(config, tmp_path / "run")
    assert f"epoch 2 of {size} questions\n" in shown
    assert "epoch 1 of" not in shown
    log = RunFolder(tmp_path / "run").rollouts
    orders = [
        [record.index for record in log.read(train_segment(step)) if record.origin.member == 0]
        for step in range(2)
    ]
    assert [sorted(order) for order in orders] == [list(range(size))] * 2
    assert orders[0] != orders[1]
