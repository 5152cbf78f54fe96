"""Laws of the pictures: every level is drawn whoever plays, and what is drawn is what happened."""

import struct
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.patches import StepPatch
from typer.testing import CliRunner

from tests.contract import bargain
from tokengym.agents.cli import app
from tokengym.envs.core.errors import OptionError, TaskError
from tokengym.envs.core.play import PlayedEpisode, Policy, play, record_replies, replay
from tokengym.envs.core.rendering import picture, require_picture, save_picture
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World
from tokengym.envs.disruption.labels import LABELS
from tokengym.envs.energy import picture as energy
from tokengym.envs.energy.world import EnergyWorld
from tokengym.envs.registry import baselines, import_object, make_world, register, specs

KINDS = [
    *(("energy", level) for level in ("outages", "commit", "household")),
    *(("warehouse", level) for level in ("pick_clauses", "stock", "lease")),
]
"""Levels whose pictures have other parts; the others' are only larger."""


def nonsense(world: World, turn: object, rng: np.random.Generator) -> str:
    return str(rng.choice(["", "perhaps?", "TRIP O1,O1: A0-1", "TRIP O9: A9-9", "REORDER S1 9999"]))


@cache
def task_of(name: str, level: str, index: int = 0) -> Task:
    return make_world(name, level).task("test", index)


def played(name: str, level: str, who: str, index: int = 0) -> tuple[World, PlayedEpisode]:
    world = make_world(name, level)
    policies: Mapping[str, Policy] = {**baselines(name), "nonsense": nonsense}
    return world, play(world, task_of(name, level, index), policies[who], seed=7)


def size_of(path: Path) -> tuple[int, int]:
    """Width and height that the header of a PNG states."""
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    return width, height


def drawn(axes: Axes) -> dict[str, list[float]]:
    """The values of each series by its name in the legend: points, steps and bars."""
    found: dict[str, list[float]] = {
        str(line.get_label()): np.asarray(line.get_ydata(), float).tolist() for line in axes.lines
    }
    for bars in axes.containers:
        found[str(bars.get_label())] = [bar.get_height() for bar in bars]
    for patch in axes.patches:
        if isinstance(patch, StepPatch):
            found[str(patch.get_label())] = list(patch.get_data()[0])
    return found


@pytest.mark.nightly
@pytest.mark.parametrize("who", ["oracle", "random", "nonsense"])
@pytest.mark.parametrize(("name", "level"), KINDS, ids=str)
def test_every_kind_of_level_is_drawn_whoever_plays(
    tmp_path: Path, name: str, level: str, who: str
) -> None:
    world, record = played(name, level, who)
    save_picture(world, record, tmp_path / "episode.png", who)
    width, height = size_of(tmp_path / "episode.png")
    assert 800 <= width <= 2000
    assert 500 <= height <= 2000


@pytest.mark.parametrize("level", ["day", "outages", "commit", "household"])
def test_panels_hold_the_states_that_the_plant_goes_through(level: str) -> None:
    world, record = played("energy", level, "random", index=1)
    assert isinstance(world, EnergyWorld)
    outcomes: list[Any] = [step.after.outcome for step in replay(world, record)]
    figure = energy.render_episode(world, record, "")
    shown = {axes.get_ylabel(): drawn(axes) for axes in figure.axes}
    stored, power = shown["energy (kWh)"]["in the battery"], shown["power (kW)"]
    assert stored[1:] == [outcome.state.stored for outcome in outcomes]
    for number, device in enumerate(world.compiled.plant.devices):
        assert power[device.lower()] == [outcome.done[number] for outcome in outcomes]
    if level != "commit":
        assert power["bought"] == [outcome.grid for outcome in outcomes]
    if level == "household":
        indoors = shown["indoors (°C)"]["indoors"]
        assert indoors[1:] == [outcome.state.indoor for outcome in outcomes]
    said = figure.get_suptitle()
    assert f"cost {100 * record.metrics['total_money_cost']:.0f} ct" in said
    assert f"limit missed in {sum(outcome.safety > 0 for outcome in outcomes)} steps" in said


@pytest.mark.parametrize("level", ["outages", "commit"])
def test_a_picture_does_not_show_the_hours_to_come(level: str) -> None:
    world, record = played("energy", level, "hold")
    begun = record_replies(world, record.task, record.replies[:5])
    _, power = energy.render_episode(world, begun, "").axes[:2]
    assert {len(values) for values in drawn(power).values()} == {5}


@pytest.mark.nightly
def test_drawing_leaves_an_episode_under_way_alone(tmp_path: Path) -> None:
    world, record = played("energy", "small", "random")
    assert isinstance(world, EnergyWorld)
    world.start(record.task)
    world.reply(record.replies[0])
    before = world.shown
    save_picture(world, record, tmp_path / "day.png")
    assert world.shown == before


