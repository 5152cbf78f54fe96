"""Laws of keeping stock: regrets without luck, the oracle's 1, refusals."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.warehouse.drawn import task_of, world_of
from tokengym.envs.core.play import play
from tokengym.envs.core.task import canonical_json
from tokengym.envs.registry import baselines
from tokengym.envs.warehouse.games.stock.session import StockSession
from tokengym.envs.warehouse.world import WarehouseWorld

LEVELS = ["stock", "stock_large"]


def stock_session(world: WarehouseWorld) -> StockSession:
    assert isinstance(world.session, StockSession)
    return world.session


@given(st.lists(st.lists(st.integers(0, 40), min_size=3, max_size=3), max_size=12))
def test_no_orders_whatever_earn_more_than_one_or_lose_regret(orders: list[list[int]]) -> None:
    world = world_of("stock")
    turn = world.start(task_of("stock", 1))
    before = stock_session(world).objective
    for units in orders:
        if turn.done:
            break
        turn = world.reply("\n".join(f"REORDER S{i} {n}" for i, n in enumerate(units, 1)))
        assert stock_session(world).objective <= before
        before = stock_session(world).objective
    while not turn.done:
        turn = world.reply("REORDER NONE")
    assert turn.metrics["normalized_score"] <= 1.0


@pytest.mark.nightly
@pytest.mark.parametrize(("level", "runs"), [("stock", 1500), ("stock_large", 400)])
def test_the_objective_is_minus_the_mean_of_the_realised_cost(level: str, runs: int) -> None:
    """Over demand paths: what is scored is what the text says is paid, the end included."""
    world = world_of(level)
    task = task_of(level, 0)
    rng = np.random.default_rng(11)
    gaps = []
    for _ in range(runs):
        paths = rng.poisson([item["demand"]["poisson"] for item in task.instance["items"]])
        answer = dict(task.answer) | {"demand": paths.tolist()}
        drawn = replace(task, answer_json=canonical_json(answer))
        turn = world.start(drawn)
        while not turn.done:
            lines = [f"REORDER S{n} {rng.integers(5)}" for n in range(1, 1 + len(paths))]
            turn = world.reply("\n".join(lines))
        gaps.append(turn.metrics["total_cost"] + turn.metrics["objective"])
    error = np.std(gaps) / len(gaps) ** 0.5
    assert abs(np.mean(gaps)) < 4 * error


@pytest.mark.nightly
def test_the_reference_earns_a_quarter_on_average() -> None:
    world = world_of("stock")
    policy = baselines("warehouse")["fcfs"]
    scores = []
    for index in range(150):
        record = play(world, task_of("stock", index), policy)
        scores.append(record.turns[-1].metrics["normalized_score"])
    assert abs(np.mean(scores)) < 4 * np.std(scores) / len(scores) ** 0.5


def _cost_of(terms: dict[str, Any], demand: list[int], order: int) -> float:
    """Return what one item costs where no delivery is late and every review asks for `order`."""
    on_hand, due, cost = terms["stock"], list(terms["due"]), 0.0
    for asked in demand:
        placed = order if on_hand + sum(due) + order <= terms["room"] else 0
        cost += terms["fixed"] if placed else 0
        left = max(on_hand - asked, 0)
        cost += terms["holding"] * left + terms["lost"] * max(asked - on_hand, 0)
        due.append(placed)
        on_hand = left + due.pop(0)
    return float(cost + terms["leftover"] * (on_hand + sum(due)))


def test_the_realised_cost_is_what_happened() -> None:
    world = world_of("stock")
    task = task_of("stock", 1)
    assert not any(map(any, task.answer["late"]))
    turn = world.start(task)
    for _day in task.answer["demand"][0]:
        turn = world.reply("REORDER S1 2")
    cost = sum(
        _cost_of(terms, demand, order)
        for terms, demand, order in zip(
            task.instance["items"], task.answer["demand"], (2, 0), strict=True
        )
    )
    assert turn.metrics["total_cost"] == pytest.approx(cost)


def test_orders_without_room_or_item_are_refused() -> None:
    world = world_of("stock")
    task = task_of("stock", 0)
    turn = world.start(task)
    turn = world.reply("REORDER S1 9999\nREORDER S9 1\nREORDER S2 1")
    room = task.instance["items"][0]["room"] - task.instance["items"][0]["stock"]
    room -= sum(task.instance["items"][0]["due"])
    assert turn.text.startswith(f"Refused: S1 has room for {room} more; there is no item S9.")
    inventory = stock_session(world).inventories[1]
    assert sum(inventory.due) + inventory.on_hand > 0


def test_room_that_items_share_goes_to_those_named_first() -> None:
    world = world_of("stock_large")
    task = task_of("stock_large", 0)
    world.start(task)
    taken = sum(item["stock"] for item in task.instance["items"])
    rooms = {item["sku"]: item["room"] - item["stock"] for item in task.instance["items"]}
    left = task.instance["shared"]["room"] - taken
    said, refused = [], False
    for sku, room in reversed(rooms.items()):
        said.append(f"REORDER {sku} {room}")
        if room <= left:
            left -= room
        else:
            refused = True
            reason = f"all items together have room for {left} more"
    turn = world.reply("\n".join(said))
    assert refused
    assert reason in turn.text
    placed = [inventory.days[0].ordered for inventory in stock_session(world).inventories]
    assert sum(placed) + taken == task.instance["shared"]["room"] - left
