"""Laws of the starting policy: small, in form in the worlds it speaks, and bad at deciding."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tokengym.agents.analysis.evaluation import evaluate_roles, reference_lines
from tokengym.agents.toy_model import MODEL_DIR
from tokengym.agents.training.config import TrainConfig, preset
from tokengym.agents.training.connection import Connection
from tokengym.agents.training.job import Job
from tokengym.agents.training.outcome import Evaluation, References
from tokengym.agents.training.session import Session
from tokengym.rewards.estimates import mean_estimate

pytestmark = pytest.mark.filterwarnings("ignore")

EPISODES = {"tokengym/Forecast-v0": 300, "tokengym/Disruption-v0": 150}
"""Episodes played of a world; those of several turns need fewer."""


def play(config: TrainConfig) -> tuple[Evaluation, References]:
    """Evaluate the untrained model, and what scripted policies earn on the same Tasks."""
    job = Job.resolve(config)
    role = job.roles[0]

    async def sample() -> tuple[Evaluation, References]:
        connection = Connection(job.target.model, job.target.base_url, None)
        async with Session.open(job, connection) as session:
            references = await reference_lines(session)
            return await evaluate_roles(session, {role: None}), references[role]

    return asyncio.run(sample())


def test_it_weighs_at_most_twelve_megabytes() -> None:
    files = [path for path in Path(MODEL_DIR).rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 12e6


@pytest.mark.parametrize(
    "world_id",
    [f"tokengym/{name}-v0" for name in ("Forecast", "Energy", "Warehouse", "Disruption")],
)
def test_its_replies_are_in_form(world_id: str, served: dict[str, Any]) -> None:
    settings = preset(world_id, evaluation_tasks=EPISODES.get(world_id, 40), **served)
    found, _ = play(settings)
    assert found.figures["malformed"] <= 0.05


def test_it_forecasts_no_better_than_the_best_constant_but_not_blindly(
    served: dict[str, Any],
) -> None:
    settings = preset("forecast", evaluation_tasks=600, **served)
    found, references = play(settings)
    assert found.returns.low < mean_estimate(references.yardstick.blind_T).value
    assert found.figures["discrimination (correlation of stated and label)"] > 0.1
