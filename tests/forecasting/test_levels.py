"""What levels are worth: rules of thumb leave room to learn, copying the prompt is blind."""

import re
from functools import cache
from statistics import fmean

import numpy as np
import pytest

from tokengym.envs.core.play import Policy, play
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.forecasting.baselines import constants
from tokengym.envs.forecasting.levels import LEVELS
from tokengym.envs.registry import baselines, make_world

levels = pytest.mark.parametrize("level", LEVELS)
TASKS = 400
ROLE = "forecaster"


@cache  # policies of one level and prompts of one Task are compared on the same draws
def tasks_of(level: str) -> list[Task]:
    return make_world("forecast", level, label="expected").first_tasks("test", TASKS)


def mean_return(world: World, policy: Policy) -> float:
    rng = np.random.default_rng(0)
    return fmean(play(world, task, policy, rng).returns[ROLE] for task in tasks_of(world.level))


@levels
def test_the_rule_of_thumb_is_not_within_a_third_of_a_percent_of_the_optimum(level: str) -> None:
    world = make_world("forecast", level, label="expected")
    rules = baselines("forecast")
    best = mean_return(world, rules["oracle"])
    assert mean_return(world, rules["empirical"]) < (1.0 - 0.003) * best


def test_no_rule_of_thumb_closes_60_percent_of_the_way_at_the_expert_level() -> None:
    world = make_world("forecast", "expert", label="expected")
    rules = {name: rule for name, rule in baselines("forecast").items() if name != "oracle"}
    best = mean_return(world, baselines("forecast")["oracle"])
    halves = [constants(world)[f"Probability: {share}"] for share in ("0.400", "0.500")]
    blind = max(mean_return(world, constant) for constant in halves)
    honest = max(mean_return(world, rule) for rule in rules.values())
    assert 0.2 < (honest - blind) / (best - blind) < 0.6


def copy_example(_world: World, turn: Turn, _rng: np.random.Generator) -> str:
    """Repeat the example of a terse prompt, if this turn shows it."""
    found = re.search(r"^(?:Probability|Probabilities): .*\d$", turn.text, re.MULTILINE)
    return found[0] if found else ""


@levels
def test_copying_the_terse_prompt_is_no_better_than_a_random_answer(level: str) -> None:
    world = make_world("forecast", level, label="expected", prompt="terse")
    copied = mean_return(world, copy_example)
    assert copied < mean_return(world, baselines("forecast")["random"]) + 0.03
    assert copied < mean_return(world, baselines("forecast")["half"]) - 0.02
    rng = np.random.default_rng(0)
    turns = [world.start(task) for task in tasks_of(level)[:9]]
    assert len({copy_example(world, turn, rng) for turn in turns}) > 7


def test_the_example_has_nothing_to_do_with_the_answer() -> None:
    world = make_world("forecast", label="expected", prompt="terse")
    pairs = []
    for index in range(1500):
        task = world.task("train", index)
        copied = copy_example(world, world.start(task), np.random.default_rng(0))
        pairs.append((float(copied.split()[1]), task.answer["p_bayes"][1]))
    assert abs(np.corrcoef(np.array(pairs).T)[0, 1]) < 4.0 / 1500**0.5
