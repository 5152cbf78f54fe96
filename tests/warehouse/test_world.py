"""Laws of the whole world: short prompts, the oracle on top, tasks of one's own, damaged tasks."""

import json

import pytest

from tests.warehouse.drawn import task_of, world_of
from tokengym.envs.core.errors import EpisodeStateError, TaskError
from tokengym.envs.core.play import play
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import StopReason
from tokengym.envs.registry import baselines
from tokengym.envs.warehouse.games.picking.orders import PickingSite
from tokengym.envs.warehouse.games.picking.session import PickSession
from tokengym.envs.warehouse.layout import AisleLayout, MapLayout
from tokengym.rewards.control import bounded_score

EXACT = ["pick", "pick_clauses", "stock", "stock_large", "lease"]


def shift(**changes: object) -> dict[str, object]:
    """A shift of two orders, as a user writes it."""
    site = PickingSite(AisleLayout(2, 3), capacity=2, decay=10.0, walk_cost=0.1).plain()
    order = {"value": 5, "due": 3, "release": 0}
    orders = [
        {**order, "id": "O1", "lines": [["A0-3", 1]]},
        {**order, "id": "O2", "lines": [["A0-2", 1]]},
    ]
    return {"mode": "pick", "site": site, "orders": orders, "stock": None} | changes


@pytest.mark.parametrize("level", EXACT)
def test_an_exact_optimum_is_reached_by_the_oracle(level: str) -> None:
    world = world_of(level)
    for index in range(3):
        task = task_of(level, index, "test")
        assert world.optimum(task)["lead"] == (1.0, True)
        record = play(world, task, baselines("warehouse")["oracle"])
        assert record.returns["lead"] == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("level", ["pick", "pick_clauses", "pick_online"])
def test_the_reference_policy_earns_a_quarter_beside_its_form(level: str) -> None:
    """One order at a time or, where that earns less, none."""
    world, policies = world_of(level), baselines("warehouse")
    for index in range(4):
        task = task_of(level, index)
        earned = [play(world, task, policies[name]).returns["lead"] for name in ("fcfs", "null")]
        assert max(earned) == pytest.approx(0.05 + 0.95 * bounded_score(0.0), abs=1e-4)


def test_a_refusal_is_told_and_costs_a_unit_of_time() -> None:
    world = world_of("pick")
    task = task_of("pick", 0)
    world.start(task)
    turn = world.reply("TRIP O9: A0-1")
    assert turn.text.startswith("Refused: there is no order O9. It cost 1.\nIt is time 1. Open")
    turn = world.reply("please ship everything")
    assert turn.text.startswith("Malformed reply")
    assert "It is time 2. Open orders: O1" in turn.text
    session = world.session
    assert isinstance(session, PickSession)
    assert (session.refused, session.malformed) == (1, 1)


def test_orders_come_when_they_are_released() -> None:
    world = world_of("pick_online")
    task = task_of("pick_online", 0)
    turn = world.start(task)
    session = world.session
    assert isinstance(session, PickSession)
    shown = turn.text
    while not turn.done:
        now = session.picking.now
        for order in task.instance["orders"]:
            line = f"{order['id']} ${order['value']} due"
            assert (line in shown) == (order["release"] <= now)
        turn = world.reply("WAIT 4")
        shown += turn.text


def test_done_ends_the_shift_with_what_was_earned() -> None:
    world = world_of("pick")
    task = task_of("pick", 0)
    world.start(task)
    world.reply(task.answer["plan"][0])
    turn = world.reply("DONE")
    assert turn.stop_reason is StopReason.COMPLETED
    assert turn.metrics["unshipped"] > 0
    session = world.session
    assert turn.metrics["objective"] == session.objective > 0


def test_a_shift_ends_at_its_turn_limit() -> None:
    world = world_of("pick")
    turn = world.start(task_of("pick", 0))
    for _ in range(world.turn_limit):
        assert not turn.done
        turn = world.reply("WAIT 1")
    assert turn.stop_reason is StopReason.TURN_LIMIT


def test_a_task_of_one_s_own_is_solved_and_played() -> None:
    world = world_of("pick")
    task = world.task_of(shift())
    assert task == world.task_of(shift())
    assert Task.from_json(task.to_json()) == task
    record = play(world, task, baselines("warehouse")["oracle"])
    assert record.returns["lead"] == 1.0
    site = PickingSite(MapLayout(("gx", ".x")), 2, 10.0, 0.1).plain()
    orders = [
        {"id": "O1", "value": 1, "due": 1, "release": 0, "lines": [["A1-0", 1]]},
        {"id": "O2", "value": 9, "due": 1, "release": 0, "lines": [["A1-1", 1]]},
    ]
    mapped = world.task_of(shift(site=site, orders=orders))
    assert "gx\n.x" in world.start(mapped).text


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"mode": "sort"}, "modes"),
        ({"orders": []}, "at least one order"),
        ({"site": {}}, "layout"),
        (
            {"orders": [{"id": "O1", "value": 5, "due": 1, "release": 0, "lines": [["A9-1", 1]]}]},
            "A9-1",
        ),
        (
            {"orders": [{"id": "O1", "value": 5, "due": 1, "release": 0, "lines": [["A0-1", 3]]}]},
            "3 units",
        ),
        (
            {"orders": [{"id": "O1", "value": 0, "due": 1, "release": 0, "lines": [["A0-1", 1]]}]},
            "positive",
        ),
        (
            {"orders": [{"id": "O1", "value": 5, "due": 1, "release": 0, "lines": [["A0-1", 1]]}]},
            "nothing to gain",
        ),
        (
            {"orders": [{"id": "O1", "value": 5, "due": 1, "release": 0, "lines": []}]},
            "at least 1 unit",
        ),
    ],
)
def test_an_instance_that_cannot_be_played_is_refused(
    changes: dict[str, object], reason: str
) -> None:
    with pytest.raises(TaskError, match=reason):
        world_of("pick").task_of(shift(**changes))


def test_own_demand_and_own_orders_are_what_happens() -> None:
    world = world_of("stock")
    drawn = task_of("stock", 0)
    demand = [[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], [0] * 10]
    task = world.task_of(drawn.instance, outcomes=demand)
    assert task.answer["demand"] == demand
    assert task.answer["late"] == [[0] * 10] * 2
    with pytest.raises(TaskError, match="10 days"):
        world.task_of(drawn.instance, outcomes=[[1, 2]])


@pytest.mark.parametrize("level", ["pick", "stock", "lease"])
@pytest.mark.parametrize("part", ["instance", "answer"])
def test_a_damaged_task_is_refused(level: str, part: str) -> None:
    world = world_of(level)
    data = json.loads(task_of(level, 0).to_json())
    for key in list(data[part]):
        damaged = json.loads(json.dumps(data))
        del damaged[part][key]
        task = Task.from_json(json.dumps(damaged))
        with pytest.raises(TaskError):
            world.start(task)


def test_there_is_no_session_before_the_start() -> None:
    with pytest.raises(EpisodeStateError):
        _ = world_of("pick").session
