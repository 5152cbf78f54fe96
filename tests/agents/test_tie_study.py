"""Laws of the group-size study: one set of rollouts, honest rates by size, a reasoned choice."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from tests.agents.digits import POLICIES, SPEC, Digits
from tokengym.agents.cli import app
from tokengym.agents.evaluate import play_group
from tokengym.agents.tie_study import WITHIN, SizeRow, TieStudy, tie_study
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import Optimum
from tokengym.rewards.control import FLOOR
from tokengym.rewards.ties import Interval, tie_counts


class HalfAlike(Digits):
    """Numbers below half a million pay every reply alike: half of the groups are dead."""

    def worth(self, distance: float) -> float:
        return 0.25 if self.number < 5 * 10**5 else 1.0 - distance

    def optimum(self, task: Task) -> Mapping[str, Optimum]:
        return {"reader": Optimum(self.worth(0.0), exact=True)}


def study(sizes: tuple[int, ...] = (2, 4, 8), name: str = "noisy") -> TieStudy:
    world = HalfAlike(SPEC)
    return tie_study(world, tasks(world), POLICIES, name, sizes)


def tasks(world: Digits) -> list[Task]:
    return [world.task("test", index) for index in range(30)]


def test_a_smaller_group_is_the_start_of_a_larger_one() -> None:
    found, small = study(), study((2,))
    assert [row[:2] for row in found.rewards] == list(small.rewards)
    for row in found.sizes:
        cut = tie_counts([rewards[: row.size] for rewards in found.rewards]).statistics()
        assert row.rates["reward_tie_pair_rate"].value == cut["reward_tie_pair_rate"]


def test_a_group_is_useful_unless_its_task_pays_every_reply_alike() -> None:
    world = HalfAlike(SPEC)
    alike = [task.instance["number"] < 5 * 10**5 for task in tasks(world)]
    best = study().sizes[-1].useful
    assert best.low <= best.value <= best.high
    assert best.value == pytest.approx(1.0 - np.mean(alike), abs=1e-3)


def test_means_are_those_of_the_rewards_and_the_threshold_is_the_middle_of_the_range() -> None:
    found = study()
    rewards = np.array(found.rewards)
    assert found.threshold == 0.5
    assert found.mean_reward == pytest.approx(rewards.mean())
    assert found.correct_rate == pytest.approx((rewards > 0.5).mean())
    assert found.floor is None


def made_up(shares: list[float]) -> TieStudy:
    rows = [
        SizeRow(2 ** (at + 1), Interval(value, value, value), {}) for at, value in enumerate(shares)
    ]
    return TieStudy("w", "l", "p", 1, None, 0.5, 0.0, 0.0, 1.0, 1.0, tuple(rows), ())


@settings(max_examples=50)
@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=5))
def test_the_recommended_size_is_enough_and_no_smaller_one_is(shares: list[float]) -> None:
    size, reason = made_up(shares).recommended
    enough = [share >= (1 - WITHIN) * max(shares) for share in shares]
    assert enough[int(np.log2(size)) - 1]
    assert not any(enough[: int(np.log2(size)) - 1])
    assert f"{max(shares):.1%}" in reason


def test_where_everything_ties_the_study_says_that_no_size_helps() -> None:
    assert made_up([0.0, 0.0]).recommended == (2, "no size helps: every group ties")


def test_a_group_depends_on_its_seed_and_task_alone() -> None:
    world = Digits(SPEC)
    task = world.task("test", 3)
    first = play_group(world, task, POLICIES["noisy"], 4, seed=1)
    play_group(world, world.task("test", 1), POLICIES["random"], 4, seed=1)
    assert play_group(world, task, POLICIES["noisy"], 6, seed=1)[:4] == first
    assert play_group(world, task, POLICIES["noisy"], 4, seed=2) != first


def test_what_cannot_be_studied_is_refused() -> None:
    for sizes, name, said in [((1, 4), "noisy", "from 2 on"), ((4,), "nobody", "nobody")]:
        with pytest.raises(OptionError, match=said):
            study(sizes, name)


def test_a_flat_floor_shows_as_mass_and_ties_below_the_floor_alone(tmp_path: Path) -> None:
    data, picture = tmp_path / "ties.json", tmp_path / "ties.png"
    call = ["ties", "energy", "--level", "day", "--tasks", "6", "--group-size", "4,8"]
    more = ["--policy", "random", "--option", "flat_floor=true"]
    result = CliRunner().invoke(app, [*call, *more, "--json", str(data), "--png", str(picture)])
    assert result.exit_code == 0, result.output
    found = json.loads(data.read_text())
    assert found["floor"] == FLOOR
    for row in found["sizes"]:
        assert row["floor_mass"]["value"] > 0.2
        assert row["floor_tie_pair_rate"]["value"] == 1.0
        assert row["interior_tie_pair_rate"]["value"] < 0.1
    assert f"Recommended group size {found['recommended']}" in result.output
    assert picture.read_bytes().startswith(b"\x89PNG")
