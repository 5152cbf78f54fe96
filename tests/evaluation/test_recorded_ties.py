"""Ties of recorded rollouts: against a count by hand, held-out larger groups, the table's rows."""

import json
import math
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from tests.evaluation.studies import play_group
from tokengym.agents.certify.sources import open_source
from tokengym.agents.certify.sources.records import reward_groups
from tokengym.agents.cli import app
from tokengym.agents.rollouts import RolloutLog, RolloutOrigin, record_play
from tokengym.envs.core.errors import OptionError
from tokengym.envs.registry import baselines, make_world


def rows(groups: int = 40, size: int = 8, of_task: int = 2) -> list[dict[str, Any]]:
    """Right or wrong, with a chance that depends on the Task; as many groups of each Task."""
    rng = np.random.default_rng(0)
    chances = np.repeat(rng.beta(2.0, 4.0, groups // of_task), of_task)
    return [
        {
            "prompt": f"Task {group // of_task}",
            "reply": f"reply {member}",
            "reward": float(rng.random() < chances[group]),
            "group": f"g{group}",
        }
        for group in range(groups)
        for member in range(size)
    ]


def ties(folder: Path, recorded: list[dict[str, Any]], *more: object) -> Result:
    file = folder / "rollouts.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in recorded))
    words = ["ties", file, "--json", folder / "ties.json", *more]
    return CliRunner().invoke(app, [str(word) for word in words])


def read(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "ties.json").read_text())
    return found


def test_dead_groups_of_other_sizes_are_counted_or_predicted(tmp_path: Path) -> None:
    recorded = rows()
    done = ties(tmp_path, recorded, "--group-size", "4,16")
    assert done.exit_code == 0, done.output
    found = read(tmp_path)
    assert (found["groups"], found["level"]) == (40, "")
    four, eight, sixteen = found["sizes"]
    groups = np.array([row["reward"] for row in recorded]).reshape(40, 8).tolist()
    dead = [np.mean([len({*some}) == 1 for some in combinations(group, 4)]) for group in groups]
    assert 1.0 - four["useful"]["value"] == pytest.approx(np.mean(dead))
    assert 1.0 - eight["useful"]["value"] == np.mean([len({*group}) == 1 for group in groups])
    assert eight["useful"]["samples"] == 20  # Tasks, not groups
    whole = 1.0 - eight["useful"]["value"]
    assert whole ** (15 / 7) <= 1.0 - sixteen["useful"]["value"] < whole
    assert "reward_tie_pair_rate" not in sixteen
    assert "(predicted)" in done.output
    assert found["report"]["parts"][0]["note"] == "Sizes above 8 are predicted."


@pytest.mark.nightly
def test_a_tolerance_ties_near_returns(tmp_path: Path) -> None:
    noise = np.random.default_rng(1)
    recorded = [
        {**row, "reward": row["reward"] + 0.01 * noise.random()}
        for row in rows(groups=160, of_task=8)
    ]
    assert ties(tmp_path, recorded).exit_code == 0
    assert read(tmp_path)["sizes"][1]["reward_tie_pair_rate"]["value"] < 0.01
    assert ties(tmp_path, recorded, "--tolerance", "0.02").exit_code == 0
    by_task = read(tmp_path)["sizes"][1]["reward_tie_pair_rate"]
    assert 0.5 < by_task["value"] < 0.9
    apart = [{**row, "task": row["group"]} for row in recorded]
    assert ties(tmp_path, apart, "--tolerance", "0.02").exit_code == 0
    by_group = read(tmp_path)["sizes"][1]["reward_tie_pair_rate"]
    assert by_group["value"] == by_task["value"]
    width = [rate["high"] - rate["low"] for rate in (by_task, by_group)]
    assert width[0] > 1.15 * width[1]  # groups of a Task are alike: they tell less


def test_the_smallest_tenth_of_groups_is_left_out(tmp_path: Path) -> None:
    recorded = rows()
    assert ties(tmp_path, recorded[3:]).exit_code == 0
    found = read(tmp_path)
    assert (found["left_out"], found["groups"]) == (1, 39)
    assert [row["size"] for row in found["sizes"]] == [4, 8, 16]


def test_our_rollouts_are_grouped_by_player_and_task(tmp_path: Path) -> None:
    world = make_world("forecast")
    task, role = world.first_tasks("test", 1)[0], world.spec.roles[0]
    for step, name in enumerate(("noisy", "random", "random")):
        origin = RolloutOrigin("train", step=step // 2, policy=name)
        played = play_group(world, task, baselines(world.spec)[name], 3, seed=step)
        RolloutLog(tmp_path).append("a", [record_play(origin, one, role) for one in played])
    groups = reward_groups(open_source(str(tmp_path), {}).rollouts)
    assert [len(group.rewards) for group in groups] == [3, 3, 3]
    assert len({group.task for group in groups}) == 1


def test_what_cannot_be_told_is_refused(tmp_path: Path) -> None:
    pairs = rows(groups=6, size=2)
    for recorded, more, said in (
        (pairs, (), "groups of 2 rollouts cannot predict groups of 16"),
        (rows(), ("--policy", "noisy"), "is recorded"),
        ([{"prompt": "a", "reply": "", "reward": math.nan}], (), "a study needs groups"),
    ):
        result = ties(tmp_path, recorded, *more)
        assert isinstance(result.exception, OptionError)
        assert said in str(result.exception)
