"""Laws of the starting policy: small, well-formed in the worlds it knows, and bad at deciding."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np
import pytest

from tests.every import every
from tokengym.agents.cli.train import world_of
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.held_out import HeldOutEvaluation
from tokengym.agents.evaluation.trained import Evaluated
from tokengym.agents.scale.level_scale import shipped_rows
from tokengym.agents.toy_model import MODEL_DIR
from tokengym.agents.training.config import TrainConfig
from tokengym.agents.training.connection import Connection
from tokengym.agents.training.job import Job
from tokengym.agents.training.presets import preset
from tokengym.agents.training.session import TrainingSession
from tokengym.envs.registry import make_world, spec

T = TypeVar("T")

pytestmark = pytest.mark.filterwarnings("ignore")

EPISODES = {"disruption": 100, "energy": 25, "warehouse": 40}
"""Episodes played of a world: at least a hundred replies."""
FIRST = {"forecast": "easy", "energy": "evening", "warehouse": "aisle", "disruption": "first_year"}
"""The level that it learns first, by world."""


def in_session(config: TrainConfig, measure: Callable[[TrainingSession], Awaitable[T]]) -> T:
    """Measure something of a job's untrained model."""
    job = Job.resolve(replace(config, evaluate_before=config.evaluation_tasks))

    async def connected() -> T:
        connection = Connection(job.target.model, job.target.base_url, None)
        async with TrainingSession.open(job, connection) as session:
            return await measure(session)

    return asyncio.run(connected())


async def untrained(session: TrainingSession) -> Evaluated:
    with TemporaryDirectory() as folder:
        kept = EvaluationFolder(Path(folder))
        await HeldOutEvaluation.of_run(session, kept, None)
        plan, _, results = kept.saved()
        assert results is not None
        return Evaluated(results.policies[0], kept.table(plan, plan.places[0], "before"))


def stated(found: Evaluated) -> list[tuple[float, float]]:
    """Return label and probability of each well-formed forecast."""
    pairs = [(end.get("label"), end.get("probability")) for end in found.table.ends]
    return [(label, p) for label, p in pairs if label is not None and p is not None]


def test_it_weighs_at_most_twelve_megabytes() -> None:
    files = [path for path in Path(MODEL_DIR).rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 12e6


@pytest.mark.nightly
@pytest.mark.parametrize("world", EPISODES)
def test_its_replies_are_in_form(world: str, served: dict[str, Any]) -> None:
    settings = preset(world, evaluation_tasks=EPISODES[world], **served)
    # At most one in twenty in the long run; of a hundred replies, chance may make it eight.
    assert in_session(settings, untrained).result.malformed.value <= 0.08


@every("world", FIRST)
def test_it_begins_at_the_level_that_it_learns(world: str) -> None:
    assert preset(world).level == FIRST[world]
    assert preset(*world_of(world, None)).level == FIRST[world]
    assert preset(world, model="smollm2").level == spec(world).levels[0]
    role = spec(world).roles[-1]
    assert preset(world, role=role).level == spec(world).levels[0]


@every("world", FIRST)
def test_the_blind_earn_no_less_than_legal_random_play(world: str) -> None:
    """Elsewhere rewards alone would lift a policy above the blind without a look at a Task."""
    options = make_world(world, FIRST[world], **spec(world).training).options
    (row,) = [
        row
        for row in shipped_rows()
        if (row["world"], row["level"], row["role"], row["options"])
        == (spec(world).id, FIRST[world], spec(world).roles[0], options)
    ]
    blind, random = (row["policies"][name] for name in (row["blind"], "random"))
    unit = "expected" if blind["expected"] else "realised"
    assert blind[unit]["value"] >= random[unit]["value"]


@pytest.mark.nightly
def test_it_forecasts_no_better_than_the_best_constant(served: dict[str, Any]) -> None:
    found = in_session(preset("forecast", evaluation_tasks=150, **served), untrained)
    assert {label for label, _ in stated(found)} == {0.0, 1.0}
    assert found.result.malformed.value <= 0.05
    assert found.result.skill.low < 0.0


@pytest.mark.nightly
def test_its_likeliest_forecasts_follow_the_questions(served: dict[str, Any]) -> None:
    """Sampling is noise: greedy replies to the same questions are the same ones every time."""

    config = preset("forecast", evaluation_tasks=300, temperature=0.0, **served)
    found = in_session(config, untrained)
    tasks = make_world("forecast", config.level).first_tasks("test", 300)
    exact = [task.answer["p_bayes"][1] for task in tasks]
    said = [probability for _, probability in stated(found)]
    assert len(said) == len(exact)
    # Taught on questions of another distribution it has .2, and learns little but a constant.
    assert np.corrcoef(said, exact)[0, 1] > 0.4
