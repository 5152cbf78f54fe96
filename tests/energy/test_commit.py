"""Laws of the off-grid site: books kept from the texts alone, plans against exhaustive search."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.contract.planners.site import Site
from tests.energy.drawn import plant_of, task_of, world_of
from tokengym.envs.core.errors import OptionError
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


@pytest.mark.parametrize("options", [{"data": "days.csv"}, {"credit": True}, {"battery_kw": 4.0}])
def test_options_for_homes_are_refused_by_name(options: dict[str, object]) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        world_of("commit", **options)
