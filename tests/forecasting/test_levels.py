"""What levels are worth: rules of thumb leave room to learn, copying the prompt is blind."""

import re
from functools import cache
from itertools import combinations, pairwise
from statistics import fmean

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import minimize

from tokengym.envs.core.play import Policy, play
from tokengym.envs.core.task import Task, to_plain_json
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.forecasting.baselines import constants, regressions
from tokengym.envs.forecasting.families import FAMILIES
from tokengym.envs.forecasting.families.base import Shown
from tokengym.envs.forecasting.levels import LEVELS
from tokengym.envs.registry import baselines, make_world

levels = pytest.mark.parametrize("level", LEVELS)
without_archive = pytest.mark.parametrize("level", [k for k, v in LEVELS.items() if not v.desk])
Floats = npt.NDArray[np.float64]
TASKS = 400
ROLE = "forecaster"


@cache  # policies of one level and prompts of one Task are compared on the same draws
def tasks_of(level: str) -> list[Task]:
    return make_world("forecast", level, label="expected").first_tasks("test", TASKS)


def mean_return(world: World, policy: Policy) -> float:
    return fmean(play(world, task, policy).returns[ROLE] for task in tasks_of(world.level))


@pytest.mark.nightly
@levels
def test_the_heuristic_is_short_of_the_optimum(level: str) -> None:
    world = make_world("forecast", level, label="expected")
    rules = baselines("forecast")
    best = mean_return(world, rules["oracle"])
    assert mean_return(world, rules["empirical"]) < (1.0 - 0.003) * best


@pytest.mark.nightly
@pytest.mark.parametrize("level", ["expert", "twins"])
def test_the_likeliest_law_is_nearly_the_posterior(level: str) -> None:
    """What regressions and frequencies read off earns half; the posterior hardly more than it."""
    world, rules = make_world("forecast", level, label="expected"), baselines("forecast")
    best = mean_return(world, rules["oracle"])
    halves = [constants(world)[f"Probability: {share}"] for share in ("0.400", "0.500")]
    blind = max(mean_return(world, constant) for constant in halves)
    read_off = max(mean_return(world, rules[name]) for name in ("empirical", "fitted"))
    assert 0.35 < (best - read_off) / (best - blind) < 0.8
    assert 0.0 < (best - mean_return(world, rules["likeliest"])) / (best - blind) < 0.05


@pytest.mark.nightly
def test_no_shown_number_tells_labels_by_regression() -> None:
    """A regression with other features than ours, on 200 questions of each family, gains little."""
    rng = np.random.default_rng(0)
    for name in LEVELS["expert"].families:
        drawn = [
            to_plain_json(FAMILIES[name].draw(rng, LEVELS["expert"].knobs)) for _ in range(800)
        ]
        chances = np.array([FAMILIES[name].predictive(shown)[1] for shown in drawn])
        features = np.array([counts_of(shown) for shown in drawn])
        features = (features - features.mean(axis=0)) / features.std(axis=0)
        signs = np.where(rng.random(200) < chances[:200], 1.0, -1.0)

        stated = 1.0 / (1.0 + np.exp(-features[200:] @ regress(features[:200], signs)))
        lost = ((stated - chances[200:]) ** 2).mean() / ((0.5 - chances[200:]) ** 2).mean()
        assert lost > 0.3, name


def regress(features: Floats, signs: Floats) -> Floats:
    """The weights of a logistic regression with a ridge penalty."""

    def loss(weights: Floats) -> float:
        misses = np.logaddexp(0.0, -signs * (features @ weights))
        return float(misses.sum() + 5.0 * weights @ weights)

    found: Floats = minimize(loss, np.zeros(features.shape[1])).x
    return found


def counts_of(shown: Shown) -> list[float]:
    """Facts of a question on a hidden law as numbers: of each thing, each pair, what is alike."""
    if "days" not in shown:
        said = [0.0 if s is None else 2.0 * s - 1.0 for s in shown["sensor"]]
        last = shown["ahead"][-1]
        after = [s for s, button in zip(said, shown["pressed"], strict=True) if button == last]
        turned = [a * b for a, b in pairwise(said)]
        latest = next((s for s in reversed(said) if s), 0.0)
        ahead = len(shown["ahead"]) == 1
        return [latest, latest * ahead, sum(said), sum(after), sum(after) * ahead, sum(turned)]
    alike = [~(day ^ shown["asked"][0]) for day in shown["days"]]
    signs = 2.0 * np.array(shown["faults"]) - 1.0
    singles = [1 << thing for thing in range(5)]
    pairs = [a | b for a, b in combinations(singles, 2)]
    by_part = [
        sorted(float(signs @ [(day & part) == part for day in alike]) for part in parts)
        for parts in (singles, pairs)
    ]
    same = np.array([(day & 31).bit_count() for day in alike])
    return [*by_part[0], *by_part[1], *(float(signs @ (same == n)) for n in range(6)), signs.sum()]


@pytest.mark.nightly
def test_regression_learns_how_far_to_trust_the_heuristic() -> None:
    world = make_world("forecast", "expert", family="buttons", label="expected")
    earned = {
        name: fmean(
            play(world, task, baselines("forecast")[name]).returns[ROLE]
            for task in world.first_tasks("test", 300)
        )
        for name in ("empirical", "fitted")
    }
    assert earned["fitted"] > earned["empirical"] + 0.008


def test_a_regression_reads_cases_like_the_one_asked_about() -> None:
    weights = regressions("expert", LEVELS["expert"].families)
    # After the rule of thumb and a constant: what the sensor said after the same button, and by
    # how many more days of the same gauges had a fault.
    assert weights["buttons"][2] > 0.1
    assert weights["gauges"][2] > 0.1


def copy_example(_world: World, turn: Turn, _rng: np.random.Generator) -> str:
    """Repeat the example of a terse prompt, if this turn shows it."""
    found = re.search(r"^(?:Probability|Probabilities): .*\d$", turn.text, re.MULTILINE)
    return found[0] if found else ""


@pytest.mark.nightly
@without_archive
def test_copying_the_terse_prompt_is_no_better_than_chance(level: str) -> None:
    world = make_world("forecast", level, label="expected", prompt="terse")
    copied = mean_return(world, copy_example)
    assert copied < mean_return(world, baselines("forecast")["random"]) + 0.03
    assert copied < mean_return(world, baselines("forecast")["half"]) - 0.02
    rng = np.random.default_rng(0)
    turns = [world.start(task) for task in tasks_of(level)[:9]]
    assert len({copy_example(world, turn, rng) for turn in turns}) > 7


@pytest.mark.nightly
def test_the_example_has_nothing_to_do_with_the_answer() -> None:
    world = make_world("forecast", label="expected", prompt="terse")
    pairs = []
    for index in range(1500):
        task = world.task("train", index)
        copied = copy_example(world, world.start(task), np.random.default_rng(0))
        pairs.append((float(copied.split()[1]), task.answer["p_bayes"][1]))
    assert abs(np.corrcoef(np.array(pairs).T)[0, 1]) < 4.0 / 1500**0.5
