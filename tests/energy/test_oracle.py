"""Laws of the optimum: the replay reaches it, nothing beats it, two methods agree on it."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.energy.drawn import plant_of, task_of, world_of
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.play import play
from tokengym.envs.energy.credit import CostToGo
from tokengym.envs.energy.microgrid import Microgrid
from tokengym.envs.energy.oracle import UNSAFE, optimum, plan, simulate, simulate_rule
from tokengym.envs.energy.rules import reference
from tokengym.envs.energy.step_result import State
from tokengym.envs.registry import baselines, spec

LEVELS = [level for level in spec("energy").levels if not level.startswith("commit")]
CONVEX = [level for level in LEVELS if level != "household"]


@pytest.mark.parametrize("level", LEVELS)
def test_the_plan_replayed_reproduces_the_optimum_and_breaks_no_floor(level: str) -> None:
    for index in range(6):
        answer, plant = task_of(level, index).answer, plant_of(level, index)
        replayed = simulate(plant, tuple(map(tuple, answer["plan"])))
        assert abs(replayed.money - answer["optimum"]) <= 1e-9
        assert not any(replayed.safety)
        solved = plan(plant, 0, plant.initial)
        assert solved is not None
        assert abs(solved.cost - answer["optimum"]) <= 1e-9


@pytest.mark.parametrize(("decimals", "share"), [(2, 0.02), (1, 0.05)])
@pytest.mark.parametrize("level", LEVELS)
def test_plans_in_tenths_of_a_kw_lose_little(level: str, decimals: int, share: float) -> None:
    """From what is shown, to the nearest digit: the limit is kept and the optimum nearly earned."""
    lost = []
    for index in range(6):
        answer, plant = task_of(level, index).answer, plant_of(level, index)
        planned, state = [], plant.initial
        for step, commands in enumerate(answer["plan"]):
            state = plant.advance(step, state, tuple(commands)).state
            planned.append(state)
        run = simulate_rule(plant, partial(towards, plant, planned, answer["plan"], decimals))
        assert not any(run.safety)
        lost.append((run.money - answer["optimum"]) / (answer["reference"] - answer["optimum"]))
    assert np.mean(lost) <= share


def towards(
    plant: Microgrid,
    planned: list[State],
    commands: list[list[float]],
    decimals: int,
    step: int,
    state: State,
) -> tuple[float, ...]:
    """The commands to what was planned to be stored, from what is shown, to so many decimals."""
    seen = plant.seen(step, state)
    change = planned[step].stored - seen.stored
    power = change / plant.efficiency if change > 0.0 else change * plant.efficiency
    powers = [power / plant.dt, *commands[step][1:]]
    if plant.at_home(step):
        powers[1] = (planned[step].charged - seen.charged) / plant.dt
    if plant.house:
        drift, rise = plant.warming[step]
        warm = planned[step].indoor - drift - plant.house.keep(plant.dt) * seen.indoor
        powers[-1] = warm / rise
    return tuple(round(power, decimals) for power in powers)


@pytest.mark.parametrize("level", LEVELS)
def test_a_miss_within_the_tolerance_costs_more_than_it_gains(
    level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the optimum keeps the limit to the last digit, and may be rounded."""
    plants = [plant_of(level, index) for index in range(6)]
    assert {plant.slack for plant in plants} == {0.1 if level == "household" else 0.06}
    monkeypatch.setattr(Microgrid, "slack", 0.0)
    for index, plant in enumerate(plants):
        plan.cache_clear()
        kept = optimum(plant)
        plan.cache_clear()
        assert kept is not None
        assert kept.cost == pytest.approx(task_of(level, index).answer["optimum"], abs=1e-8)


@pytest.mark.parametrize("level", LEVELS)
def test_the_scale_is_the_holds_announced_extra_cost(level: str) -> None:
    for index in range(6):
        answer, expected = task_of(level, index).answer, plant_of(level, index).expected
        held, best = reference(expected), optimum(expected)
        assert best is not None
        assert not any(held.safety)
        wanted = max(held.money - best.cost, 0.05 * abs(best.cost))
        assert answer["scale"] == pytest.approx(wanted, abs=1e-4)
        assert held.money - best.cost >= 0.5
        assert answer["reference"] == reference(plant_of(level, index)).money


@pytest.mark.parametrize("level", LEVELS)
def test_the_hold_earns_less_by_its_extra_cost(level: str) -> None:
    world, affine = world_of(level), 0
    for index in range(6):
        answer = task_of(level, index).answer
        more = (answer["reference"] - answer["optimum"]) / answer["scale"]
        for name, expected in (("oracle", 1.0), ("hold", 1.0 - 0.95 * 0.8 * 0.36 * more)):
            if more > 2.5:
                continue
            affine += 1
            record = play(world, task_of(level, index), baselines("energy")[name])
            assert record.returns["operator"] == pytest.approx(expected, abs=2**-14)
    assert affine >= 8


