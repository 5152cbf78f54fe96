"""Laws of the pictures: every level is drawn whoever plays, and what is drawn is what happened."""

import struct
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.patches import StepPatch
from typer.testing import CliRunner

from tests.contract import bargain
from tokengym.agents.cli import app
from tokengym.envs.core.errors import OptionError, TaskError
from tokengym.envs.core.play import PlayedEpisode, Policy, play, record_replies, replay
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World
from tokengym.envs.disruption.labels import LABELS
from tokengym.envs.energy import picture as energy
from tokengym.envs.energy.microgrid import Microgrid
from tokengym.envs.energy.plants import plant_from
from tokengym.envs.energy.step_result import TOLERANCE, State
from tokengym.envs.energy.world import EnergyWorld
from tokengym.envs.registry import baselines, import_object, make_world, register, spec, specs
from tokengym.envs.rendering import has_picture, require_picture, save_picture
from tokengym.envs.warehouse.games.game import Session
from tokengym.envs.warehouse.games.picking.floor_picture import tour_path
from tokengym.envs.warehouse.games.picking.session import PickSession
from tokengym.envs.warehouse.games.stock.session import StockSession
from tokengym.envs.warehouse.layout import AisleLayout, Layout, MapLayout, plain_layout, walks
from tokengym.envs.warehouse.world import WarehouseWorld

PICK = [level for level in spec("warehouse").levels if level.startswith("pick")]
STOCK = [level for level in spec("warehouse").levels if level.startswith("stock")]
PLAYERS = ["oracle", "random", "nonsense"]
KINDS = [
    *(("energy", level) for level in ("small", "outages", "commit", "household")),
    *(("warehouse", level) for level in ("pick", "pick_clauses", "pick_online", "stock", "lease")),
]
"""Levels whose pictures have other parts; the others' are only larger."""
DRAWN = [
    *((name, level, "random") for name, level in KINDS),
    *((name, level, "oracle") for name, level in KINDS if level in ("small", "pick")),
    *((name, level, "nonsense") for name, level in KINDS if level in ("household", "stock")),
]
MAP = MapLayout(("......", ".xx.x.", ".xx.x.", "......", "..gg.."))


def nonsense(world: World, turn: object, rng: np.random.Generator) -> str:
    return str(rng.choice(["", "perhaps?", "TRIP O1,O1: A0-1", "TRIP O9: A9-9", "REORDER S1 9999"]))


@cache
def task_of(name: str, level: str, index: int = 0) -> Task:
    return make_world(name, level).task("test", index)


def played(name: str, level: str, who: str, index: int = 0) -> tuple[World, PlayedEpisode]:
    world = make_world(name, level)
    policies: Mapping[str, Policy] = {**baselines(name), "nonsense": nonsense}
    task = task_of(name, level, index)
    return world, play(world, task, policies[who], seed=7)


def size_of(path: Path) -> tuple[int, int]:
    """Width and height that the header of a PNG states."""
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert data.endswith(b"IEND\xaeB`\x82")
    width, height = struct.unpack(">II", data[16:24])
    return width, height


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "level", "who"), DRAWN)
def test_every_kind_of_level_is_drawn_whoever_plays(
    tmp_path: Path, name: str, level: str, who: str
) -> None:
    world, record = played(name, level, who)
    save_picture(world, record, tmp_path / "episode.png", who)
    width, height = size_of(tmp_path / "episode.png")
    assert 800 <= width <= 2000
    assert 500 <= height <= 2000
    assert (tmp_path / "episode.png").stat().st_size > 20_000


@pytest.mark.nightly
@pytest.mark.parametrize("who", [*PLAYERS, "noisy"])
@pytest.mark.parametrize("level", spec("energy").levels)
def test_a_day_shows_the_states_the_plant_goes_through(level: str, who: str) -> None:
    world, record = played("energy", level, who, index=1)
    shown = energy.replay_day(world, record)
    plant = plant_from(record.task.instance)
    assert shown.plant == plant
    state = plant.initial
    assert (shown.stored[0], shown.car[0]) == state[:2]
    assert len(shown.stored) == len(shown.edges) == plant.steps + 1
    for step, done in enumerate(shown.done):
        # What physics allowed is what physics does: commanded as such, it leads on just the same.
        stores = shown.stored, shown.car, shown.indoor
        stored, car, indoor = (values[step] for values in stores)
        state = State(stored, car, state.running, indoor, state.peak)
        outcome = plant.advance(step, state, done)
        state = outcome.state
        found = state.stored, state.charged, state.indoor
        assert found == pytest.approx([values[step + 1] for values in stores])
        assert outcome.safety == pytest.approx(shown.missed[step], abs=1e-6)
        assert outcome.grid == pytest.approx(shown.grid[step])
    assert sum(shown.missed) == pytest.approx(record.metrics["total_cost"])
    assert shown.spent[-1] == pytest.approx(record.metrics["total_money_cost"])
    assert max(0.0, *shown.grid) == pytest.approx(record.metrics.get("peak_import", 0.0))
    assert len(shown.malformed) == record.metrics["malformed_replies"]


