"""Laws of leasing: exact earnings, regrets without luck, what a quote may be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.warehouse.drawn import task_of, world_of
from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.play import play
from tokengym.envs.registry import baselines
from tokengym.envs.warehouse.games.leasing.generator import draw_customers
from tokengym.envs.warehouse.games.leasing.heuristics import lowest, myopic
from tokengym.envs.warehouse.games.leasing.oracle import LeaseValues
from tokengym.envs.warehouse.games.leasing.rules import CustomerKind, LeaseModel
from tokengym.envs.warehouse.games.leasing.session import LeaseSession
from tokengym.envs.warehouse.grammar import read_quote, write_quote

TINY = LeaseModel(
    bays=2,
    kinds=(CustomerKind("A", 1, 2, 2, 4), CustomerKind("B", 2, 1, 3, 3)),
    chances=((0.5, 0.5), (0.25, 0.75), (0.5, 0.5)),
    start=(1,),
)


def test_the_dynamic_program_earns_what_trying_everything_does() -> None:
    """Here bays taken are counted month by month, there by the month they come back."""

    def by_month(model: LeaseModel, month: int, leases: tuple[tuple[int, int], ...]) -> float:
        if month == model.months:
            return 0.0
        total = 0.0
        running = tuple((bays, end) for bays, end in leases if end > month)
        free = model.bays - sum(bays for bays, _ in running)
        for chance, kind in zip(model.chances[month], model.kinds, strict=True):
            away = by_month(model, month + 1, running)
            best = away
            if kind.bays <= free:
                signed = by_month(model, month + 1, (*running, (kind.bays, month + kind.months)))
                for price in range(1, kind.high + 1):
                    odds = np.mean([price <= x for x in range(kind.low, kind.high + 1)])
                    earned = price * kind.bays * kind.months + signed
                    best = max(best, float(odds * earned + (1 - odds) * away))
            total += chance * best
        return total

    found = LeaseValues(TINY).expected(0, TINY.start)
    assert found == pytest.approx(by_month(TINY, 0, ((1, 1),)))
    assert found > LeaseValues(TINY, lowest).expected(0, TINY.start)


def test_rules_of_thumb() -> None:
    kind = CustomerKind("A", 1, 1, 4, 10)
    assert lowest(kind) == 4
    # 4 earns 4, 5 earns 5 * 6/7 = 4.29, 6 earns 6 * 5/7 = 4.29, 7 earns 7 * 4/7 = 4.
    assert myopic(kind) in (5, 6)
    assert kind.signs(11) == 0.0
    assert kind.signs(1) == 1.0


@given(st.lists(st.integers(0, 60), min_size=8, max_size=8))
def test_no_quotes_lose_regret_or_lease_what_is_taken(prices: list[int]) -> None:
    world = world_of("lease")
    world.start(task_of("lease", 1))
    session = world.session
    assert isinstance(session, LeaseSession)
    before = session.objective
    for price in prices:
        world.reply(write_quote(price))
        assert session.objective <= before + 1e-9
        assert session.compiled.problem.model.free(session.taken) >= 0
        before = session.objective


@pytest.mark.nightly
def test_the_objective_is_the_mean_of_what_is_earned() -> None:
    world, task = world_of("lease"), task_of("lease", 0)
    rng = np.random.default_rng(3)
    gaps = []
    for _ in range(200):
        answer = {**task.answer, **draw_customers(task.instance, rng)}
        drawn = world._new_task("train", 0, task.instance, answer)
        turn = play(world, drawn, baselines("warehouse")["newsvendor"]).turns[-1]
        gaps.append(turn.metrics["earned"] - turn.metrics["objective"])
    assert abs(np.mean(gaps)) < 4.5 * np.std(gaps) / len(gaps) ** 0.5


@pytest.mark.parametrize(
    ("said", "price"),
    [
        ("QUOTE 14", 14),
        ("quote: $14", 14),
        ("I think.\n**QUOTE 14 dollars**", 14),
        ("QUOTE 14\nREFUSE", 0),
        ("REFUSE", 0),
        *(("$\\boxed{14}$", 14), ("I recommend QUOTE $14 per bay and month.", 14)),
        ("QUOTE 0", None),
        ("QUOTE 1000", None),
        ("QUOTE -5", None),
        ("QUOTE", None),
        ("QUOTE 3 or QUOTE 4", None),
    ],
)
def test_a_price_is_read(said: str, price: int | None) -> None:
    assert read_quote(said).value == price
    # Of a reply that was cut off, the lines that had ended count.
    whole, _, _ = said.rpartition("\n")
    assert read_quote(said, complete=False).value == read_quote(whole).value


@pytest.mark.parametrize(
    "change",
    [
        {"bays": 0},
        {"start": (3,)},
        {"start": (1, 0)},
        {"chances": ((0.5, 0.4),)},
        {"kinds": ()},
        {
            "bays": 300,
            "kinds": (CustomerKind("A", 1, 9, 2, 4),),
            "chances": ((1.0,),),
            "start": (0,) * 8,
        },
    ],
)
def test_a_warehouse_that_cannot_be_leased_out_is_refused(change: dict[str, object]) -> None:
    fields = {"bays": 2, "kinds": TINY.kinds, "chances": TINY.chances, "start": (1,)}
    with pytest.raises(TaskError):
        LeaseModel(**{**fields, **change})  # type: ignore[arg-type]
