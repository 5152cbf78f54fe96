"""Laws of places on a ladder: between the rungs around it, whatever the unit, and in words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.agents.check.tables import RUNGS_HEADER, rung_rows
from tokengym.agents.scale.ladder import LevelLadder, PlayedRung, Standing, find_standing
from tokengym.agents.scale.level_scale import ladder_of
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.ladder import Ladder, Rung
from tokengym.envs.core.play import play
from tokengym.envs.registry import baselines, make_world
from tokengym.rewards.estimates import Estimate

RUNGS = {
    "blind": (0.0, 1.0, 2.0, 3.0),
    "textbook": (2.0, 3.0, 4.0, 9.0),
    "top": (8.0, 8.0, 8.0, 12.0),
}


@given(share=st.floats(0.001, 0.99), scale=st.floats(0.1, 50.0), offset=st.floats(-20.0, 20.0))
def test_a_policy_part_of_the_way_everywhere_counts(
    share: float, scale: float, offset: float
) -> None:
    rungs = {
        name: tuple((np.array(values) * scale + offset).tolist()) for name, values in RUNGS.items()
    }
    mixed = (1.0 - share) * np.array(rungs["blind"]) + share * np.array(rungs["textbook"])
    place = find_standing(rungs, mixed)
    assert place is not None
    assert (place.below, place.above) == ("blind", "textbook")
    assert place.way is not None
    assert place.way.value == pytest.approx(share, abs=1e-6)
    assert place.way.low - 1e-6 <= share <= place.way.high + 1e-6


def test_the_ends_are_said_without_a_share() -> None:
    assert str(find_standing(RUNGS, [-1.0] * 4)) == "below blind"
    assert str(find_standing(RUNGS, RUNGS["top"])) == "at top"
    assert str(find_standing(RUNGS, RUNGS["blind"])) == "at blind"
    assert find_standing({}, [1.0]) is None
    assert find_standing(RUNGS, [np.nan] * 4) is None
    assert find_standing(RUNGS, ()) is None


def test_a_lost_task_does_not_count() -> None:
    place = find_standing(RUNGS, [1.0, 2.0, 3.0, np.nan])
    assert place is not None
    assert place.way is not None
    assert place.way.value == pytest.approx(0.5)


def test_a_place_is_one_sentence() -> None:
    place = Standing("earliest due date", "value per time", Estimate(0.6, 0.4, 0.81, 40))
    said = "between earliest due date and value per time, 60 % of the way (95 % CI 40 to 80 %)"
    assert str(place) == said
    wide = Standing("a", "b", Estimate(0.5, -0.24, 1.26, 4))
    assert str(wide) == "between a and b, 50 % of the way (95 % CI -20 to 130 %)"


def test_a_value_weighs_metrics_and_is_unknown_without_them() -> None:
    rungs = (Rung("oracle", "bound", "foresight"),)
    money = Ladder(rungs, "hold", "$", {"cost": -1.0, "missed": -10.0})
    assert money.value(0.7, {"cost": 3.0, "missed": 0.5}, "lead") == -8.0
    assert np.isnan(money.value(0.7, {"cost": 3.0}, "lead"))
    score = Ladder(rungs, "half")
    assert score.value(0.7, {}, "lead") == 0.7
    assert score.value(0.7, {"expected_return/lead": 0.6}, "lead") == 0.6


@pytest.mark.nightly
def test_equal_rungs_are_merged_with_the_better_one() -> None:
    world = make_world("warehouse", "pick")
    ladder = LevelLadder.measure(world, world.first_tasks("validation", 12))
    kept = [rung.name for rung in ladder.rungs]
    assert kept[-1] == "exact search"
    assert ladder.merged["first come, first served"] == "best constant (trips of 2)"
    assert not {*kept} & ladder.merged.keys()
    assert {*ladder.merged.values()} <= {*kept, *ladder.merged}
    with pytest.raises(OptionError, match="1 Tasks"):
        LevelLadder.measure(world, world.first_tasks("validation", 1))


def test_rungs_from_outside_stand_where_they_earn() -> None:
    world = make_world("warehouse", "stock")
    tasks = world.first_tasks("validation", 12)
    role, ladder = world.spec.roles[0], ladder_of(world.spec, "stock", "lead")
    assert ladder is not None
    top = baselines("warehouse")["replan"]
    played = [play(world, task, top, seed=(0, 0)) for task in tasks]
    best = [ladder.value(one.returns[role], one.metrics, role) for one in played]
    less = tuple(value - 0.01 * (1 + n % 2) for n, value in enumerate(best))
    broken = (1.0, *[0.0] * 11)
    mine = PlayedRung(Rung("", "planner", "an entry"), less, broken, 0.1)
    found = LevelLadder.measure(world, tasks, outside=[mine])
    *_, below, last = found.rungs
    assert (below.name, below.policy, below.broken) == ("an entry", "", 1 / 12)
    assert (last.name, last.broken) == ("dynamic program", 0.0)
    *_, row, _ = rung_rows(found)
    assert row[RUNGS_HEADER.index("breaks")] == "8.33%"
