"""Laws of the renderer: it is the one recommended for the model, and another one is said."""

import shutil
from pathlib import Path

import pytest
from filelock import FileLock
from tinker_cookbook.model_info import get_qwen_info
from typer.testing import CliRunner

from tests.every import every, quick_first
from tokengym.agents.cli import app
from tokengym.agents.tinker.codec import renderer_for
from tokengym.agents.tinker.dataset import TaskDatasetBuilder
from tokengym.agents.toy_model import MODEL_DIR, TOY_MODEL
from tokengym.agents.training.earlier_runs import codec_of
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.job import Job
from tokengym.agents.training.presets import preset
from tokengym.envs.core.errors import OptionError

PLACES = ("Qwen3-8B", "models/Qwen/Qwen3-8B", "models--Qwen--Qwen3-8B/snapshots/0a1b")


@every("name", get_qwen_info())
def test_a_hosted_model_gets_the_renderer_that_the_cookbook_recommends(name: str) -> None:
    recommended = get_qwen_info()[name].recommended_renderers[0]
    config = preset("forecast", model=f"Qwen/{name}")
    assert renderer_for(config.model, config.renderer) == recommended
    chosen = preset("forecast", model=f"Qwen/{name}", renderer="role_colon")
    assert renderer_for(chosen.model, chosen.renderer) == "role_colon"


@pytest.mark.nightly
@pytest.mark.parametrize("place", PLACES)
def test_a_directory_is_known_by_its_name(place: str, tmp_path: Path) -> None:
    directory = shutil.copytree(MODEL_DIR, tmp_path / place)
    job = Job.resolve(preset("forecast", model=str(directory)))
    assert job.config.renderer == "qwen3"
    builder = TaskDatasetBuilder(world="forecast", model_name_for_tokenizer=str(directory))
    assert job.codec.name == builder.codec_name() == f"qwen3@{directory}"


def test_a_renamed_models_run_reads_the_same_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that it can teach, be imitated and play against later jobs on that model."""
    shutil.copytree(MODEL_DIR, tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    job, run = Job.resolve(preset("forecast", model="mine")), RunFolder(tmp_path / "run")
    run.write_config(job.config)
    run.service_folder.mkdir()
    assert codec_of(run) == job.codec.name == f"qwen3_instruct@{tmp_path / 'mine'}"


def test_a_model_the_cookbook_lacks_needs_a_renderer() -> None:
    builder = TaskDatasetBuilder(world="forecast", model_name_for_tokenizer=str(MODEL_DIR))
    with pytest.raises(OptionError, match="renderer_name"):
        builder.codec_name()


@quick_first(
    ("place", "words", "said"),
    [
        ("Qwen3-8B", ["--renderer", "qwen3_instruct"], "qwen3_instruct; the cookbook recommends"),
        (None, [], None),
        ("Qwen3-8B", [], None),
        ("mine", [], "qwen3_instruct; the cookbook does not list it"),
    ],
)
def test_another_renderer_is_said(
    place: str | None, words: list[str], said: str | None, tmp_path: Path
) -> None:
    model = TOY_MODEL if place is None else str(shutil.copytree(MODEL_DIR, tmp_path / place))
    run = tmp_path / "run"
    run.mkdir()
    words = ["train", "forecast", "--model", model, *words, "--run", str(run)]
    # That another process trains the run ends the command before anything is trained.
    with FileLock(run / "run.lock"):
        shown = CliRunner().invoke(app, words)
    assert isinstance(shown.exception, OptionError)
    output = " ".join(shown.output.split())
    assert ("the renderer" in output) == (said is not None)
    assert said is None or said in output


@pytest.mark.nightly
def test_an_evaluation_says_it_too(tmp_path: Path) -> None:
    model = str(shutil.copytree(MODEL_DIR, tmp_path / "mine"))
    words = ["evaluate", "forecast", "--policy", model, "--tasks", "2", "--out", str(tmp_path)]
    shown = CliRunner().invoke(app, words, catch_exceptions=False)
    assert shown.exit_code == 0
    assert "qwen3_instruct; the cookbook does not list it" in shown.stderr
