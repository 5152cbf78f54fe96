"""Our own loop and the cookbook's make the same updates of the same data; ours does the rest."""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tinker_cookbook.rl import train
from tinker_cookbook.utils.lr_scheduling import LRSchedule

from tests.service.toy import DigitDatasetBuilder
from tokengym.agents.service import guard
from tokengym.agents.training.batches.collect import RolloutCollector
from tokengym.agents.training.config import Algorithm
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.loop import train as train_own
from tokengym.envs.core.errors import OptionError

if TYPE_CHECKING:
    from tokengym.agents.service import LocalService

pytestmark = pytest.mark.nightly


def config(service: LocalService, log: Path, steps: int = 2, **extra: Any) -> train.Config:
    fields: dict[str, Any] = {
        "learning_rate": 2e-3,
        "dataset_builder": DigitDatasetBuilder(model=service.model_name, steps=steps),
        "model_name": service.model_name,
        "recipe_name": "toy",
        "max_tokens": 8,
        "log_path": str(log),
        "base_url": service.base_url,
        "lora_rank": 8,
        "eval_every": 0,
        "save_every": 2,
        "rolling_save_every": 1,
        "num_groups_to_log": 0,
        "rollout_json_export": False,
    }
    return train.Config(**{**fields, **extra})


def run(
    service: LocalService,
    given: train.Config,
    algorithm: Algorithm,
    schedule: LRSchedule = "constant",
    warmup: int = 0,
) -> list[dict[str, Any]]:
    async def train_here() -> None:
        groups, _ = await given.dataset_builder()
        spare, _ = await DigitDatasetBuilder(model=service.model_name, steps=8, groups=1)()
        source = RolloutCollector(given, algorithm, groups, spare)
        folder = RunFolder(Path(given.log_path))
        await train_own(given, source, folder, schedule=schedule, warmup=warmup)

    asyncio.run(guard(service, train_here()))
    lines = (Path(given.log_path) / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize(
    "algorithm",
    [
        Algorithm("leave_one_out", "turn"),
        Algorithm("reinforce_plus_plus", filter="resample", min_spread=0.1, resample_tokens=400),
    ],
    ids=["turn", "resample"],
)
def test_every_kind_of_choice_trains(
    service: LocalService, tmp_path: Path, algorithm: Algorithm
) -> None:
    for row in run(service, config(service, tmp_path), algorithm):
        assert math.isfinite(row["optim/grad_norm"])
        assert 0 <= row["env/all/reward/total"] <= 1
        # Sampler and trainer give the same token the same probability.
        assert abs(row["optim/kl_sample_train_v1"]) < 1e-4
        assert row["sampler/lag"] == 0
        assert row["groups/trained"] <= row["groups/drawn"]


def test_a_resumed_run_has_the_rate_of_its_step(service: LocalService, tmp_path: Path) -> None:
    given = config(service, tmp_path, 4)
    rates = [row["optim/lr"] for row in run(service, given, Algorithm(), "linear", 2)]
    # It rises for two steps to the schedule's.
    shares = [1 / 2, 3 / 4, 2 / 4, 1 / 4]
    assert rates == pytest.approx([given.learning_rate * share for share in shares])
    rows = run(service, config(service, tmp_path, 5), Algorithm(), "linear", 2)
    assert [row["step"] for row in rows] == [0, 1, 2, 3, 4]
    assert rows[4]["optim/lr"] == pytest.approx(given.learning_rate / 5)


def test_asked_to_the_next_groups_are_sampled_one_step_ahead(
    service: LocalService, tmp_path: Path
) -> None:
    ahead = train.AsyncConfig(max_steps_off_policy=1, groups_per_batch=4)
    rows = run(service, config(service, tmp_path, 3, async_config=ahead), Algorithm())
    assert [row["sampler/lag"] for row in rows] == [0, 1, 1]
    assert abs(rows[0]["optim/kl_sample_train_v1"]) < 1e-4
    assert all(abs(row["optim/kl_sample_train_v1"]) < 0.5 for row in rows)


def test_a_filter_that_leaves_nothing_changes_nothing(
    service: LocalService, tmp_path: Path
) -> None:
    """Verl 5228 raised here; an optimizer step of zeros would still follow its momentum."""
    rows = run(service, config(service, tmp_path, 2), Algorithm(filter="drop", min_spread=2.0))
    assert [row["optim/skipped"] for row in rows] == [1.0, 1.0]
    assert [(row["groups/drawn"], row["groups/trained"]) for row in rows] == [(4, 0)] * 2
    assert "optim/grad_norm" not in rows[0]


def test_a_kl_penalty_is_the_cookbooks(service: LocalService, tmp_path: Path) -> None:
    reference = train.KLReferenceConfig(base_model=service.model_name)
    penalised = config(service, tmp_path, 2, kl_penalty_coef=0.1, kl_reference_config=reference)
    rows = run(service, penalised, Algorithm("leave_one_out"))
    assert abs(rows[0]["kl_policy_base"]) < 1e-4
    assert abs(rows[1]["kl_policy_base"]) > 1e-5


def test_a_penalty_without_a_reference_is_refused(service: LocalService, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="needs kl_reference_config"):
        run(service, config(service, tmp_path, kl_penalty_coef=0.1), Algorithm("leave_one_out"))
