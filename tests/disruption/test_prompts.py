"""Laws of the prompts: they state the rules, and what can be copied from them says nothing."""

import re
from functools import cache
from typing import Any

import numpy as np
import pytest

from tokengym.envs.core.play import Policy, play
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.disruption.blind import blind
from tokengym.envs.disruption.challengers import null
from tokengym.envs.registry import make_world

ANSWER = re.compile(r"^LABEL .+\nP .+$", re.MULTILINE)


def texts(level: str, count: int, **options: Any) -> list[str]:
    world = make_world("disruption", level, **options)
    return [world.start(world.task("train", index)).text for index in range(count)]


def copy_example(world: World, turn: Turn, rng: np.random.Generator) -> str:
    """Say what a terse opening shows as an example."""
    (found,) = re.findall(ANSWER, world.compiled.opening)
    return str(found)


@cache  # all policies of a level are compared on the same draws
def tasks_of(level: str) -> list[Task]:
    return make_world("disruption", level, label="expected").first_tasks("train", 200)


def mean_return(level: str, policy: Policy) -> float:
    world = make_world("disruption", level, prompt="terse", label="expected")
    roles = {"predictor": policy, "challenger": null}
    played = [play(world, task, roles).returns["predictor"] for task in tasks_of(level)]
    return float(np.mean(played))


@pytest.mark.nightly
@pytest.mark.parametrize("level", ["L2", "L0"])
def test_copying_the_terse_example_loses_to_blind_play(level: str) -> None:
    best = max(
        mean_return(level, policy)
        for name, policy in blind(make_world("disruption", level)).items()
        if "at 0.33" in name
    )
    assert mean_return(level, copy_example) < best


def test_terse_examples_differ_from_task_to_task_and_are_blind() -> None:
    found = [re.findall(ANSWER, text) for text in texts("L2", 300, prompt="terse")]
    assert all(len(answers) == 1 for answers in found)
    answers = [answer for (answer,) in found]
    assert len(set(answers)) > 20
    counts = [sum(f"LABEL {word}" in answer for answer in answers) for word in ("d", "c", "n")]
    assert min(counts) > 70


@pytest.mark.parametrize("target", ["disruption", "both"])
def test_the_full_prompt_states_the_reward_as_first_described(target: str) -> None:
    (text,) = texts("L2", 1, reward="original", target=target)
    right = "the final label is" if target == "disruption" else "both final labels are"
    assert f"Score: 1 if {right} right and -1 if not." in text
    assert all(f"earn up to {most}" in text for most in (0.3, 0.2))
