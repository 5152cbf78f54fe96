"""Laws of corrected data in training: what was paid by other answers is not gone on with."""

import json
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

pytest.importorskip("tinker")
pytest.importorskip("torch")

from typer.testing import CliRunner

from tests.every import quick_first
from tests.own_data import correct, questions, write
from tests.training.jobs import run_job, write_rollouts
from tokengym.agents.cli import app
from tokengym.agents.rollouts import evaluation_segment
from tokengym.agents.rollouts.selection import preferred
from tokengym.agents.training.config import DpoConfig, JobConfig, SftConfig, TrainConfig
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.job import Job
from tokengym.agents.training.presets import preset_for
from tokengym.envs.core.errors import OptionError

pytestmark = pytest.mark.filterwarnings("ignore")

TINY: dict[str, Any] = {"groups_per_batch": 2, "group_size": 4, "evaluation_tasks": 4}


def asked(path: Path, kind: type[JobConfig] = TrainConfig, **changes: Any) -> JobConfig:
    return preset_for(
        kind, "forecast", **TINY, options={"data": str(path), "prompt": "terse"}, **changes
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A run on a user's questions that was resumed, and the questions as they were."""
    folder = tmp_path_factory.mktemp("changed")
    path = write(folder / "q.jsonl", questions())
    run_job(asked(path, steps=1, evaluate_before=0), folder / "run")
    run_job(asked(path, steps=2, evaluate_before=0), folder / "run")
    return folder, path.read_text()


@pytest.fixture
def run(made: tuple[Path, str]) -> RunFolder:
    folder, data = made
    (folder / "q.jsonl").write_text(data)
    return RunFolder(folder / "run")


@pytest.fixture
def kept(tmp_path: Path) -> RunFolder:
    """A run that kept well-formed replies to ten of a user's questions."""
    path = write(tmp_path / "q.jsonl", questions())
    write_rollouts(tmp_path / "kept", asked(path), [0.1, 0.9, 0.5], groups=10)
    return RunFolder(tmp_path / "kept")


def data_of(run: RunFolder) -> Path:
    return run.folder.parent / "q.jsonl"


@pytest.mark.nightly
@pytest.mark.parametrize("split", ["train", "test"])
def test_a_run_does_not_resume_on_other_answers(run: RunFolder, split: str) -> None:
    played = sorted({one.index for one in run.rollouts.read() if one.split == split})
    correct(data_of(run), "forecast", split, played[:2])
    with pytest.raises(OptionError, match=r"2 of \d+ answers in \S+ differ .* a new folder"):
        run_job(replace(run.config, steps=3), run.folder)


@pytest.mark.nightly
def test_runs_that_other_answers_paid_are_not_compared(run: RunFolder, tmp_path: Path) -> None:
    other = copytree(run.folder, tmp_path / "other")
    words = ["compare", str(run.folder), str(other)]
    assert CliRunner().invoke(app, words, catch_exceptions=False).exit_code == 0
    after = RunFolder(other).rollouts.path(evaluation_segment("after"))
    rows = [json.loads(line) for line in after.read_text().splitlines()]
    write(after, [{**row, "answer_fingerprint": "0" * 32} for row in rows[:3]] + rows[3:])
    refused = CliRunner().invoke(app, words)
    assert "3 of 4 answers" in str(refused.exception)
    assert "tokengym evaluate" in str(refused.exception)


@quick_first(("kind", "named"), [(SftConfig, "demonstrations"), (DpoConfig, "preferences")])
def test_nothing_is_learned_from_rollouts_that_other_answers_paid(
    kept: RunFolder, kind: type[JobConfig], named: str
) -> None:
    config = asked(data_of(kept), kind, **{named: str(kept.folder)})
    job = Job.resolve(config)
    assert job.recorded or job.preferences
    scored = replace(config, options={**config.options, "score": "log"})
    with pytest.raises(OptionError, match=r"10 of 10 answers"):
        Job.resolve(scored)
    correct(data_of(kept), "forecast", "train", 2)
    with pytest.raises(OptionError, match=r"2 of 10 answers in .* tokengym train"):
        Job.resolve(config)


@quick_first("kind", ["sft", "preferences"])
def test_exported_lessons_are_said_to_be_of_other_answers(kept: RunFolder, kind: str) -> None:
    words = ["rollouts", str(kept.folder), "--as", kind]
    assert "differ" not in CliRunner().invoke(app, words).output
    correct(data_of(kept), "forecast", "train", 2)
    assert "2 of 10 answers" in CliRunner().invoke(app, words).output
    data_of(kept).unlink()  # what is on record can be written without it
    assert CliRunner().invoke(app, words).exit_code == 0


def test_rollouts_of_two_answers_are_no_pair(kept: RunFolder) -> None:
    first, second, *_ = kept.rollouts.read()
    assert list(preferred([first, second], 0.05))
    assert not list(preferred([first, replace(second, answer_fingerprint="another")], 0.05))
