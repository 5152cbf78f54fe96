"""Laws of the prompts: they state the rules, and what can be copied from them says nothing."""

import math
import re
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tokengym.envs.core.play import Policy, play
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.disruption.blind import blind
from tokengym.envs.disruption.challengers import null
from tokengym.envs.disruption.evidence import NOTED_LEVELS
from tokengym.envs.disruption.world import DisruptionWorld
from tokengym.envs.registry import make_world, spec
from tokengym.rewards import debate

STYLES = ("full", "terse")
LEVELS = list(spec("disruption").levels)
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


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("level", LEVELS)
def test_no_text_shows_a_claim_that_could_be_copied(level: str, style: str) -> None:
    for text in texts(level, 5, prompt=style):
        assert not re.search(r"^(CLAIM|QUOTE)\b", text, re.MULTILINE)
        assert not re.search(r"CLAIM \w+ *[<>=]+ *\d", text)


@pytest.mark.parametrize("level", LEVELS)
def test_the_full_prompt_states_all_that_the_score_depends_on(level: str) -> None:
    (text,) = texts(level, 1)
    terms = debate.PROPER
    numbers = (
        debate.RIGHT_LABEL,
        debate.MOST_CALIBRATION,
        debate.CONTRADICTION_COST,
        terms["reasoning"].high,
        -terms["reasoning"].low,
        debate.FALSE_CLAIM_COST,
        debate.MOST_CLAIMS,
    )
    assert all(f"{number:g}" in text for number in numbers)
    assert "at most 8 words (80 characters)" in text
    assert "ends the episode at the lowest score" in text
    kinds = "1 is honest: it", "1 is an adversary: it", "4 are careless: they"
    assert all((kind in text) == (level in NOTED_LEVELS) for kind in kinds)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("style", STYLES)
def test_l2_alone_shows_the_authors_and_ranks_the_citations(level: str, style: str) -> None:
    world = DisruptionWorld.cast(make_world("disruption", level, prompt=style))
    for index in range(20):
        world.start(world.task("train", index))
        facts = world.compiled.evidence.facts
        for text in (world.compiled.opening, world.compiled.challenge[0]):
            if level != "L2":
                assert not re.search(r"authors( \d|:)|Cited|%", text)
                continue
            count = facts["n_i"] + facts["n_j"]
            above = min(99, math.floor(100 * float(stats.poisson.cdf(count - 1, 4.0))))
            stated = {
                "full": f"\nCited {count} time{'s' * (count != 1)} in the first year (n_i + n_j), "
                f"more often than {above} % of the papers of its field and year.\n",
                "terse": f"\nCited {count}, above {above} %\n",
            }
            assert text.count(stated[style]) == 1
            assert f", authors {facts['authors']}\nFirst year: " in text
            assert ("authors: size of the team" in text) == (style == "full")


@pytest.mark.parametrize("target", ["disruption", "both"])
def test_the_full_prompt_states_the_reward_as_first_described(target: str) -> None:
    (text,) = texts("L2", 1, reward="original", target=target)
    right = "the final label is" if target == "disruption" else "both final labels are"
    assert f"Score: 1 if {right} right and -1 if not." in text
    assert all(f"earn up to {most}" in text for most in (0.3, 0.2))
