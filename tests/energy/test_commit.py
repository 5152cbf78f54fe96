"""Laws of the off-grid site: books kept from the texts alone, plans against exhaustive search."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.contract.planners.site import Site
from tests.energy.drawn import plant_of, task_of, world_of
from tokengym.envs.core.errors import OptionError
from tokengym.envs.energy.commitment import PossibleDay, planned
from tokengym.envs.energy.dispatch import (
    SiteRule,
    cycle_charging,
    merit_order,
    one_unit_always,
    run_by_day,
    scenario_plan,
    worst_day_plan,
)
from tokengym.envs.energy.plants import Plant, plant_from
from tokengym.envs.energy.site import OffGridSite
from tokengym.envs.energy.step_result import Commands, State

LEVELS = ("commit", "commit_6")


def site_of(plant: Plant) -> OffGridSite:
    assert isinstance(plant, OffGridSite)
    return plant


def expected(site: OffGridSite, rule: SiteRule) -> float:
    return float(np.dot(site.chances, [run.money for run in run_by_day(site, rule)]))


# What is charged

HOURS = st.tuples(st.floats(-1.0, 9.0), st.floats(-1.0, 5.0)).map(
    lambda pair: tuple(round(kw, 2) for kw in pair)
)


@pytest.mark.nightly
@pytest.mark.parametrize("level", LEVELS)
def test_days_begin_alike_differ_later_and_their_chances_are_twentieths(level: str) -> None:
    for index in range(8):
        site = plant_of(level, index)
        assert sum(site.chances) == pytest.approx(1.0)
        assert all(round(20 * chance) == pytest.approx(20 * chance) for chance in site.chances)
        nodes = [
            len(
                {
                    (load[:hour], sun[:hour])
                    for load, sun in zip(site.loads, site.suns, strict=False)
                }
            )
            for hour in range(25)
        ]
        assert nodes[2] == 1
        assert nodes[-1] == len(site.chances)
        assert nodes == sorted(nodes)
        most = sum(unit.rating for unit in site.units)
        assert max(map(max, site.loads)) <= 0.95 * most + 0.05
        assert 0.0 < site.floor < site.energy + 1e-9 <= site.capacity + 2e-9


@pytest.mark.nightly
@given(st.sampled_from(LEVELS), st.integers(0, 3), st.lists(HOURS, min_size=24, max_size=24))
def test_both_units_running_always_keep_the_limit(
    level: str, index: int, told: list[tuple[float, float]]
) -> None:
    site = plant_of(level, index)
    big, small = site.units

    def both(site: OffGridSite, hour: int, state: State) -> Commands:
        return max(told[hour][0], big.least), max(told[hour][1], small.least)

    assert not any(cost for run in run_by_day(site, both) for cost in run.safety)


# Rules and plans


@pytest.mark.nightly
@pytest.mark.parametrize("level", LEVELS)
def test_rules_for_the_worst_day_always_keep_limits(level: str) -> None:
    for index in range(6):
        site = plant_of(level, index)
        rules = (one_unit_always, cycle_charging, merit_order, worst_day_plan, scenario_plan)
        for rule in rules:
            runs = run_by_day(site, rule)
            assert not any(cost for run in runs for cost in run.safety), rule.__name__


@pytest.mark.nightly
def test_not_even_a_little_of_the_limit_is_bought() -> None:
    """Three hundredths of a kWh would be cheaper than the start of a unit on two of six days."""
    site = site_of(plant_from(world_of("commit_6").task("test", 5).instance))
    assert not any(cost for run in run_by_day(site, scenario_plan) for cost in run.safety)


@pytest.mark.nightly
@pytest.mark.parametrize("level", LEVELS)
def test_the_scenario_plan_sets_a_tasks_score(level: str) -> None:
    for index in range(3):
        site, answer = plant_of(level, index), task_of(level, index).answer
        runs = run_by_day(site, scenario_plan)
        assert answer["optimum"] == pytest.approx(runs[site.day].money)
        held, best = expected(site, one_unit_always), expected(site, scenario_plan)
        assert answer["scale"] == pytest.approx(max(held - best, 0.05 * best), abs=1e-4)


@pytest.mark.nightly
@pytest.mark.parametrize("level", LEVELS)
def test_a_reader_of_the_prompt_finds_the_scale(level: str) -> None:
    """By the rule and the plan that the text names; its plan is on another grid."""
    task, world = task_of(level, 0), world_of(level)
    reader = Site(world.start(task).text)
    assert reader.scale() == pytest.approx(100.0 * task.answer["scale"], rel=0.01)


def small_site(seed: int) -> OffGridSite:
    """A site of three hours and two days that part after the first, with few powers to choose."""
    rng = np.random.default_rng(seed)
    alike = (round(float(rng.uniform(0.2, 1.2)), 1),)
    loads = tuple(alike + tuple(np.round(rng.uniform(0.0, 1.4, 2), 1).tolist()) for _ in range(2))
    return OffGridSite(
        start=0,
        dt=1.0,
        power=0.8,
        price=(),
        price_of_missing=0.6,
        price_of_extra=0.3,
        capacity=2.0,
        efficiency=0.9,
        energy=round(float(rng.uniform(0.3, 2.0)), 1),
        wear=0.03,
        floor=0.3,
        generators=((1.0, 0.15, 0.4, 0.5, 2), (0.5, 0.05, 0.5, 0.2, 2)),
        chances=(0.4, 0.6),
        loads=loads,
        suns=((0.0, 0.2, 0.0), (0.0, 0.0, 0.3)),
        day=0,
    )


def least(site: OffGridSite, hour: int, state: State, days: tuple[int, ...]) -> float:
    """The least expected money to the end by trying every command in tenths, 300 a kWh missed."""
    if hour == site.steps:
        return site.closing(state)
    weight, best = sum(site.chances[day] for day in days), np.inf
    each = [
        [
            *([] if hours > 1 else [0.0]),
            *np.union1d(np.arange(np.ceil(10 * unit.least), 10 * unit.rating + 1) / 10, unit.least),
        ]
        for unit, hours in zip(site.units, state.running, strict=False)
    ]
    for told in itertools.product(*each):
        money, groups = 0.0, dict[tuple[float, float], list[int]]()
        for day in days:
            groups.setdefault((site.loads[day][hour], site.suns[day][hour]), []).append(day)
        for group in groups.values():
            outcome = replace(site, day=group[0]).advance(hour, state, told)
            share = sum(site.chances[day] for day in group) / weight
            money += share * (outcome.money + 300.0 * outcome.safety)
            if money >= best + 5.0:
                break
            money += share * least(site, hour + 1, outcome.state, tuple(group))
        best = min(best, money)
    return best


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(2))
def test_the_scenario_plan_is_no_worse_than_trying_everything(seed: int) -> None:
    site = small_site(seed)
    days = tuple(map(PossibleDay, site.chances, site.loads, site.suns))

    def fine(shown: OffGridSite, hour: int, state: State) -> Commands:
        return planned(shown, days, (hour, shown.possible(hour)), state, energies=341)

    runs = run_by_day(site, fine)
    found = np.dot(site.chances, [run.money + 300.0 * sum(run.safety) for run in runs])
    searched = least(site, 0, site.initial, (0, 1))
    assert found == pytest.approx(searched, abs=0.01)


@pytest.mark.parametrize(
    "options", [{"data": "days.csv"}, {"cost_budget": 1.0}, {"credit": True}, {"battery_kw": 4.0}]
)
def test_options_for_homes_are_refused_by_name(options: dict[str, object]) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        world_of("commit", **options)
