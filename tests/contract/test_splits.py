"""Laws of splits: disjoint by what is shown first, alike in what they hold, and large.

`--hypothesis-profile thorough` draws 25,000 instances of every level instead of a few.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from tokengym.envs.core.seeding import SPLITS
from tokengym.envs.core.task import canonical_json, to_plain_json
from tokengym.envs.forecasting.desk.archive import model_of
from tokengym.envs.forecasting.oracle import predictive
from tokengym.envs.registry import make_world, spec

pytestmark = pytest.mark.nightly

WORLDS = ("forecast", "disruption", "energy", "warehouse")
CASES = [(world, level) for world in WORLDS for level in spec(world).levels]
TASKS = {"forecast": 100, "disruption": 100, "energy": 4, "warehouse": 6}
"""Tasks of each split whose first texts are compared: those of two worlds are solved."""
PROMPTS = {"forecast": 5_000, "disruption": 5_000, "energy": 100, "warehouse": 1_000}
COMPARED = {"forecast": 1_500, "disruption": 450, "energy": 320, "warehouse": 300}
"""Instances drawn to count first texts, and to compare what splits hold."""
LONG = ("day", "soma", "outages", "commit", "commit_6", "lease")
"""Levels compared with the thorough profile only: drawn like another one, and slowly."""
THOROUGH = 25_000
FEWEST_PROMPTS = 100_000
SMALLEST_SHARE = 0.15
"""Share of all prompts that validation and test have."""
LARGEST_Z = 4.0
LEAST_SEEN = 30
"""Instances in each part below which a mean is not compared: it is far from normal."""


def draws(usual: int) -> int:
    thorough = settings.default is settings.get_profile("thorough")
    return THOROUGH if thorough else usual


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_no_first_text_lies_in_two_splits(case: tuple[str, str]) -> None:
    world = make_world(*case)
    owners: dict[str, str] = {}
    for split in SPLITS:
        for index in range(TASKS[case[0]]):
            task = world.task(split, index)
            assert world.split_of(task.instance) == split
            assert owners.setdefault(world.start(task).text, split) == split


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_every_split_has_many_prompts(case: tuple[str, str]) -> None:
    """The effective number of prompts, 1 / Σ p², is that of pairs by that of equal pairs."""
    world, rng, count = make_world(*case), np.random.default_rng(5), draws(PROMPTS[case[0]])
    keys = Counter(
        canonical_json(world._split_key(to_plain_json(world._draw(rng)))) for _ in range(count)
    )
    equal = sum(number * (number - 1) // 2 for number in keys.values())
    expected = count * (count - 1) / 2 / (FEWEST_PROMPTS / SMALLEST_SHARE)
    # Four standard deviations of a Poisson number of equal pairs.
    assert equal <= expected + 4.0 * expected**0.5


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_splits_hold_alike_what_is_drawn(case: tuple[str, str]) -> None:
    """Families, probabilities, labels, and the numbers and words of instances."""
    if case[1] in LONG and draws(0) == 0:
        pytest.skip("compared with the thorough profile")
    world, rng = make_world(*case), np.random.default_rng(9)
    drawn: dict[str, list[dict[str, float]]] = defaultdict(list)
    for _ in range(draws(COMPARED[case[0]])):
        instance = to_plain_json(world._draw(rng))
        found = dict(features(instance))
        if case[0] == "forecast":
            odds = prior(instance) if world.tools else predictive(instance)
            found |= label("", odds, rng)
        if case[0] == "disruption":
            answer = world._solve(instance, rng)
            assert isinstance(answer, Mapping)
            for target, odds in answer["posteriors"].items():
                found |= label(target, odds, rng)
        drawn[world.split_of(instance)].append(found)
    everything = [found for part in drawn.values() for found in part]
    for split in SPLITS:
        others = [found for name, part in drawn.items() if name != split for found in part]
        assert len(drawn[split]) > 0.08 * len(everything)
        scores = z_scores(drawn[split], others)
        assert max(map(abs, scores.values())) < LARGEST_Z, scores


def prior(instance: Mapping[str, Any]) -> tuple[float, float]:
    """The chances of no and yes before any note is read."""
    share = float(model_of(instance["shown"]).contents_yes.sum())
    return 1.0 - share, share


def features(instance: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, float]]:
    """Mean, size and number of the numbers at each path, and which short words there are."""
    for name, value in instance.items():
        here = f"{path}/{name}"
        if isinstance(value, Mapping):
            yield from features(value, here)
        elif isinstance(value, str) and len(value) < 16:
            yield f"{here}={value}", 1.0
        elif isinstance(value, list) and value and all(isinstance(v, Mapping) for v in value):
            yield f"{here} number", float(len(value))
            yield from features(value[0], f"{here}[0]")
        elif numbers := list(numbers_in(value)):
            yield here, float(np.mean(numbers))
            yield f"{here} number", float(len(numbers))


def numbers_in(value: object) -> Iterator[float]:
    if isinstance(value, list):
        for part in value:
            yield from numbers_in(part)
    elif isinstance(value, int | float):
        yield float(value)


def label(name: str, odds: Any, rng: np.random.Generator) -> dict[str, float]:
    """The probabilities of a question, and what comes of it."""
    happens = int(rng.choice(len(odds), p=np.array(odds) / sum(odds)))
    chances = {f"{name} P{k} of {len(odds)}": float(p) for k, p in enumerate(odds)}
    return {**chances, f"{name} certainty": max(odds), f"{name} outcome {happens}": 1.0}


def z_scores(one: list[dict[str, float]], other: list[dict[str, float]]) -> dict[str, float]:
    """The difference of the means of each feature, in standard errors, and of its presence."""
    scores = {}
    for name in {name for found in (*one, *other) for name in found}:
        values = [[found[name] for found in part if name in found] for part in (one, other)]
        if min(map(len, values)) < LEAST_SEEN:
            continue
        a, b = (np.array(part) for part in values)
        scores[name] = z_score(a, b)
        has = (np.array([float(name in found) for found in part]) for part in (one, other))
        scores[f"has {name}"] = z_score(*has)
    return scores


def z_score(a: np.ndarray, b: np.ndarray) -> float:
    """The difference of two means in standard errors; 0 of what is always the same."""
    if np.ptp(np.concatenate([a, b])) == 0.0:
        return 0.0
    variance = np.concatenate([a, b]).var()
    return float((a.mean() - b.mean()) / np.sqrt(variance / len(a) + variance / len(b)))
