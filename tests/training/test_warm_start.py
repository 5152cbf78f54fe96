"""Laws of a warm start: supervised steps, then reinforcement learning, in one run folder."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from safetensors import safe_open

from tests.training.jobs import metrics, run_job
from tokengym.agents.evaluation.trained import read_trained
from tokengym.agents.service import LocalService
from tokengym.agents.toy_model import MODEL_DIR
from tokengym.agents.training.config import TrainConfig
from tokengym.agents.training.exporting import TrainedAdapter
from tokengym.agents.training.fill_in import scaled_learning_rate
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.job import Job
from tokengym.agents.training.presets import preset
from tokengym.envs.core.errors import OptionError

pytestmark = pytest.mark.filterwarnings("ignore")


def job(**changes: Any) -> TrainConfig:
    sizes = {"steps": 1, "groups_per_batch": 2, "group_size": 2, "evaluation_tasks": 3}
    return preset("forecast", **{**sizes, **changes})


@pytest.mark.nightly
def test_reinforcement_learning_goes_on_from_the_demonstrations(
    tmp_path: Path, served: dict[str, Any]
) -> None:
    """The penalty to the start is 0 at the first step: what RL starts from is the warm policy."""
    rates = {"learning_rate": 1e-3, "warm_start_rate": 3e-3}
    asked = {"warm_start": 3, "demonstrations": "empirical", "kl": 0.1, **rates, **served}
    _, shown = run_job(job(**asked), tmp_path)
    (found,) = read_trained(RunFolder(tmp_path)).values()
    supervised = RunFolder(tmp_path).warm_start
    assert [row["progress/batch"] for row in metrics(supervised.folder)] == [0, 1, 2]
    assert all("train/nll" in row for row in metrics(supervised.folder))
    assert [row["optim/lr"] for row in metrics(supervised.folder)] == pytest.approx(
        [3e-3, 2e-3, 1e-3]
    )
    (first,) = metrics(tmp_path)
    assert first["optim/lr"] == 1e-3
    assert first["kl_policy_base"] == pytest.approx(0.0, abs=1e-3)
    assert found.policies["warm"].result.tasks == 3
    assert "after the warm start" in shown
    page = (tmp_path / "report.html").read_text()
    assert "after the warm start" in page
    assert f'"skill since the warm start", "{found.skill("warm")}"' in page.replace('","', '", "')
    assert "Replies" in page
    # A resume does no supervised step again, and evaluates the warm policy no second time.
    warm = tmp_path / "rollouts" / "evaluation_warm.jsonl"
    before, written = warm.read_bytes(), warm.stat().st_mtime_ns
    stamp = supervised.folder.joinpath("metrics.jsonl").stat().st_mtime_ns
    run_job(job(**asked, steps=2), tmp_path)
    assert (warm.read_bytes(), warm.stat().st_mtime_ns) == (before, written)
    assert supervised.folder.joinpath("metrics.jsonl").stat().st_mtime_ns == stamp


@pytest.mark.nightly
def test_a_killed_warm_start_saves_its_final_weights(
    tmp_path: Path, served: dict[str, Any]
) -> None:
    """They are what is trained on, and not the model as it was."""
    rates = {"learning_rate": 1e-3, "warm_start_rate": 0.03, "save_every": 1}
    asked = job(warm_start=2, demonstrations="empirical", **rates, **served)
    run_job(asked, tmp_path)
    (whole,) = read_trained(RunFolder(tmp_path)).values()
    supervised = RunFolder(tmp_path).warm_start
    _, last, final = supervised.checkpoints()
    assert (last["batch"], final["name"]) == (2, "final")
    supervised.forget_checkpoints_after(1)
    with (supervised.folder / "checkpoints.jsonl").open("a") as file:
        file.write(json.dumps(last) + "\n")
    for name in (
        "outcome.json",
        "rollouts/evaluation_warm.jsonl",
        "checkpoints.jsonl",
        "metrics.jsonl",
    ):
        (tmp_path / name).unlink()
    run_job(asked, tmp_path)
    (again,) = read_trained(RunFolder(tmp_path)).values()
    assert supervised.final_step == 2
    both = [found.policies["warm"].paid_T for found in (whole, again)]
    assert both[0] == both[1] != whole.before.paid_T


@pytest.mark.nightly
def test_the_demonstrations_of_a_step_are_divided_into_updates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Adam has counted every one of them in the state that is saved after the step."""
    spawn, started = LocalService.spawn, []

    def record(arguments: list[str], *others: Any) -> Any:
        started.append(arguments)
        return spawn(arguments, *others)

    monkeypatch.setattr(LocalService, "spawn", staticmethod(record))
    run_job(job(warm_start=2, warm_start_updates=3, precision="bfloat16", memory=1.5), tmp_path)
    (environment,) = json.loads((tmp_path / "environment.json").read_text())["environments"]
    assert environment["precision"] == "bfloat16"
    (arguments,) = started
    assert arguments[arguments.index("--memory") + 1] == "1.5"
    counted = set()
    for state in (tmp_path / "service").glob("runs/*/weights/final.safetensors"):
        with safe_open(state, "np") as tensors:
            counters = [name for name in tensors.keys() if name.endswith(".step")]  # noqa: SIM118
            counted |= {float(tensors.get_tensor(name)) for name in counters}
    assert counted == {2 * 3.0, 1.0}
    # The weights of either part can be had, though one service keeps them all.
    run = RunFolder(tmp_path)
    warm, trained = (TrainedAdapter.of_run(one).weights for one in (run.warm_start, run))
    assert warm.digest != trained.digest


def test_unknown_demonstrations_are_refused_by_name() -> None:
    with pytest.raises(OptionError, match="--demonstrations must be a run folder or one of"):
        Job.resolve(job(demonstrations="wise"))


def test_a_pretrained_model_gets_the_rate_of_its_size(tmp_path: Path) -> None:
    """A Llama of width 576, by the cookbook's formula for its family."""
    config = preset("forecast", model="somebody/other-model")
    assert config.learning_rate is None
    assert "prompt" not in config.options
    (tmp_path / "config.json").write_text('{"model_type": "llama", "hidden_size": 576}')

    scaled = pytest.approx(5e-4 * (2000 / 576) ** 0.781)
    assert scaled_learning_rate(str(tmp_path), rewards=False) == scaled
    # From rewards it learns nothing at that rate.
    assert scaled_learning_rate(str(tmp_path), rewards=True) == 3e-4
    assert scaled_learning_rate("meta-llama/Llama-3.2-1B", rewards=True) == pytest.approx(
        5e-4 * (2000 / 2048) ** 0.781
    )
    assert scaled_learning_rate("somebody/other-model", rewards=True) == 5e-4


def test_a_small_models_warm_start_keeps_the_scaled_rate(tmp_path: Path) -> None:
    model = shutil.copytree(MODEL_DIR, tmp_path / "model")
    width = json.loads((model / "config.json").read_text())["hidden_size"]
    found = Job.resolve(job(model=str(model), warm_start=2)).config
    assert isinstance(found, TrainConfig)
    assert found.learning_rate == 3e-4
    assert found.warm_start_rate == pytest.approx(5e-4 * (2000 / width) ** 0.0775)  # a Qwen3
    assert Job.resolve(job(model=str(model), warm_start=2, learning_rate=1e-3)).config == replace(
        found, learning_rate=1e-3, warm_start_rate=1e-3
    )
