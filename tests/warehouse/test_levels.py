"""Levels and prompts: many, no answer to copy, all limits stated, costs that matter."""

import itertools
import math
import re
from collections.abc import Callable

import numpy as np
import pytest

from tests.warehouse.drawn import task_of, world_of
from tokengym.envs.core.play import Policy, play
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import PROMPTS, World
from tokengym.envs.registry import baselines
from tokengym.envs.warehouse.games.picking import heuristics
from tokengym.envs.warehouse.games.picking.generator import draw
from tokengym.envs.warehouse.games.picking.heuristics import Rule
from tokengym.envs.warehouse.games.picking.orders import Order, read_shift
from tokengym.envs.warehouse.games.picking.rules import PickingState
from tokengym.envs.warehouse.games.stock.heuristics import order_up_to
from tokengym.envs.warehouse.games.stock.model import StockModel
from tokengym.envs.warehouse.games.stock.session import StockSession
from tokengym.envs.warehouse.grammar import Trip, Wait, write_reorder
from tokengym.envs.warehouse.levels import LEVELS, PickLevel
from tokengym.envs.warehouse.world import WarehouseWorld

STOCK = [level for level in LEVELS if level.startswith("stock")]


def mean_return(level: str, policy: Policy, tasks: int) -> float:
    world = world_of(level)
    earned = [play(world, task_of(level, i), policy).returns["lead"] for i in range(tasks)]
    return float(np.mean(earned))


def test_shifts_that_begin_alike_lie_in_one_split() -> None:
    world, instance = world_of("pick_online"), dict(task_of("pick_online", 0).instance)
    late = {"value": 12, "due": 150}
    for value in range(30):
        orders = [
            {**order, **({**late, "value": value + 1} if order["release"] else {})}
            for order in instance["orders"]
        ]
        assert world.split_of({**instance, "orders": orders}) == "train"


@pytest.mark.parametrize("level", list(LEVELS))
def test_a_copy_of_the_terse_example_earns_nothing(level: str) -> None:
    world = world_of(level, prompt="terse")
    seen = ""

    def copy(_world: World, turn: Turn, _rng: np.random.Generator) -> str:
        nonlocal seen
        seen += turn.text
        return "\n".join(
            re.findall(r"TRIP O[\dO,]+(?:: A[\dA, -]+\d)?|REORDER S\d+ \d+|QUOTE \d+", seen)
        )

    for index in range(3):
        seen = ""
        task, _rng = task_of(level, index), np.random.default_rng(0)
        copied = play(world, task, copy)
        nothing = play(world, task, baselines("warehouse")["null"])
        assert copied.replies[0]
        assert copied.returns["lead"] == pytest.approx(nothing.returns["lead"], abs=1e-4)


@pytest.mark.parametrize("style", PROMPTS)
@pytest.mark.parametrize("level", ["pick", "pick_clauses", "pick_online"])
def test_the_number_of_replies_is_announced(level: str, style: str) -> None:
    world = world_of(level, prompt=style)
    turn = world.start(task_of(level, 0))
    assert f"{world.turn_limit} replies" in turn.text


def test_examples_differ_from_task_to_task() -> None:
    world = world_of("pick", prompt="terse")
    found = {
        re.findall(r"TRIP O\d[\dO,]*", world.start(task_of("pick", index)).text)[0]
        for index in range(8)
    }
    assert len(found) == 8


@pytest.mark.nightly
@pytest.mark.parametrize("level", STOCK)
def test_rules_blind_to_costs_stay_far_from_the_optimum(level: str) -> None:
    """The best of orders up to the mean demand and a margin, for any margin."""

    def with_margin(margin: float) -> Policy:
        def rule(model: StockModel, review: int) -> int:
            today = review * model.review
            mean = sum(model.means[today : today + model.lead + model.review])
            return round(mean + margin * math.sqrt(mean))

        def reply(world: World, _turn: Turn, _rng: np.random.Generator) -> str:
            session = WarehouseWorld.cast(world).session
            assert isinstance(session, StockSession)
            return write_reorder(
                [
                    (one.item.sku, order_up_to(rule, one, session.turns))
                    for one in session.inventories
                ]
            )

        return reply

    best = max(mean_return(level, with_margin(margin), 30) for margin in (-0.5, 0.0, 0.5, 1.0, 1.5))
    assert best < 0.75
    assert mean_return(level, baselines("warehouse")["newsvendor"], 30) < 0.85
    assert mean_return(level, baselines("warehouse")["replan"], 30) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.nightly
def test_the_best_honest_rule_is_far_above_heuristics() -> None:
    known = baselines("warehouse")
    thumb = mean_return("pick_online", known["edd_exact"], 15)
    assert mean_return("pick_online", known["replan"], 15) > thumb + 0.1


def filled(rank: Callable[[Order, PickingState], float]) -> Rule:
    """Return the rule that fills a trip with orders by rank and walks the shortest tour."""

    def rule(state: PickingState) -> Trip | Wait:
        ranked = sorted(heuristics.available(state), key=lambda order: rank(order, state))
        batch = heuristics.fill(state, ranked)
        return heuristics.exact_trip(state, batch) if batch else heuristics.until_release(state)

    return rule


def farthest(order: Order, state: PickingState) -> int:
    number, steps = state.site.walks
    return max(steps[0][number[slot]] for slot in order.slots)


SENSIBLE: list[Rule] = [
    heuristics.singles,
    heuristics.earliest_due_s_shape,
    heuristics.earliest_due_exact,
    filled(lambda order, _: order.release),
    filled(lambda order, _: -order.value),
    filled(lambda order, _: -order.value / order.units),
    filled(farthest),
    filled(lambda order, state: order.due - farthest(order, state)),
]


@pytest.mark.nightly
@pytest.mark.parametrize("level", ["pick", "pick_online"])
def test_sensible_rules_that_differ_seldom_earn_the_same(level: str) -> None:
    """In a book of three or four orders they would make the same trips."""
    drawn, rng = LEVELS[level], np.random.default_rng(0)
    assert isinstance(drawn, PickLevel)
    ties = []
    for _ in range(200):
        site, orders, _stock = read_shift(draw(rng, drawn))
        values = [heuristics.follow(rule, PickingState(site, orders)) for rule in SENSIBLE]
        ties += [abs(one - other) < 1e-6 for one, other in itertools.combinations(values, 2)]
    assert np.mean(ties) < 0.05


def test_the_best_honest_rule_knows_only_what_was_shown() -> None:
    """Orders that have not been shown yet change none of its replies before they are."""
    world, other = world_of("pick_online"), world_of("pick_online")
    replan = baselines("warehouse")["replan"]
    task = task_of("pick_online", 0)
    turn, rng = world.start(task), np.random.default_rng(0)
    first = replan(world, turn, rng)
    instance, cheap = dict(task.instance), {"value": 4, "due": 99}
    orders = [{**order, **(cheap if order["release"] else {})} for order in instance["orders"]]
    changed = other.task_of({**instance, "orders": orders})
    assert changed.answer != task.answer
    assert replan(other, other.start(changed), rng) == first
