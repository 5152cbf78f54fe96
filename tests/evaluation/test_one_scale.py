"""Skill is one number, whoever states it of a policy at a level with its options."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from benchmarks import level_scales
from tokengym.agents.evaluation.config import EvaluationConfig
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.plan import RUN_POLICIES
from tokengym.agents.evaluation.run import run_evaluation
from tokengym.agents.evaluation.trained import Evaluated, Trained
from tokengym.agents.scale.level_scale import FILE, Scale, scripted_opponents, shipped_blind
from tokengym.envs.registry import make_world, spec
from tokengym.rewards.estimates import mean_estimate

TASKS = 3
WORLDS = ("forecast", "warehouse", "energy", "disruption")
LEVELS = list({spec(world).class_path(level): (spec(world).id, level, spec(world).evaluation)
               for world in WORLDS for level in reversed(spec(world).levels)}.values())  # fmt: skip
"""One of each class of worlds: what states skill does not ask for the level."""
OTHERS = [
    ("tokengym/Forecast-v1", "easy", {"label": "outcome", "score": "log"}),
    ("tokengym/Energy-v2", "small", {"flat_floor": True}),
    ("tokengym/Disruption-v2", "L2", {"label": "outcome", "single_turn": True}),
]
ROWS = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


@pytest.mark.nightly
@pytest.mark.parametrize(("world_id", "level", "options"), [*LEVELS, *OTHERS])
def test_skill_is_the_same_number_for_all_who_state_it(
    world_id: str, level: str, options: dict[str, Any], tmp_path: Path
) -> None:
    world = make_world(world_id, level, **options)
    assert (shipped_blind(world, world.spec.roles[0]) is not None) == (
        (world_id, level, options) in LEVELS
    )
    config = EvaluationConfig((f"{world_id}:{level}",), ("random",), tasks=TASKS, options=options)
    folder = EvaluationFolder(tmp_path)
    result = run_evaluation(config, folder)
    evaluated = result.policies[0].skill.value

    tasks, role = world.first_tasks("test", TASKS), world.spec.roles[0]
    scale, found = Scale.measure(world, tasks, role, scripted_opponents(world)), result.policies[0]
    table = folder.table(config.plan, config.plan.places[0], "random")
    skill = Trained(scale, dict.fromkeys(RUN_POLICIES, Evaluated(found, table))).skill()
    assert skill.after.value == pytest.approx(evaluated)
    assert skill.gain.value == 0.0
    assert found.earned == mean_estimate(Evaluated(found, table).earned_T)


def test_luck_in_outcomes_is_in_no_figure() -> None:
    lucky, exact = (
        Scale.measure(world, world.first_tasks("test", 12), "forecaster", {})
        for world in (make_world("forecast", label=label) for label in ("outcome", "expected"))
    )
    assert lucky.realised != exact.realised
    assert lucky.unit == "expected"
    assert (lucky.used, lucky.lines, lucky.optimum) == (exact.used, exact.lines, exact.optimum)


def test_the_file_has_every_level_role_and_option_of_ours() -> None:
    assert [
        (row["world"], row["level"], row["role"], row["options"]) for row in ROWS
    ] == list(level_scales.places())  # fmt: skip


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(3))
def test_a_line_of_the_file_is_what_its_command_measures(seed: int) -> None:
    # Which ones changes from day to day; the name of the test's failure holds the line.
    row = random.Random().choice([row for row in ROWS if row["level"] in _CHEAP])
    place = row["world"], row["level"], row["role"], row["options"]
    # Its ladder has processor times; `tests/contract/test_ladders.py` measures it again.
    assert level_scales.measured(place) == {k: v for k, v in row.items() if k != "ladder"}


_CHEAP = {"easy", "hard", "expert", "twins", "update", "pick", "stock", "lease", "L2", "L0"}
"""Levels whose planners answer within milliseconds."""
