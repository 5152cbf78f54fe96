"""The same job twice leaves the same run folder, also when it is interrupted and resumed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.training.folders import ROUNDING, differences
from tests.training.jobs import run_job, write_rollouts
from tokengym.agents.training.config import DpoConfig, JobConfig, SftConfig, TrainConfig
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.policy_trainer import PolicyTrainer
from tokengym.agents.training.presets import preset, preset_for

pytestmark = pytest.mark.filterwarnings("ignore")

TINY: dict[str, Any] = {"groups_per_batch": 2, "group_size": 2, "evaluation_tasks": 2, "steps": 2}
FORECAST = preset("forecast", **TINY)
KINDS: dict[str, JobConfig] = {
    "rewards": replace(FORECAST, mode="async", estimator="leave_one_out"),
    "self-play": preset("disruption", **TINY, max_tokens=32, self_play=True),
    "preferences": preset_for(DpoConfig, "forecast", **TINY, preferences="rolled"),
}


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_job_twice_leaves_the_same_folder(
    tmp_path: Path, served: dict[str, Any], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = replace(KINDS[kind], **served)
    if isinstance(config, DpoConfig):
        write_rollouts(Path(config.preferences), replace(FORECAST, **served), [0.1, 0.9])
    one, two = tmp_path / "a" / "run", tmp_path / "b" / "run"
    for folder in (one, two):
        run_job(config, folder)
    assert differences(one, two, ROUNDING) == []


class _InterruptedError(Exception):
    """What ends a run between two steps."""


@pytest.mark.nightly
@pytest.mark.parametrize("kind", [TrainConfig, SftConfig], ids=["rollouts", "demonstrations"])
def test_an_interrupted_run_ends_as_one_that_was_not(
    tmp_path: Path, served: dict[str, Any], monkeypatch: pytest.MonkeyPatch, kind: type[JobConfig]
) -> None:
    config = replace(preset_for(kind, "forecast", **TINY), **served, steps=3, save_every=1)
    whole, broken = tmp_path / "a" / "run", tmp_path / "b" / "run"
    run_job(config, whole)
    save = PolicyTrainer.save

    async def interrupt(learner: PolicyTrainer, step: int) -> None:
        if step == 2:
            raise _InterruptedError
        await save(learner, step)

    monkeypatch.setattr(PolicyTrainer, "save", interrupt)
    with pytest.raises(_InterruptedError):
        run_job(config, broken)
    monkeypatch.setattr(PolicyTrainer, "save", save)
    assert list(RunFolder(broken).states()) == [1]
    run_job(config, broken)
    assert differences(whole, broken, ROUNDING) == []