def test_a_record_of_other_options_is_refused(tmp_path: Path) -> None:
    _, record = played("energy", "day", "random", index=1)
    assert record.metrics["violation_depth"] > 0.0
    with pytest.raises(TaskError, match="options"):
        save_picture(make_world("energy", "day", flat_floor=True), record, tmp_path / "day.png")


def test_what_cannot_be_drawn_is_refused_by_name(tmp_path: Path) -> None:
    world, record = played("energy", "small", "oracle")
    with pytest.raises(OptionError, match="gif"):
        save_picture(world, record, tmp_path / "day.gif")
    with pytest.raises(OptionError, match="folder"):
        save_picture(world, record, tmp_path / "none" / "day.png")


def test_a_world_without_a_picture_is_refused_by_name(fresh_registry: None) -> None:
    assert all(spec.render for spec in specs().values())
    register(bargain.SPEC)
    with pytest.raises(OptionError, match=f"{bargain.SPEC.id} has no picture"):
        require_picture(bargain.SPEC)


def dots(axes: Axes) -> dict[str, list[tuple[float, float]]]:
    """Marks by their name in the legend: the probability and the line of each."""
    return {
        str(line.get_label()): [
            (float(x), float(y)) for x, y in np.asarray(line.get_xydata(), float)
        ]
        for line in axes.lines
    }


def test_a_forecast_shows_the_posterior_of_answered_turns_alone() -> None:
    world = make_world("forecast", "twins")
    task = world.task("test", 0)
    replies = play(world, task, baselines("forecast")["oracle"]).replies
    draw = import_object(world.spec.render)
    stated = [float(reply.removeprefix("Probability: ")) for reply in replies]
    for count in range(len(replies) + 1):
        (axes,) = draw(world, record_replies(world, task, replies[:count]), "").axes
        marks = dots(axes)
        expected = [(value, turn) for turn, value in enumerate(stated[:count])]
        for name in ("stated", "what the facts imply"):
            assert np.ravel(marks[name]) == pytest.approx(np.ravel(expected), abs=1e-5)
        assert all(value in (0.0, 1.0) for value, _ in marks["scored against"])
        assert len(marks["scored against"]) == count
        assert len(axes.get_yticklabels()) == len(replies)


def test_a_debate_shows_the_truth_at_its_end_alone() -> None:
    world = make_world("disruption", "L2")
    task = world.task("test", 0)
    first, second = "LABEL neutral\nP 0.2 0.3 0.5", "LABEL disruptive\nP 0.7 0.2 0.1"
    replies = (first, "ARGUE disruptive", second)
    draw = import_object(world.spec.render)
    for count in range(4):
        (axes,) = draw(world, record_replies(world, task, replies[:count]), "").axes
        marks = dots(axes)
        reports = {"stated first": (1, (0.2, 0.3, 0.5)), "after": (3, (0.7, 0.2, 0.1))}
        for name, (answered, report) in reports.items():
            (shown,) = (found for mark, found in marks.items() if name in mark)
            known = list(zip(report, range(3), strict=True)) if count >= answered else []
            assert np.ravel(shown) == pytest.approx(np.ravel(known))
        truths = marks["what the evidence implies"], marks["what became of it"]
        assert tuple(map(len, truths)) == ((3, 1) if count == 3 else (0, 0))
        title = axes.figure.get_suptitle()
        assert ("ARGUE disruptive" in title) == (count > 1)
    posterior = task.answer["posteriors"]["disruption"]
    assert [value for value, _ in truths[0]] == pytest.approx(list(posterior))
    label = task.answer["labels"]["disruption"]
    assert LABELS["disruption"][int(truths[1][0][1])] == label


@pytest.mark.parametrize("said", ["\x10", r"$\frac$"])
@pytest.mark.filterwarnings("error")
def test_replies_are_drawn_as_characters(said: str) -> None:
    world = make_world("disruption", "L2")
    replies = ("LABEL neutral\nP 0.2 0.3 0.5", f"ARGUE neutral {said}")
    assert picture(world, world.task("test", 0), replies).any()


@pytest.mark.nightly
def test_play_refuses_a_picture_before_the_first_turn(tmp_path: Path) -> None:
    path = tmp_path / "shift.png"
    line = ["play", "warehouse", "--policy", "fcfs", "--picture", str(path)]
    result = CliRunner().invoke(app, line)
    assert result.exit_code == 0, result.output
    assert str(path) in result.output.replace("\n", "")
    assert size_of(path) > (800, 500)
    refused = CliRunner().invoke(app, ["play", "forecast", "--picture", "forecast.gif"])
    assert isinstance(refused.exception, OptionError)
    assert not refused.output
