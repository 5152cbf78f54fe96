"""Laws of full days: the bound bounds, the plan is close to it, lots are cheapest."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.warehouse.drawn import task_of, world_of
from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.play import play
from tokengym.envs.registry import baselines
from tokengym.envs.warehouse.games.shop.oracle import (
    cheapest_lots,
    daily_plans,
    reference_value,
    upper_bound,
)
from tokengym.envs.warehouse.games.shop.rules import Days, read_shop
from tokengym.envs.warehouse.games.shop.session import ShopSession
from tokengym.envs.warehouse.games.stock.model import StockModel, poisson
from tokengym.envs.warehouse.games.stock.rules import Item, reorder
from tokengym.envs.warehouse.grammar import Trip, Wait, read_pick, read_reorder

LEVELS = ["full", "full_volatile"]


@pytest.mark.parametrize("level", LEVELS)
def test_the_optimum_is_named_a_bound(level: str) -> None:
    world = world_of(level)
    optimum = world.optimum(task_of(level, 0))["lead"]
    assert not optimum.exact
    assert optimum.value == 1.0


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", list(baselines("warehouse")))
def test_no_policy_exceeds_the_bound(level: str, name: str) -> None:
    world = world_of(level)
    for index in range(5):
        task = task_of(level, index, "validation")
        record = play(world, task, baselines("warehouse")[name], seed=index)
        assert record.turns[-1].metrics["objective"] <= task.answer["optimum"] + 1e-9


@pytest.mark.parametrize(("level", "least"), [("full", 0.9), ("full_volatile", 0.83)])
def test_the_plan_made_in_hindsight_comes_close_to_the_bound(level: str, least: float) -> None:
    """The bound charges no reorders, which cost three times as much at `full_volatile`."""
    world = world_of(level)
    scores = []
    for index in range(10):
        record = play(
            world,
            task_of(level, index),
            baselines("warehouse")["oracle"],
        )
        assert record.turns[-1].metrics["refused"] == 0
        assert record.turns[-1].metrics["malformed_replies"] == 0
        scores.append(record.turns[-1].metrics["normalized_score"])
    assert least < np.mean(scores) <= 1.0


@pytest.mark.parametrize("level", LEVELS)
def test_the_reference_is_what_the_baseline_of_that_name_plays(level: str) -> None:
    world = world_of(level)
    for index in range(5):
        task = task_of(level, index)
        record = play(world, task, baselines("warehouse")["fcfs"])
        assert record.turns[-1].metrics["objective"] == pytest.approx(task.answer["reference"])


def test_words_and_days_agree_on_what_was_earned() -> None:
    """The plan replayed without any text reaches what the world pays for."""
    world = world_of("full_volatile")
    for index in range(4):
        task = task_of("full_volatile", index)
        days = Days(read_shop(task.instance, task.answer["books"]))
        opened = False
        for said in task.answer["plan"]:
            lines = read_reorder(said, complete=True)
            if lines is not None:
                if opened:
                    days.close()
                days.open(reorder(days.inventories, lines)[0])
                opened = True
                continue
            command = read_pick(said, complete=True)
            if isinstance(command, Trip):
                assert not isinstance(days.picking.trip(*command), str)
            elif isinstance(command, Wait):
                days.picking.wait(command.time)
        days.close()
        record = play(world, task, baselines("warehouse")["oracle"])
        assert record.turns[-1].metrics["objective"] == pytest.approx(days.objective, abs=1e-9)


def test_the_bound_charges_stock_that_no_demand_can_use() -> None:
    task = task_of("full", 0)
    shop = read_shop(task.instance, task.answer["books"])
    plans = daily_plans(shop)
    first = shop.items[0]
    more = Item(first.sku, first.model.room, first.due, first.model, first.kind)
    fuller = replace(shop, items=(more, *shop.items[1:]))
    assert upper_bound(fuller, plans) < upper_bound(shop, plans)
    assert reference_value(shop) < upper_bound(shop, plans)


def test_a_day_ends_after_one_decision_more_than_it_has_orders() -> None:
    world = world_of("full")
    task = task_of("full", 2)
    world.start(task)
    session = world.session
    assert isinstance(session, ShopSession)
    for day, book in enumerate(task.answer["books"]):
        assert session.days.day == day
        world.reply("REORDER NONE")
        for _ in range(len(book) + 1):
            assert session.days.day == day
            world.reply("WAIT 1")
    assert session.days.over


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, 3), min_size=2, max_size=4),
    st.integers(0, 3),
    st.integers(1, 2),
    st.sampled_from([0.0, 0.5, 3.0]),
)
def test_lots_are_the_cheapest_that_serve_all(
    units: list[int], stock: int, lead: int, fixed: float
) -> None:
    model = StockModel((poisson(1.0),) * len(units), lead, 0.0, 1, 0.4, 1.0, fixed, 0.0, 20)
    item = Item("S1", stock, (0,) * (lead - 1), model, "about")

    def cost(lots: tuple[int, ...]) -> float:
        on_hand, due, total = stock, [0] * (lead - 1), 0.0
        for day, asked in enumerate(units):
            due.append(lots[day])
            total += fixed * (lots[day] > 0)
            if asked > on_hand:
                return math.inf
            on_hand -= asked
            total += 0.4 * on_hand
            on_hand += due.pop(0)
        return total

    choices = itertools.product(range(sum(units) + 1), repeat=len(units))
    best = min(cost(lots) for lots in choices if sum(lots) <= sum(units))
    found = cheapest_lots(item, units)
    assert (cost(tuple(found)) if found else math.inf) == pytest.approx(best)


def test_an_order_for_an_empty_slot_is_refused() -> None:
    task = task_of("full", 0)
    books = [list(book) for book in task.answer["books"]]
    taken = {item["slot"] for item in task.instance["items"]}
    free = next(f"A0-{row}" for row in range(1, 7) if f"A0-{row}" not in taken)
    books[0] = [{**books[0][0], "lines": [[free, 1]]}]
    with pytest.raises(TaskError, match=free):
        read_shop(task.instance, books)
