"""Laws of jobs in the debate: self-play, supervised, against trained agents."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.training.jobs import metrics, run_job
from tokengym.agents.evaluation.trained import read_trained
from tokengym.agents.evaluation.verify import verify_run
from tokengym.agents.service.engine.checkpoints import CheckpointPath, CheckpointStore
from tokengym.agents.training.config import JobConfig, SftConfig, TrainConfig
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.job import Job
from tokengym.agents.training.presets import preset, preset_for
from tokengym.envs.core.errors import OptionError

pytestmark = pytest.mark.filterwarnings("ignore")

SIZES: dict[str, Any] = {
    "steps": 1,
    "groups_per_batch": 2,
    "group_size": 2,
    "evaluation_tasks": 2,
    "max_tokens": 48,
}
ROLES = ("predictor", "challenger")


def job(kind: type[JobConfig] = TrainConfig, **changes: Any) -> JobConfig:
    return preset_for(kind, "disruption", "L2", **{**SIZES, **changes})


@pytest.mark.nightly
def test_self_play_tells_of_both_roles(tmp_path: Path, served: dict[str, Any]) -> None:
    settings = job(self_play=True, **served)
    run_job(settings, tmp_path)
    (row,) = metrics(tmp_path)
    assert row["env/all/abandoned"] == 0.0
    assert row["env/all/total_episodes"] == 2 * 2 * len(ROLES)
    for role in ROLES:
        assert f"env/all/{role}/reward" in row
        assert f"env/all/{role}/reward_tie_eligible_groups" in row
    found = read_trained(RunFolder(tmp_path))
    assert list(found) == list(ROLES)
    assert found["challenger"].after.result.tasks == 2
    lines = {
        role: {name for name in one.scale.lines if not name.startswith("best constant")}
        for role, one in found.items()
    }
    assert lines["challenger"] < lines["predictor"]
    page = (tmp_path / "report.html").read_text()
    assert "predictor, held out against scripted challenger" in page
    assert "challenger, held out against model predictor" in page
    run_job(replace(settings, steps=2), tmp_path)
    assert [row["progress/batch"] for row in metrics(tmp_path)] == [0, 1]


@pytest.mark.nightly
def test_supervised_then_reinforced_against_the_supervised(tmp_path: Path) -> None:
    """One line of runs: demonstrations, then --start from it against it, in the other role too."""
    first = tmp_path / "first"
    outcome, shown = run_job(job(SftConfig, steps=3, max_tokens=16), first)
    losses = [row["train/nll"] for row in metrics(first)]
    assert len(losses) == 3
    assert losses[-1] < losses[0]
    assert "loss" in shown
    assert outcome.collapse is None
    assert "demonstrations" in (first / "report.html").read_text()
    assert RunFolder(first).config.command == "sft"

    second = tmp_path / "second"
    opponents = {"challenger": str(first)}
    run_job(job(start=str(first), opponents=opponents), second)
    assert len(metrics(second)) == 1
    (found,) = read_trained(RunFolder(second)).values()
    assert found.scale.lines["oracle"].samples == 2
    config = json.loads((second / "config.json").read_text())
    state, start = RunFolder(first).weights.state, config["load_checkpoint_path"]
    assert state is not None
    kept, _ = CheckpointStore(RunFolder(first).service_folder).load(CheckpointPath.parse(state))
    loaded, _ = CheckpointStore(RunFolder(second).service_folder).load(CheckpointPath.parse(start))
    assert all(torch.equal(kept[name], loaded[name]) for name in kept)
    assert config["dataset_builder"]["opponents"]["challenger"]["name"] == str(first)


@pytest.mark.nightly
def test_the_challenger_alone_is_trained_against_an_untrained_model(
    tmp_path: Path, served: dict[str, Any]
) -> None:
    settings = job(role="challenger", **served)
    opponent = Job.resolve(settings).opponents["challenger"]["predictor"]
    assert not isinstance(opponent, str)
    assert opponent.name == "model"
    run_job(settings, tmp_path)
    (row,) = metrics(tmp_path)
    assert row["env/all/turns_per_episode"] == 1.0
    ((name, found),) = read_trained(RunFolder(tmp_path)).items()
    assert (name, found.after.result.tasks) == ("challenger", 2)
    assert found.scale.lines["scripted"].samples == 2
    assert verify_run(RunFolder(tmp_path)).differences == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"role": "judge"}, "has the roles"),
        ({"opponents": {"judge": "null"}}, "has the roles"),
        ({"self_play": True, "role": "challenger"}, "trains every role"),
    ],
)
def test_roles_that_make_no_sense_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        job(**changes)


@pytest.mark.nightly
def test_the_debate_as_described_learns_its_form_from_demonstrations(
    tmp_path: Path, served: dict[str, Any]
) -> None:
    sizes: dict[str, Any] = {"warm_start": 2, "steps": 1, "groups_per_batch": 2, "group_size": 4}
    first: dict[str, Any] = {"options": {"target": "both", "reward": "original"}}
    rates: dict[str, Any] = {"warm_start_updates": 16, "warm_start_rate": 3e-3}
    config = preset("disruption", "L2", evaluation_tasks=4, **first, **rates, **sizes, **served)
    run_job(config, tmp_path)
    (found,) = read_trained(RunFolder(tmp_path)).values()
    assert {end["well_formed"] for end in found.before.table.ends} == {0.0}
    assert set(found.before.paid_T) == {-1.0}
    first, last = metrics(RunFolder(tmp_path).warm_start.folder)
    assert last["train/nll"] < first["train/nll"] - 0.2
    assert "warm" in found.policies


def test_self_play_needs_several_roles() -> None:
    with pytest.raises(OptionError, match="several roles"):
        preset("forecast", self_play=True)


@pytest.mark.parametrize("changes", [{"opponents": {"challenger": "nobody"}}, {"start": "nowhere"}])
def test_a_name_that_is_nobodys_is_refused_before_anything_starts(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    with pytest.raises(OptionError, match="run folder"):
        run_job(job(**changes), tmp_path / "run")
    assert not (tmp_path / "run").exists()
