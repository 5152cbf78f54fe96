"""Laws of Tasks: the same always and everywhere, JSON both ways, disjoint splits."""

import pickle
import subprocess
import sys
from collections.abc import Callable

import pytest

from tokengym.envs.core.errors import OptionError, TaskError
from tokengym.envs.core.seeding import SPLITS, split_of
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World
from tokengym.envs.registry import make_world

Case = tuple[str, str]
Draw = Callable[[str, int], Task]


def test_the_same_index_is_the_same_task_in_a_new_world(case: Case, draw: Draw) -> None:
    assert make_world(*case).task("train", 1) == draw("train", 1)


def test_json_and_pickle_give_an_equal_task(draw: Draw) -> None:
    task = draw("validation", 3)
    assert Task.from_json(task.to_json()) == task
    assert Task.from_json(task.to_json()).fingerprint == task.fingerprint
    assert pickle.loads(pickle.dumps(task)) == task
    assert hash(pickle.loads(pickle.dumps(task))) == hash(task)


def test_every_task_lies_in_the_split_its_fingerprint_says(draw: Draw) -> None:
    for split in SPLITS:
        for index in range(2):
            assert split_of(draw(split, index).fingerprint) == split


def test_neighbouring_indices_share_no_instance(draw: Draw) -> None:
    prints = [draw("train", index).fingerprint for index in range(7)]
    assert len(set(prints)) == len(prints)


def test_a_task_drawn_in_another_process_is_equal(case: Case, draw: Draw) -> None:
    code = (
        "from tokengym.envs import make_world; import sys;"
        f"sys.stdout.write(make_world({case[0]!r}, {case[1]!r}).task('test', 1).to_json())"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert Task.from_json(other.stdout) == draw("test", 1)


@pytest.mark.parametrize("split", ["training", "", "TEST"])
def test_an_unknown_split_is_refused_by_name(world: World, split: str) -> None:
    with pytest.raises(OptionError, match="split must be one of"):
        world.task(split, 0)


@pytest.mark.parametrize("index", [-1, 1.5, True])
def test_an_index_that_is_no_natural_number_is_refused(world: World, index: int) -> None:
    with pytest.raises(OptionError, match="index must be an integer >= 0"):
        world.task("train", index)


def test_a_task_of_another_world_is_refused(world: World, draw: Draw) -> None:
    task = draw("train", 0)
    foreign = Task("other/World-v0", task.level, "train", 0, task.instance_json, task.answer_json)
    with pytest.raises(TaskError, match="other/World-v0"):
        world.start(foreign)
