"""Inspect by the cookbook and the local service: a policy in training is evaluated."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai", reason="needs the extra `inspect`")
pytest.importorskip("tinker_cookbook", reason="needs the extra `tinker`")

import tinker
from inspect_ai.log import list_eval_logs, read_eval_log
from tinker_cookbook.eval.inspect_evaluators import InspectEvaluatorBuilder

from tokengym.agents.adapters.inspect import world_task
from tokengym.agents.service import LocalService
from tokengym.agents.toy_model import MODEL_DIR

SAMPLES = 2


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalService]:
    state = tmp_path_factory.mktemp("inspect") / "service"
    with LocalService(MODEL_DIR, state_dir=state, threads=1) as running:
        yield running


def task() -> Any:
    return world_task("forecast", samples=SAMPLES, prompt="terse")


def test_the_cookbooks_evaluator_evaluates_a_policy_in_training(
    service: LocalService, tmp_path: Path
) -> None:
    client = tinker.ServiceClient(base_url=service.base_url, api_key=service.api_key)
    training = client.create_lora_training_client(base_model=service.model_name, rank=4).result()
    sampler = training.save_weights_and_get_sampling_client().result()
    evaluator = InspectEvaluatorBuilder(
        tasks=[task()],
        renderer_name="qwen3_instruct",
        model_name=service.model_name,
        max_tokens=16,
        seed=1,
        log_dir=str(tmp_path),
    )()
    metrics = asyncio.run(evaluator(sampler))
    assert set(metrics) == {f"forecast-easy/{name}" for name in ("return", "well_formed")}
    (found,) = list_eval_logs(str(tmp_path))
    log = read_eval_log(found)
    assert log.status == "success"
    assert log.samples is not None
    assert all(sample.scores for sample in log.samples)
