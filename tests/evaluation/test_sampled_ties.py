"""Laws of the group-size study of a model: it is sampled, its own tokens are counted."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tests.training.jobs import run_job
from tokengym.agents.cli import app
from tokengym.agents.evaluation.first_play import FirstPlay
from tokengym.agents.evaluation.plan import EvaluationPlace, EvaluationPlan
from tokengym.agents.evaluation.played_ties import tie_study
from tokengym.agents.evaluation.ties import TieStudy
from tokengym.agents.evaluation.ties_report import ties_report
from tokengym.agents.evaluation.worlds import EvaluatedWorld
from tokengym.agents.rollouts import RolloutOrigin, RolloutRecord, TurnRecord
from tokengym.agents.training.cost import rollouts_cost
from tokengym.agents.training.job import Job
from tokengym.agents.training.presets import preset
from tokengym.envs.core.errors import OptionError
from tokengym.rewards.clustered import best_of_k

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
    assert found.policy == served["model"]
    assert all(0.0 <= reward <= 1.0 for group in found.rewards for reward in group)
    shown = "\n".join(ties_report(found).lines)
    assert "an episode reads" in shown
    assert f"Recommended: tokengym train forecast:easy --model={served['model']} --group" in shown


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
    assert found["policy"] == str(run)
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


def told(
    said: Sequence[Sequence[tuple[str, int, bool]]],
    returns: Sequence[Sequence[float]],
    useful: dict[int, float],
    level: str = "easy",
) -> FirstPlay:
    """Describe groups whose replies are given by text, tokens and whether they came to an end."""
    place = EvaluationPlace(
        FORECAST.world, level, "forecaster", {}, {}, "test", len(said), max_tokens=64
    )
    world = EvaluatedWorld.resolve(place, 0)
    groups = [
        [
            RolloutRecord(
                RolloutOrigin("evaluation", group=group, member=member),
                *(FORECAST.world, level, "test", group, "f", "forecaster"),
                (
                    TurnRecord(
                        *("forecaster", "Reply with\nProbability: <p>", text),
                        complete=complete,
                        malformed=not complete,
                        prompt_tokens=100,
                        completion_tokens=tokens,
                    ),
                ),
                "completed",
                total,
            )
            for member, ((text, tokens, complete), total) in enumerate(zip(*both, strict=True))
        ]
        for group, both in enumerate(zip(said, returns, strict=True))
    ]
    job = Job.resolve(preset("forecast", level, max_tokens=64))
    return FirstPlay.of(job, world, groups, useful)


def test_recommended_settings_are_those_that_replies_call_for() -> None:
    well, long = ("Probability: 0.5", 10, True), ("First, the rate is", 64, False)
    good = told([[well] * 4] * 2, [[0.1, 0.2, 0.3, 0.4]] * 2, {4: 0.85, 8: 0.95})
    assert "--group-size=4 --max-tokens=16" in good.command
    assert [good.best_of[k].value for k in (1, 4)] == pytest.approx([0.25, 0.4])
    assert good.references.keys() >= {"oracle"}
    cut = told([[long, well, long, well]] * 2, [[0.1] * 4] * 2, {4: 0.1, 8: 0.2, 16: 0.5})
    assert "--group-size=16 --max-tokens=128" in cut.command
    assert [cut.shares[name] for name in ("cut_off", "repeating", "copied")] == [0.5, 0.0, 0.0]
    circles = ("Probability: 0.99999999999", 64, False)
    again = told([[circles] * 4] * 2, [[0.0] * 4] * 2, {4: 0.0, 16: 0.0}, level="hard")
    assert again.shares["repeating"] == 1.0
    assert "forecast:easy " in again.command
    assert "--max-tokens=64" in again.command
    assert "Teach the form first" in again.reasons[0]
    copied = told([[("Probability: <p>", 9, True)] * 4] * 2, [[0.0] * 4] * 2, {4: 0.0, 16: 0.0})
    assert copied.shares["copied"] == 1.0
    solved = told([[well] * 4] * 2, [[1.0] * 4] * 2, {4: 0.0, 16: 0.0})
    assert "nearly solved" in solved.reasons[0]
    assert "forecast:easy" not in solved.command
    # The cost is that of the replies as they were, at whatever level: 10 tokens each.
    usual = preset("forecast", group_size=16)
    rollouts = usual.steps * usual.groups_per_batch * 16
    assert solved.cost.sampled == 10 * (rollouts + usual.tasks_before + usual.evaluation_tasks)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=6), st.data())
def test_the_best_of_k_is_the_mean_over_all_choices(
    values: list[float], data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, len(values)))
    every = [max(some) for some in combinations(values, k)]
    assert best_of_k([values], k).value == pytest.approx(fmean(every))
