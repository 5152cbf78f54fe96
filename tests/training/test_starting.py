"""Laws of the starting policy: small, in form in the worlds it speaks, and bad at deciding."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import tinker

from tokengym.agents.analysis.evaluation import (
    Evaluation,
    evaluate_policy,
    held_out_tasks,
    reference_lines,
)
from tokengym.agents.toy_model import MODEL_DIR
from tokengym.agents.training.config import TrainSettings, preset

pytestmark = pytest.mark.filterwarnings("ignore")

EPISODES = {"tokengym/Forecast-v0": 300, "tokengym/Disruption-v0": 150}
"""Episodes played of a world; those of several turns need fewer."""


def play(settings: TrainSettings) -> Evaluation:
    async def sample() -> Evaluation:
        client = tinker.ServiceClient(base_url=settings.base_url)
        sampler = await client.create_sampling_client(base_model=settings.model)
        tasks = held_out_tasks(settings)
        found = await evaluate_policy(settings, settings.model, sampler, tasks)
        await client.close("success")
        return found

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
    assert play(settings).figures["malformed"] <= 0.05


def test_it_forecasts_no_better_than_the_best_constant_but_not_blindly(
    served: dict[str, Any],
) -> None:
    settings = preset("forecast", evaluation_tasks=600, **served)
    found = play(settings)
    lines = reference_lines(settings, held_out_tasks(settings))
    assert found.returns.low < lines["best constant"].mean
    assert found.figures["discrimination (correlation of stated and label)"] > 0.1
