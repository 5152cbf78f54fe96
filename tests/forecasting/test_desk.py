"""The desk: its optimum against a search of texts alone, and the exact credit of every reply."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.contract.planners.desk import DeskReader
from tokengym.envs.core.play import play
from tokengym.envs.core.turn import StopReason
from tokengym.envs.forecasting.desk_world import DeskWorld
from tokengym.envs.forecasting.looking import best_note
from tokengym.envs.registry import baselines, make_world

GRID = 1 / 65536
levels = pytest.mark.parametrize("level", ["desk", "desk_errata"])
REPLIES = (
    *(f"open(note={note})" for note in range(1, 8)),
    *(
        "answer(probability=0.4)",
        "answer(probability=1)",
        "answer(probability=2)",
        "",
        "open(note=",
    ),
    *(" open ( note = 2 )", "First the key.\nopen(note=1)", "open(note=1)\nopen(note=2)"),
    *('open({"note": 3})', 'open(note="3")', "open(note=1) open(note=2)", "Probability: 0.4"),
    *("</tool_response>\nopen(note=1)", "<tool_call>open(note=1)</tool_call>"),
)


@cache
def desk(level: str, label: str = "outcome") -> DeskWorld:
    return DeskWorld.cast(make_world("forecast", level, label=label))


@levels
@pytest.mark.parametrize("index", range(3))
def test_the_optimum_is_what_a_search_over_all_worlds_finds(level: str, index: int) -> None:
    world = desk(level)
    task = world.task("test", index)
    reader = DeskReader(world.start(task).text)
    points, _ = reader.value(reader.state)
    value = 0.05 + 0.95 * (points + reader.points) / (reader.base + reader.points)
    # Prices are paid on the grid, at most half a step from what is written.
    slack = len(reader.prices) * GRID
    assert world.optimum(task)["forecaster"].value == pytest.approx(value, abs=slack)


@levels
@given(
    index=st.integers(0, 50),
    said=st.lists(st.tuples(st.sampled_from(REPLIES), st.booleans()), max_size=12),
    label=st.sampled_from(["outcome", "expected", "replay:4"]),
)
def test_credit_and_luck_sum_to_the_return(
    level: str, index: int, said: list[tuple[str, bool]], label: str
) -> None:
    world = desk(level, label)
    task = world.task("train", index)
    turn, parts, replies = world.start(task), [], iter(said)
    while not turn.done:
        text, complete = next(replies, ("", True))
        turn = world.reply(text, complete=complete)
        assert turn.metrics["credit"] <= 1e-12
        names = ("credit", "note_luck", "outcome_luck")
        parts.append(sum(turn.metrics.get(name, 0.0) for name in names))
    total = world.optimum(task)["forecaster"].value + sum(parts)
    assert total == pytest.approx(world.returns["forecaster"], abs=1e-12)


@pytest.mark.nightly
@levels
def test_the_best_way_loses_nothing(level: str) -> None:
    world, lucks = desk(level, "expected"), []
    for index in range(150):
        record = play(world, world.task("test", index), baselines("forecast")["oracle"])
        answers = record.turns[1:]
        assert all(abs(turn.metrics["credit"]) < 1e-9 for turn in answers)
        lucks.append(sum(turn.metrics.get("note_luck", 0.0) for turn in answers))
        assert abs(record.metrics["outcome_luck"]) < 2 * GRID
    assert abs(np.mean(lucks)) < 4 * np.std(lucks) / len(lucks) ** 0.5


@levels
def test_replies_without_a_call_cost_a_point(level: str) -> None:
    world = desk(level)
    for reply in ("", "open", "open(note=9)", "open(note=1) open(note=2)", "Probability: 0.4"):
        world.start(world.task("train", 1))
        before = best_note(world)
        turn = world.reply(reply)
        assert (turn.metrics["well_formed"], world.state) == (0.0, world.desk.start)
        assert turn.rewards["forecaster"] == pytest.approx(-0.95 / 150, abs=GRID)
        assert turn.text.endswith("You have 49.00 points.")
        assert best_note(world) == before
    world.start(world.task("train", 1))
    world.reply("open(note=2)")
    state = world.state
    turn = world.reply("open(note=2)")
    assert (turn.metrics["well_formed"], world.state) == (1.0, state)
    assert turn.rewards["forecaster"] == pytest.approx(-0.95 / 150, abs=GRID)


@levels
def test_who_never_answers_earns_the_form_alone(level: str) -> None:
    world = desk(level)
    turn = world.start(world.task("train", 0))
    while not turn.done:
        turn = world.reply("open(note=1)")
    assert turn.stop_reason is StopReason.TURN_LIMIT
    assert world.returns["forecaster"] == pytest.approx(0.05, abs=GRID)


@pytest.mark.parametrize("level", ["easy", "hard", "update"])
def test_credit_of_questions_is_what_was_expected_less_the_best(level: str) -> None:
    world = make_world("forecast", level, label="expected", credit=True)
    for name in ("oracle", "half", "null", "noisy"):
        for index in range(5):
            task = world.task("test", index)
            record = play(world, task, baselines("forecast")[name])
            total = sum(turn.metrics["credit"] for turn in record.turns[1:])
            lost = record.returns["forecaster"] - world.optimum(task)["forecaster"].value
            assert total == pytest.approx(lost, abs=4 * GRID)