def test_the_axes_hold_the_series_of_the_day() -> None:
    world, record = played("energy", "outages", "random", index=3)
    shown = energy.replay_day(world, record)
    panels = energy.render_episode(world, record, "").axes
    lines = {line.get_label(): line.get_xydata() for axes in panels for line in axes.lines}
    stored = np.asarray(lines["in the battery"])
    assert stored.tolist() == [list(pair) for pair in zip(shown.edges, shown.stored, strict=True)]
    paid = np.asarray(lines["paid so far,\nat the end settled"])
    assert paid[:, 1].tolist() == pytest.approx([0.0, *(100 * money for money in shown.spent)])
    assert isinstance(shown.plant, Microgrid)
    short = [
        step + 1
        for step, least in enumerate(shown.plant.reserve)
        if shown.stored[step + 1] < least - 0.06 - TOLERANCE
    ]
    assert short
    marks = np.asarray(lines["below the reserve"])
    assert marks.tolist() == [[shown.edges[at], shown.stored[at]] for at in short]
    bars = [patch.get_data()[0] for patch in panels[1].patches if isinstance(patch, StepPatch)]
    heights = np.sum([values[::2] for values in bars], axis=0)
    assert heights.tolist() == pytest.approx(shown.power("BATTERY"))


@pytest.mark.nightly
def test_an_episode_that_ends_at_a_violation_is_drawn_as_far_as_it_went(tmp_path: Path) -> None:
    world = make_world("energy", "day", terminate_on_violation=True)
    task = world.adopt(task_of("energy", "day"))
    record = play(world, task, baselines("energy")["random"])
    shown = energy.replay_day(world, record)
    assert len(shown.done) == len(record.replies) < shown.plant.steps
    save_picture(world, record, tmp_path / "episode.png")
    assert size_of(tmp_path / "episode.png") > (800, 500)


def session_after(world: World, record: PlayedEpisode) -> Session[Any]:
    """Return the episode at its end: what a picture is drawn from."""
    assert isinstance(world, WarehouseWorld)
    *_, last = replay(world, record)
    return last.after.session


@pytest.mark.parametrize("who", [*PLAYERS, "noisy", "fcfs"])
@pytest.mark.parametrize("level", PICK)
def test_a_shift_shows_the_trips_that_earned_the_objective(level: str, who: str) -> None:
    world, record = played("warehouse", level, who)
    session = session_after(world, record)
    assert isinstance(session, PickSession)
    picking = session.picking
    earned = sum(value for trip in picking.shipments for _, value, _ in trip.earned)
    walked = sum(trip.walked for trip in picking.shipments)
    assert session.objective == pytest.approx(earned - picking.site.walk_cost * walked)
    assert walked == record.metrics["walked"]
    assert len(picking.refusals) == record.metrics["refused"]
    for trip in picking.shipments:
        assert length(tour_path(picking.site.layout, trip.stops)) == trip.walked


@pytest.mark.parametrize("who", [*PLAYERS, "noisy", "newsvendor"])
@pytest.mark.parametrize("level", STOCK)
def test_the_days_of_an_item_are_those_of_its_shelf(level: str, who: str) -> None:
    world, record = played("warehouse", level, who)
    session = session_after(world, record)
    assert isinstance(session, StockSession)
    steps: list[Any] = [step.before.session for step in replay(WarehouseWorld.cast(world), record)]
    for number, inventory in enumerate(session.inventories):
        item, days = inventory.item, inventory.days
        mornings = [before.inventories[number].on_hand for before in steps]
        assert [day.on_hand for day in days][:: item.model.review] == mornings
        asked = tuple(day.sold + day.lost for day in days)
        assert asked == session.compiled.problem.demand[number]
        assert all(day.sold == day.on_hand for day in days if day.lost)
        came = item.stock + sum(item.due) + sum(day.ordered for day in days)
        assert came == sum(day.sold for day in days) + inventory.position
    days = [day for inventory in session.inventories for day in inventory.days]
    sold, lost = sum(day.sold for day in days), sum(day.lost for day in days)
    assert record.metrics["fill_rate"] == pytest.approx(sold / (sold + lost))


