"""Laws of jobs in the debate: self-play, one policy a role, supervised, against trained agents."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tokengym.agents.training.config import SETTINGS_FILE, TrainSettings, preset
from tokengym.agents.training.connection import KEY_VARIABLE
from tokengym.agents.training.job import Outcome, run_job
from tokengym.agents.training.opponents import saved_weights
from tokengym.agents.training.progress import Progress
from tokengym.envs.core.errors import OptionError

pytestmark = pytest.mark.filterwarnings("ignore")

SIZES: dict[str, Any] = {
    "steps": 2,
    "groups_per_batch": 2,
    "group_size": 2,
    "evaluation_tasks": 4,
    "max_tokens": 48,
}
ROLES = ("predictor", "challenger")


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)


def job(**changes: Any) -> TrainSettings:
    return preset("disruption", **{**SIZES, **changes})


def run(settings: TrainSettings, folder: Path) -> tuple[Outcome, str]:
    shown = io.StringIO()
    outcome = run_job(settings, folder, Progress(Console(file=shown)))
    return outcome, shown.getvalue()


def logged(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [row for row in map(json.loads, lines) if "progress/batch" in row]


@pytest.mark.parametrize("separate", [False, True])
def test_self_play_tells_of_both_roles(
    tmp_path: Path, served: dict[str, Any], separate: bool
) -> None:
    settings = job(self_play=True, separate=separate, **served)
    outcome, _ = run(settings, tmp_path)
    assert [row["progress/batch"] for row in logged(tmp_path)] == [0, 1]
    for row in logged(tmp_path):
        assert row["env/all/abandoned"] == 0.0
        assert row["env/all/total_episodes"] == 2 * 2 * len(ROLES)
        for role in ROLES:
            assert f"env/all/{role}/reward" in row
            assert f"env/all/{role}/reward_tie_eligible_groups" in row
    assert set(outcome.before.others) == set(outcome.after.others) == {"challenger"}
    assert outcome.after.others["challenger"].returns.tasks == 4
    assert set(outcome.other_references["challenger"]) < set(outcome.references)
    page = (tmp_path / "report.html").read_text()
    assert "predictor, held out against scripted challenger" in page
    assert "challenger, held out against model predictor" in page
    folders = [tmp_path / role for role in ROLES] if separate else [tmp_path]
    paths = {saved_weights(folder).sampler for folder in folders}
    assert None not in paths
    assert len(paths) == len(folders)
    if separate:  # the other one is resumed by the cookbook
        run(replace(settings, steps=3), tmp_path)
        assert [row["progress/batch"] for row in logged(tmp_path)] == [0, 1, 2]


def test_supervised_then_reinforced_against_the_supervised(tmp_path: Path) -> None:
    """One line of runs: --sft, then --start from it against it, in the other role too."""
    first = tmp_path / "first"
    outcome, shown = run(job(sft=True, steps=3), first)
    losses = [row["train/nll"] for row in logged(first)]
    assert len(losses) == 3
    assert losses[-1] < losses[0]
    assert "loss" in shown
    assert outcome.collapse is None
    assert "demonstrations" in (first / "report.html").read_text()
    assert TrainSettings.load(first / SETTINGS_FILE).sft
    run(job(sft=True, steps=4), first)
    assert len(logged(first)) == 4

    second = tmp_path / "second"
    opponents = {"challenger": str(first)}
    settings = job(steps=1, start=str(first), opponents=opponents, evaluation_tasks=2)
    reinforced, _ = run(settings, second)
    assert len(logged(second)) == 1
    assert reinforced.references["oracle"].tasks == 2
    config = json.loads((second / "config.json").read_text())
    assert config["load_checkpoint_path"] == saved_weights(first).state
    assert config["dataset_builder"]["opponents"]["challenger"]["name"] == str(first)


def test_the_challenger_alone_is_trained_against_an_untrained_model(
    tmp_path: Path, served: dict[str, Any]
) -> None:
    settings = job(steps=1, role="challenger", **served)
    assert settings.opponents_of("challenger") == {"predictor": "model"}
    outcome, _ = run(settings, tmp_path)
    (row,) = logged(tmp_path)
    assert row["env/all/turns_per_episode"] == 1.0
    assert outcome.after.returns.tasks == 4
    assert outcome.references["scripted"].tasks == 4
    assert "predictor" not in outcome.after.others


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"role": "judge"}, "has the roles"),
        ({"opponents": {"judge": "null"}}, "has the roles"),
        ({"self_play": True, "role": "challenger"}, "trains every role"),
        ({"separate": True}, "separate"),
        ({"sft": True, "mode": "async"}, "loop of its own"),
        ({"self_play": True, "separate": True, "filter": "drop"}, "loop of its own"),
    ],
)
def test_roles_that_make_no_sense_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        job(**changes)


def test_self_play_needs_several_roles() -> None:
    with pytest.raises(OptionError, match="several roles"):
        preset("forecast", self_play=True)


@pytest.mark.parametrize("changes", [{"opponents": {"challenger": "nobody"}}, {"start": "nowhere"}])
def test_a_name_that_is_nobodys_is_refused_before_anything_starts(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    with pytest.raises(OptionError, match="run folder"):
        run(job(**changes), tmp_path / "run")
    assert not (tmp_path / "run").exists()
