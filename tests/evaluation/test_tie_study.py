"""Laws of the group-size study: one set of rollouts, honest rates by size."""

import json
from collections.abc import Mapping
from html import unescape
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.core.test_question import SPEC, Sum
from tests.evaluation.studies import study_script
from tokengym.agents.cli import app
from tokengym.agents.evaluation.ties import TieStudy
from tokengym.agents.evaluation.ties_report import ties_report
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.play import Policy
from tokengym.envs.core.question import BASELINES
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines, make_world
from tokengym.rewards.control import SAFE_RETURN
from tokengym.rewards.ties import tie_counts


class HalfAlike(Sum):
    """Numbers below half a million pay every reply alike: half of the groups are dead."""

    value = "[0-9]{1,6}"

    def question(self, rng: np.random.Generator) -> tuple[str, int]:
        number = int(rng.integers(10**6))
        return f"What comes to {number}", number

    def reward(self, answer: str, best: int) -> float:
        return 0.25 if best < 5 * 10**5 else 1.0 - abs(int(answer) - best) / 10**6


def noisy(world: World, turn: Turn, rng: np.random.Generator) -> str:
    """Off by one of ten distances, each as likely as the others."""
    shown, away = int(turn.text.split()[-1]), 10**4 * int(rng.integers(10))
    return f"Sum: {shown + away if shown < 5 * 10**5 else shown - away}"


POLICIES: Mapping[str, Policy] = {**BASELINES, "noisy": noisy}


def study(sizes: tuple[int, ...] = (2, 4, 8), name: str = "noisy") -> TieStudy:
    world = HalfAlike(SPEC)
    return study_script(world, tasks(world), POLICIES, name, sizes)


def tasks(world: HalfAlike) -> list[Task]:
    return [world.task("test", index) for index in range(30)]


def test_a_smaller_group_is_the_start_of_a_larger_one() -> None:
    found, small = study(), study((2,))
    assert [row[:2] for row in found.rewards] == list(small.rewards)
    for row in found.sizes:
        cut = tie_counts([rewards[: row.size] for rewards in found.rewards]).statistics()
        assert row.rates["reward_tie_pair_rate"].value == cut["reward_tie_pair_rate"]


def test_a_group_is_useful_unless_all_replies_earn_alike() -> None:
    world = HalfAlike(SPEC)
    alike = [task.answer["best"] < 5 * 10**5 for task in tasks(world)]
    best = study().sizes[-1].useful
    assert best.low <= best.value <= best.high
    assert best.value == pytest.approx(1.0 - np.mean(alike), abs=1e-3)


def test_means_and_thresholds_are_those_of_the_rewards() -> None:
    found = study()
    rewards = np.array(found.rewards)
    assert found.threshold == 0.5
    assert found.mean_reward == pytest.approx(rewards.mean())
    assert found.correct_rate == pytest.approx((rewards > 0.5).mean())
    assert found.fallen is None


def test_what_cannot_be_studied_is_refused() -> None:
    for sizes, name, said in [((1, 4), "noisy", "above 1"), ((4,), "nobody", "nobody")]:
        with pytest.raises(OptionError, match=said):
            study(sizes, name)


def test_malformed_replies_are_counted_and_stated() -> None:
    world = HalfAlike(SPEC)
    found = study_script(world, tasks(world), POLICIES, "null", (2,))
    assert found.malformed == 1.0
    assert "100.0% of the replies were malformed." in ties_report(found).lines
    assert study().malformed == 0.0
    assert not any("malformed" in line for line in ties_report(study()).lines)


def test_a_flat_floor_shows_as_mass_below_the_floor(tmp_path: Path) -> None:
    data, page = (tmp_path / f"ties.{kind}" for kind in ("json", "html"))
    call = ["ties", "energy", "--level", "day", "--tasks", "6", "--group-size", "4,8"]
    more = ["--policy", "random", "--option", "flat_floor=true"]
    result = CliRunner().invoke(app, [*call, *more, "--json", str(data)])
    assert result.exit_code == 0, result.output
    found = json.loads(data.read_text())
    assert [len(group) for group in found["fallen"]] == 6 * [8]
    for row in found["sizes"]:
        assert row["floor_mass"]["value"] > 0.2
        assert row["floor_tie_pair_rate"]["value"] == 1.0
        assert row["interior_tie_pair_rate"]["value"] < 0.1
        assert row["floor_tie_share"]["value"] > 0.5
    assert "their share of all tied pairs" in result.output
    rates, *_ = found["report"]["parts"]
    assert rates["series"][0]["x"] == [4, 8]
    assert CliRunner().invoke(app, ["view", str(data), "--html", str(page)]).exit_code == 0
    assert found["report"]["lines"][0] in unescape(page.read_text())


def test_missed_floors_are_told_from_malformed_replies() -> None:
    """Who keeps the floor may earn as little as who misses it, for replies that are malformed."""
    energy = make_world("energy")
    rules = baselines("energy")

    def careless(world: World, turn: Turn, rng: np.random.Generator) -> str:
        return "no idea" if rng.random() < 0.6 else rules["hold"](world, turn, rng)

    drawn = [energy.task("test", index) for index in range(6)]
    found = study_script(energy, drawn, {**rules, "careless": careless}, "careless", (2, 4))
    fallen, rewards = np.array(found.fallen), np.array(found.rewards)
    little = rewards < SAFE_RETURN
    assert fallen.any()
    assert (little & ~fallen).any()
    rates = found.sizes[-1].rates
    assert rates["floor_mass"].value == pytest.approx(fallen.mean())
    pairs = [
        (a == b, fell[i] or fell[j])
        for row, fell in zip(rewards, fallen, strict=True)
        for (i, a), (j, b) in combinations(enumerate(row), 2)
        if fell[i] == fell[j]
    ]
    for name, on_floor in (("floor_tie_pair_rate", True), ("interior_tie_pair_rate", False)):
        ties = [tie for tie, fell in pairs if fell == on_floor]
        assert rates[name].value == pytest.approx(np.mean(ties))


def test_what_is_for_models_is_refused_for_scripts() -> None:
    for more in (["--policy", "noisy", "--temperature", "1"], ["--policy", "nobody"]):
        result = CliRunner().invoke(app, ["ties", "forecast", *more])
        assert isinstance(result.exception, OptionError)
