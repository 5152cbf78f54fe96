"""Laws of the arithmetic before a forecast: true, of what the prompt shows, and the answer's."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.agents.training.job import Job
from tokengym.agents.training.presets import preset
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.play import play
from tokengym.envs.forecasting.families import FAMILIES
from tokengym.envs.forecasting.levels import LEVELS
from tokengym.envs.registry import baselines, make_world

WITH_STEPS = [name for name, family in FAMILIES.items() if family.steps is not None]
WORKED = baselines("forecast")["worked"]

asked = pytest.mark.parametrize(
    ("level", "name"),
    [(level, name) for level in ("easy", "hard", "update") for name in WITH_STEPS],
)


def worked_turns(level: str, name: str, index: int) -> list[tuple[str, str, str]]:
    """Return what was shown so far, the arithmetic and the answer of each turn of a Task."""
    world = make_world("forecast", level, family=name, prompt="terse")
    turn, shown, found = world.start(world.task("train", index)), "", []
    while not turn.done:
        shown += " " + turn.text
        reply = WORKED(world, turn, np.random.default_rng(0))
        steps, answer = reply.split("\n")
        found.append((shown, steps, answer))
        turn = world.reply(reply)
        assert turn.metrics["well_formed"] == 1.0
    return found


@asked
@given(index=st.integers(0, 2**31))
def test_every_step_follows_from_what_is_shown(level: str, name: str, index: int) -> None:
    for shown, steps, _ in worked_turns(level, name, index):
        if name == "frequency":
            (source, *counts) = steps.replace(" of ", " ").split()
            reports = re.findall(rf"{source} (\d+) of (\d+)", shown)
            assert list(map(int, counts)) == np.array(reports, int).sum(axis=0).tolist()
            assert f"try of {source} succeed" in shown
        if name == "contest":
            a, b, difference = map(int, re.findall(r"(?<= )[+-]?\d+", steps)[:3])
            ratings = re.findall(r"A (\d+) \(\d+\), B (\d+) \(", shown)
            assert [(a, b)] == [(int(one) // 100, int(other) // 100) for one, other in ratings]
            assert a - b == difference
        if name == "poisson":
            share, rows, (total, days) = poisson_steps(steps)
            (threshold,) = re.findall(r"more than (\d+)", shown)
            assert abs(int(threshold) / ahead(shown) - share) <= 0.5
            counts = re.findall(r"[Ss]een: ([\d ]+)\.", shown)
            assert [row[0] for row in rows] == list(map(int, " ".join(counts).split()))
            assert [row[1] for row in rows] == [row[0] - share for row in rows]
            assert [row[2] for row in rows] == np.cumsum([row[1] for row in rows]).tolist()
            assert (total, days) == (rows[-1][2], len(rows))


def ahead(shown: str) -> int:
    """Return how many days a question is about."""
    return int([*re.findall(r"next (\d+) days", shown), 1][0])


def poisson_steps(steps: str) -> tuple[int, list[list[int]], tuple[int, int]]:
    """Return the share of a day, the count, difference and sum of each day, and the result."""
    first, rows, result = steps.split(":")
    total, days = map(int, result.split(" in "))
    return (
        int(first.split("=")[-1]),
        [list(map(int, row.split())) for row in rows.split(",")],
        (total, days),
    )


def test_answers_are_those_of_the_empirical_forecaster_to_a_tenth() -> None:
    world = make_world("forecast", label="expected")
    for task in world.first_tasks("test", 64):
        earned = [
            play(world, task, baselines("forecast")[name]) for name in ("worked", "empirical")
        ]
        one, other = (float(record.replies[0].split(": ")[-1]) for record in earned)
        assert one == pytest.approx(other, abs=0.0506)
        assert one * 20 == pytest.approx(round(one * 20))


@pytest.mark.parametrize("level", LEVELS)
def test_levels_without_arithmetic_are_answered_too(level: str) -> None:
    world = make_world("forecast", level)
    for task in world.first_tasks("train", 8):
        record = play(world, task, WORKED)
        assert record.metrics["well_formed"] == 1.0


def test_the_reply_limit_leaves_room_for_imitation() -> None:
    config = preset("forecast", demonstrations="worked", warm_start=1)
    with pytest.raises(OptionError, match="--max-tokens 12 cuts off replies like those"):
        Job.resolve(config)
    job = Job.resolve(replace(config, max_tokens=None))
    lengths = [
        len(job.codec.write(reply))
        for task in job.world.first_tasks("train", 40)
        for reply in play(job.world.fork(), task, job.demonstrations).replies
    ]
    assert max(lengths) <= job.max_tokens