def length(path: list[tuple[int, int]]) -> int:
    """Length of a path whose pieces are horizontal or vertical."""
    for (x, y), (to_x, to_y) in pairwise(path):
        assert x == to_x or y == to_y
    return sum(abs(x - to_x) + abs(y - to_y) for (x, y), (to_x, to_y) in pairwise(path))


@given(
    st.one_of(st.builds(AisleLayout, st.integers(1, 5), st.integers(1, 8)), st.just(MAP)), st.data()
)
@settings(max_examples=60, deadline=None)
def test_a_tour_is_drawn_as_long_as_it_is_walked(layout: Layout, data: st.DataObject) -> None:
    names = [cell.name for cell in layout.slots()]
    stops = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=6, unique=True))
    distances = walks(layout)
    places = [0, *(distances.number[stop] for stop in stops), 0]
    path = tour_path(layout, stops)
    assert length(path) == sum(distances.steps[p][q] for p, q in pairwise(places))
    if isinstance(layout, MapLayout):
        shelves = [layout.lines[y][x] == "x" for x, y in path]
        assert sum(shelves) == len(stops)


def test_a_floor_from_a_map_is_drawn(tmp_path: Path) -> None:
    world = make_world("warehouse", "pick")
    assert isinstance(world, WarehouseWorld)
    instance = dict(task_of("warehouse", "pick").instance)
    shelves = [cell.name for cell in MAP.slots()]
    instance["site"] = {**instance["site"], "layout": plain_layout(MAP)}
    instance["orders"] = [
        {**order, "lines": [[shelves[number % len(shelves)], 1]]}
        for number, order in enumerate(instance["orders"])
    ]
    task = world.task_of(instance)
    record = play(world, task, baselines("warehouse")["edd_exact"])
    save_picture(world, record, tmp_path / "map.png")
    assert size_of(tmp_path / "map.png") > (800, 500)


def test_drawing_leaves_an_episode_under_way_alone() -> None:
    world, record = played("energy", "small", "random")
    assert isinstance(world, EnergyWorld)
    world.start(record.task)
    world.reply(record.replies[0])
    before = world.shown
    energy.replay_day(world, record)
    assert world.shown == before


def test_a_record_of_other_options_is_refused() -> None:
    _, record = played("energy", "day", "random", index=1)
    assert record.metrics["violation_depth"] > 0.0
    with pytest.raises(TaskError, match="options"):
        energy.replay_day(make_world("energy", "day", flat_floor=True), record)


def test_what_cannot_be_drawn_is_refused_by_name(tmp_path: Path) -> None:
    world, record = played("energy", "small", "oracle")
    with pytest.raises(OptionError, match="gif"):
        save_picture(world, record, tmp_path / "day.gif")
    with pytest.raises(OptionError, match="folder"):
        save_picture(world, record, tmp_path / "none" / "day.png")


def test_a_world_without_a_picture_is_refused_by_name(tmp_path: Path, fresh_registry: None) -> None:
    assert all(has_picture(name) for name in specs())
    register(bargain.SPEC)
    world = make_world(bargain.SPEC.id)
    record = play(world, world.task(), baselines(bargain.SPEC.id)["random"])
    with pytest.raises(OptionError, match=f"{bargain.SPEC.id} has no picture"):
        save_picture(world, record, tmp_path / "bargain.png")
    with pytest.raises(OptionError, match="has no picture"):
        require_picture(bargain.SPEC.id)


def dots(axes: Axes) -> dict[str, list[tuple[float, float]]]:
    """What is marked, by its name in the legend: the probability and the line of each mark."""
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


def test_a_debate_shows_both_reports_and_the_truth_at_its_end_alone() -> None:
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


@pytest.mark.nightly
def test_play_writes_a_picture_and_refuses_one_before_the_first_turn(tmp_path: Path) -> None:
    path = tmp_path / "shift.png"
    line = ["play", "warehouse", "--policy", "fcfs", "--picture", str(path)]
    result = CliRunner().invoke(app, line)
    assert result.exit_code == 0, result.output
    assert str(path) in result.output.replace("\n", "")
    assert size_of(path) > (800, 500)
    refused = CliRunner().invoke(app, ["play", "forecast", "--picture", "forecast.gif"])
    assert isinstance(refused.exception, OptionError)
    assert not refused.output
