"""Laws of a curriculum: a level is left once it is learned, and a resumed run finds its place."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tinker_cookbook.rl.types import EnvGroupBuilder, RLDataset

from tests.training.jobs import metrics, run_job
from tokengym.agents.rollouts import train_segment
from tokengym.agents.scale.level_scale import Ends, level_ends
from tokengym.agents.training.batches.curriculum import SKILL, STAGE, Curriculum, Stage
from tokengym.agents.training.folder.monitor import StepRow
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.presets import preset
from tokengym.envs.core.errors import OptionError
from tokengym.envs.registry import make_world


class Numbers(RLDataset):
    """Batches that show where they come from."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __len__(self) -> int:
        return 20

    def get_batch(self, index: int) -> Sequence[EnvGroupBuilder]:
        return [f"{self.name} {index}"]  # type: ignore[list-item]


def run_through(skills: Sequence[float], bar: float = 0.5) -> list[str]:
    """Return the batches of steps whose rollouts have these skills."""
    scale = Ends(0.2, 0.8)
    stages = [Stage(name, Numbers(name), scale) for name in ("easy", "hard")]
    task = make_world("forecast").task("train", 0)
    rows: list[StepRow] = []
    batches = []
    for step, skill in enumerate(skills):
        # A new object each step: the place must come from the log alone.
        curriculum = Curriculum(stages, lambda: rows, bar)
        batches += [str(one) for one in curriculum.get_batch(step)]
        found = curriculum.measure(step, [(task, 0.2 + 0.6 * skill)])
        assert found[SKILL] == pytest.approx(skill)
        rows.append(StepRow(step, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, None, None, 1.0, 1.0, found))
    return batches


def test_a_level_is_left_for_good_after_three_steps() -> None:
    batches = run_through([0.9, 0.1, 0.6, 0.6, 0.6, -1.0, -1.0, 0.9])
    names = [batch.split()[0] for batch in batches]
    # The mean of three reaches .5 after steps 0 to 2 (.53): from then on it is hard.
    assert names == ["easy"] * 3 + ["hard"] * 5
    assert [batch.split()[1] for batch in batches] == [str(step) for step in range(8)]


def test_the_last_level_is_never_left() -> None:
    assert run_through([1.0] * 8)[-1] == "hard 7"
    assert run_through([0.9] * 8, bar=0.95) == [f"easy {step}" for step in range(8)]


def test_the_ends_are_the_best_blind_policy_and_the_oracle() -> None:
    scale = level_ends(make_world("forecast", "easy"), "forecaster")
    assert 0.7 < scale.blind < scale.oracle < 0.95
    assert scale.skill(scale.oracle) == 1.0
    assert scale.skill(scale.blind) == 0.0


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
def test_a_job_passes_from_level_to_level(tmp_path: Path, served: dict[str, Any]) -> None:
    sizes: dict[str, Any] = {
        "steps": 5,
        "groups_per_batch": 2,
        "group_size": 2,
        "evaluation_tasks": 2,
    }
    # A bar below what garbage earns: every level is passed after three steps.
    config = preset("forecast", "hard", curriculum=("easy",), bar=-50.0, **sizes, **served)
    run_job(config, tmp_path)
    assert [row[STAGE] for row in metrics(tmp_path)] == [0, 0, 0, 1, 1]
    rollouts = RunFolder(tmp_path).rollouts
    played = [{record.level for record in rollouts.read(train_segment(step))} for step in range(5)]
    assert played == [{"easy"}] * 3 + [{"hard"}] * 2


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(OptionError, match="has the levels"):
        preset("forecast", curriculum=("soft",))
