"""tinker_cookbook.rl.train.main runs against the service, unchanged, in each of its modes."""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tinker_cookbook.rl import train

from tests.service.toy import DigitDatasetBuilder
from tokengym.agents.service import guard

if TYPE_CHECKING:
    from tokengym.agents.service import LocalService

pytestmark = pytest.mark.nightly


def _train(service: LocalService, log: Path, steps: int, **extra: Any) -> list[dict[str, Any]]:
    config = train.Config(
        learning_rate=2e-3,
        dataset_builder=DigitDatasetBuilder(model=service.model_name, steps=steps),
        model_name=service.model_name,
        recipe_name="toy",
        max_tokens=8,
        log_path=str(log),
        base_url=service.base_url,
        lora_rank=8,
        eval_every=0,
        save_every=1,
        **extra,
    )
    asyncio.run(guard(service, train.main(config)))
    lines = (log / "metrics.jsonl").read_text().splitlines()
    # From 0.6 on counts of tokens have rows of their own.
    return [row for row in map(json.loads, lines) if "progress/done_frac" in row]


def _sound(rows: list[dict[str, Any]], steps: int) -> None:
    assert len(rows) == steps
    for row in rows:
        assert math.isfinite(row["optim/grad_norm"])
        assert row["optim/grad_norm"] > 0
        assert 0 <= row["env/all/reward/total"] <= 1


def test_sync_training_samples_what_it_trains_and_resumes(
    service: LocalService, tmp_path: Path
) -> None:
    rows = _train(service, tmp_path, 2)
    _sound(rows, 2)
    for row in rows:
        # Sampler and trainer give the same token the same probability.
        assert abs(row["optim/kl_sample_train_v1"]) < 1e-4
        assert row["optim/kl_sample_train_v2"] < 1e-8
    # The same command with more steps goes on from the last checkpoint.
    rows = _train(service, tmp_path, 3)
    _sound(rows, 3)
    assert [row["progress/batch"] for row in rows] == [0, 1, 2]


@pytest.mark.parametrize("loss", ["ppo", "cispo"])
def test_streaming_minibatches_train(service: LocalService, tmp_path: Path, loss: str) -> None:
    streaming = train.StreamMinibatchConfig(groups_per_batch=4, num_minibatches=2)
    rows = _train(service, tmp_path, 2, stream_minibatch_config=streaming, loss_fn=loss)
    _sound(rows, 2)


def test_asynchronous_training_stays_near_the_policy(service: LocalService, tmp_path: Path) -> None:
    # From 0.6 on its loss is stable_reinforce.
    config = train.AsyncConfig(max_steps_off_policy=2, groups_per_batch=4)
    rows = _train(service, tmp_path, 3, async_config=config)
    _sound(rows, 3)
    assert all(abs(row["optim/kl_sample_train_v1"]) < 0.5 for row in rows)


def test_a_kl_penalty_grows_with_training_from_nothing(
    service: LocalService, tmp_path: Path
) -> None:
    reference = train.KLReferenceConfig(base_model=service.model_name)
    rows = _train(
        service, tmp_path, 2, kl_penalty_coef=0.1, kl_reference_config=reference, temperature=0.8
    )
    _sound(rows, 2)
    assert abs(rows[0]["kl_policy_base"]) < 1e-4
    assert abs(rows[1]["kl_policy_base"]) > 1e-5