@given(st.sampled_from(LEVELS), st.integers(0, 5), st.integers(0, 2**32), st.floats(0.0, 1.0))
def test_no_other_safe_run_is_cheaper_than_the_plan(
    level: str, index: int, seed: int, size: float
) -> None:
    plant, answer = plant_of(level, index), task_of(level, index).answer
    rng = np.random.default_rng(seed)
    for shape in (0.01, 0.3, 3.0):
        shaken = tuple(
            tuple(power + size * shape * rng.normal() for power in command)
            for command in answer["plan"]
        )
        run = simulate(plant, shaken)
        if not any(run.safety):
            # A step may miss the floor by the tolerance, which is worth this much at the most.
            assert run.money >= answer["optimum"] - 1e-6 * plant.steps


@pytest.mark.parametrize("level", CONVEX)
def test_dynamic_programming_and_the_linear_program_agree(level: str) -> None:
    for index in range(6):
        plant = plant_of(level, index)
        value = CostToGo(plant).at(0, plant.initial)
        assert math.isclose(value, task_of(level, index).answer["optimum"], abs_tol=1e-9)


@pytest.mark.nightly
@given(st.sampled_from(CONVEX), st.integers(0, 3), st.floats(0.0, 1.0), st.data())
def test_the_value_function_solves_from_any_state(
    level: str, index: int, share: float, data: st.DataObject
) -> None:
    plant = plant_of(level, index)
    step = data.draw(st.integers(0, plant.steps - 1))
    stored = share * plant.capacity
    solved = plan(plant, step, State(stored), UNSAFE)
    assert solved is not None
    assert math.isclose(CostToGo(plant).at(step, State(stored)), solved.cost, abs_tol=1e-6)


@pytest.mark.nightly
@given(st.sampled_from(CONVEX), st.integers(0, 3), st.integers(0, 2**32))
def test_the_credits_of_an_episode_sum_to_minus_its_regret(
    level: str, index: int, seed: int
) -> None:
    world, task = world_of(level, credit=True), task_of(level, index)
    rng, turn = np.random.default_rng(seed), world.start(task)
    credits = []
    while not turn.done:
        turn = world.reply(f"BATTERY {rng.uniform(-4.0, 4.0):.2f}")
        credits.append(turn.metrics["credit"])
    spent = turn.metrics["total_money_cost"] + UNSAFE * turn.metrics["total_cost"]
    assert math.isclose(sum(credits), task.answer["optimum"] - spent, abs_tol=1e-8)
    assert max(credits) <= UNSAFE * 1e-6 + 1e-9


@pytest.mark.parametrize("level", CONVEX)
def test_the_oracle_is_debited_nothing(level: str) -> None:
    record = play(world_of(level, credit=True), task_of(level, 0), baselines("energy")["oracle"])
    assert max(abs(turn.metrics["credit"]) for turn in record.turns[1:]) <= 1e-8


@pytest.mark.parametrize("reply", ["", "BATTERY 0 0.3", "I would rest.", "BATTERY"])
@pytest.mark.parametrize("step", [0, 5, 11])
def test_a_malformed_reply_is_debited_its_loss_of_return(reply: str, step: int) -> None:
    world, task = world_of("small", credit=True), task_of("small", 0)

    def played(other: str | None, at: range) -> tuple[float, float]:
        """Return the return, and the credit at the first of the steps `at` played by `other`."""
        turn = world.start(task)
        credits: list[float] = []
        while not turn.done:
            own = baselines("energy")["oracle"](world, turn, np.random.default_rng(0))
            turn = world.reply(own if other is None or len(credits) not in at else other)
            credits.append(turn.metrics["credit"])
        return world.returns["operator"], credits[at.start]

    best, _ = played(None, range(12))
    money = task.answer["scale"] / (0.8 * 0.36)
    at = range(step, step + 1)
    good, good_credit = played("BATTERY 0", at)
    bad, bad_credit = played(reply, at)
    # Of an episode that earns less than the optimum, a malformed reply takes less.
    spared = (best - good) / 12
    assert good_credit - bad_credit == pytest.approx(money * (good - bad + spared), abs=1e-3)
    assert good_credit - bad_credit > 0.0


def test_a_nonconvex_cost_to_go_refuses_credit() -> None:
    for level in ("commit", "household"):
        with pytest.raises(OptionError, match="convex"):
            world_of(level, credit=True)
    grid = plant_of("small", 0)
    with pytest.raises(OptionError, match="step 11"):
        CostToGo(replace(grid, resale=tuple(p + 0.1 for p in grid.price)))


def test_an_unsafe_plan_is_found_only_where_slack_is_charged() -> None:
    grid = plant_of("small", 0)
    hopeless = replace(grid, schedule=(grid.capacity + 1.0,) * grid.steps)
    assert plan(hopeless, 0, hopeless.initial) is None
    forced = plan(hopeless, 0, hopeless.initial, UNSAFE)
    assert forced is not None
    assert forced.cost > UNSAFE
