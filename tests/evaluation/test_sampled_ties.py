"""Laws of the group-size study of a model: it is sampled, its own tokens are counted."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.training.jobs import run_job
from tokengym.agents.cli import app
from tokengym.agents.evaluation.plan import EvaluationPlace, EvaluationPlan
from tokengym.agents.evaluation.played_ties import tie_study
from tokengym.agents.evaluation.ties import TieStudy
from tokengym.agents.evaluation.worlds import EvaluatedWorld
from tokengym.agents.training.cost import rollouts_cost
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.job import Job
from tokengym.agents.training.presets import preset
from tokengym.envs.core.errors import OptionError

pytestmark = pytest.mark.filterwarnings("ignore")

FORECAST = replace(preset("forecast"), options={"prompt": "terse"})


def study(served: dict[str, Any], tasks: int, sizes: tuple[int, ...], **sampling: Any) -> TieStudy:
    """Study the served model on test Tasks of forecast."""
    options = {"prompt": "terse"}
    role, max_tokens = "forecaster", FORECAST.max_tokens
    place = EvaluationPlace(
        FORECAST.world, FORECAST.level, role, {}, options, "test", tasks, max_tokens=max_tokens
    )
    place = replace(place, **sampling)
    plan = EvaluationPlan((place,), (served["model"],), max(sizes), base_url=served["base_url"])
    return tie_study(EvaluatedWorld.resolve(place, 0), plan, sizes)


@pytest.mark.nightly
def test_a_model_at_an_address_is_studied(served: dict[str, Any]) -> None:
    found = study(served, 3, (2, 4))
    assert [len(group) for group in found.rewards] == [4, 4, 4]
    assert found.policy == "model at temperature 1"
    assert found.tokens_per_second is not None
    assert found.tokens_per_second > 0.0
    assert all(0.0 <= reward <= 1.0 for group in found.rewards for reward in group)


def test_at_temperature_0_every_group_ties(served: dict[str, Any]) -> None:
    found = study(served, 2, (2, 3), temperature=0.0)
    assert found.sizes[-1].useful.value == 0.0


@pytest.mark.nightly
def test_the_newest_weights_of_a_run_play(tmp_path: Path) -> None:
    run, data = tmp_path / "a-run", tmp_path / "ties.json"
    settings = preset("forecast", steps=1, groups_per_batch=2, group_size=2, evaluation_tasks=2)
    run_job(settings, run)
    call = ["ties", "forecast", "--policy", str(run), "--group-size", "2", "--tasks", "2"]
    result = CliRunner().invoke(app, [*call, "--temperature", "0.5", "--json", str(data)])
    assert result.exit_code == 0, result.output
    found = json.loads(data.read_text())
    assert (
        found["policy"]
        == f"a-run ({str(RunFolder(run).weights.sampler).rpartition('/')[2]}) at temperature 0.5"
    )
    assert found["groups"] == 2


def test_the_cost_bounds_sampled_tokens() -> None:
    job = Job.resolve(FORECAST)
    tasks = job.world.first_tasks("test", 4)
    read, sampled = rollouts_cost(job, tasks, 8)
    assert sampled == 4 * 8 * job.max_tokens
    assert rollouts_cost(job, tasks, 16)[0] == pytest.approx(2 * read, abs=2)


def test_a_group_of_one_is_refused_before_anything_is_served() -> None:
    with pytest.raises(OptionError, match="sizes above 1, got 2 and"):
        study({"model": FORECAST.model, "base_url": None}, 2, (1, 4))
