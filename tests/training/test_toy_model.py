"""Laws of the starting policy: small, well-formed in the worlds it knows, and bad at deciding."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np
import pytest

from tokengym.agents.evaluation.held_out import evaluate_roles, reference_lines
from tokengym.agents.rollouts import RolloutLog
from tokengym.agents.toy_model import MODEL_DIR
from tokengym.agents.training.config import TrainConfig
from tokengym.agents.training.connection import Connection
from tokengym.agents.training.folder.run_summary import Evaluation, References
from tokengym.agents.training.job import Job
from tokengym.agents.training.presets import preset
from tokengym.agents.training.session import TrainingSession
from tokengym.rewards.estimates import mean_estimate

T = TypeVar("T")

pytestmark = pytest.mark.filterwarnings("ignore")

EPISODES = {"tokengym/Disruption-v0": 60, "tokengym/Energy-v0": 12, "tokengym/Warehouse-v0": 20}
"""Episodes played of a world: at least a hundred replies."""


def in_session(config: TrainConfig, measure: Callable[[TrainingSession], Awaitable[T]]) -> T:
    """Measure something of a job's untrained model."""
    job = Job.resolve(config)

    async def connected() -> T:
        connection = Connection(job.target.model, job.target.base_url, None)
        async with TrainingSession.open(job, connection) as session:
            return await measure(session)

    return asyncio.run(connected())


async def untrained(session: TrainingSession) -> Evaluation:
    with TemporaryDirectory() as folder:
        log = RolloutLog(Path(folder))
        return await evaluate_roles(session, {session.job.roles[0]: None}, log, "untrained")


def test_it_weighs_at_most_twelve_megabytes() -> None:
    files = [path for path in Path(MODEL_DIR).rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 12e6


@pytest.mark.parametrize("world_id", EPISODES)
def test_its_replies_are_in_form(world_id: str, served: dict[str, Any]) -> None:
    settings = preset(world_id, evaluation_tasks=EPISODES[world_id], **served)
    # At most one in twenty in the long run; of a hundred replies, chance may make it eight.
    assert in_session(settings, untrained).figures["malformed"] <= 0.08


def test_it_forecasts_in_form_and_no_better_than_the_best_constant(served: dict[str, Any]) -> None:
    async def with_references(session: TrainingSession) -> tuple[Evaluation, References]:
        references = await reference_lines(session)
        return await untrained(session), references[session.job.roles[0]]

    found, references = in_session(
        preset("forecast", evaluation_tasks=150, **served), with_references
    )
    assert {label for label, _ in found.stated} == {0.0, 1.0}
    assert found.figures["malformed"] <= 0.05
    assert found.returns.low < mean_estimate(references.yardstick.blind_T).value


def test_its_likeliest_forecasts_follow_the_questions(served: dict[str, Any]) -> None:
    """Sampling is noise: greedy replies to the same questions are the same ones every time."""

    async def greedy(session: TrainingSession) -> tuple[Evaluation, list[float]]:
        exact = [task.answer["p_bayes"][1] for task in session.job.held_out]
        return await untrained(session), exact

    found, exact = in_session(
        preset("forecast", evaluation_tasks=300, temperature=0.0, **served), greedy
    )
    assert len(found.stated) == len(exact)
    stated = [probability for _, probability in found.stated]
    # Taught on questions of another distribution it has .2, and learns little but a constant.
    assert np.corrcoef(stated, exact)[0, 1] > 0.4
