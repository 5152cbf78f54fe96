"""Our own loop and the cookbook's make the same updates of the same data; ours does the rest."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tinker
from tinker_cookbook.completers import TinkerTokenCompleter
from tinker_cookbook.rl import train
from tinker_cookbook.rl.rollouts import do_group_rollout
from tinker_cookbook.rl.types import TrajectoryGroup
from tinker_cookbook.tokenizer_utils import get_tokenizer
from tinker_cookbook.utils.lr_scheduling import LRSchedule

from tests.service.toy import DigitDataset, DigitDatasetBuilder
from tokengym.agents.service import guard
from tokengym.agents.training.batches.collect import RolloutCollector
from tokengym.agents.training.batches.credit import advantages
from tokengym.agents.training.batches.datums import drift, rollout_data, turn_table
from tokengym.agents.training.config import Algorithm
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.loop import BatchLoss, submit
from tokengym.agents.training.loop import train as train_own
from tokengym.envs.core.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

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


@dataclass
class Batch:
    """Rollouts that both loops are given."""

    builders: Sequence[Any]
    groups: list[TrajectoryGroup]


async def sampled(service: LocalService, client: tinker.TrainingClient) -> Batch:
    builders = DigitDataset(service.model_name, 1, 3, 3).get_batch(0)
    sampler = await client.save_weights_and_get_sampling_client()
    policy = TinkerTokenCompleter(sampler, max_tokens=8)
    groups = await asyncio.gather(*(do_group_rollout(one, policy) for one in builders))
    # What a policy of noise says may earn nothing at all, and would then teach nothing.
    paid = [replace(group, final_rewards_G=[0.0, 0.5, 1.0]) for group in groups]
    return Batch(builders, paid)


async def logprobs(client: tinker.TrainingClient, batch: Batch) -> Any:
    """What the policy now thinks of the tokens that were sampled."""
    table = turn_table(batch.groups)
    data = [
        datum
        for group in batch.groups
        for one in group.trajectories_G
        for datum in rollout_data(one, [0.0])
    ]
    assert len(data) == table.counted_NG().sum()
    for datum in data:
        del datum.loss_fn_inputs["mask"]
    output = await client.forward(data, loss_fn="importance_sampling")
    return np.concatenate([row["logprobs"].to_numpy() for row in output.loss_fn_outputs])


@pytest.mark.parametrize(
    "extra",
    [{}, {"num_substeps": 2}, {"loss_fn": "ppo", "loss_fn_config": {"clip_low_threshold": 0.9}}],
    ids=["one step", "substeps", "ppo"],
)
def test_both_loops_make_the_same_updates_of_the_same_data(
    service: LocalService, client: Any, tmp_path: Path, extra: dict[str, Any]
) -> None:
    given = config(service, tmp_path, **extra)

    async def compare() -> None:
        theirs, ours = [
            await client.create_lora_training_client(service.model_name, rank=8, seed=7)
            for _ in range(2)
        ]
        batch = await sampled(service, theirs)
        start = await logprobs(ours, batch)
        tokenizer = get_tokenizer(service.model_name)
        told: dict[str, Any] = {}
        mine: dict[str, float] = {}
        for _ in range(3):
            data, *_ = await train.prepare_minibatch(
                batch.builders, batch.groups, tokenizer, None, 0.0, 0.0
            )
            await train.train_step(
                data,
                theirs,
                given.learning_rate,
                given.num_substeps,
                given.loss_fn,
                given.loss_fn_config,
                told,
            )
            credited = advantages(Algorithm(), turn_table(batch.groups))
            data = [
                datum
                for group, group_advantages in zip(batch.groups, credited, strict=True)
                for one, turn_advantages in zip(
                    group.trajectories_G, group_advantages.tolist(), strict=True
                )
                for datum in rollout_data(one, turn_advantages)
            ]
            loss = BatchLoss(given.loss_fn, drift, given.loss_fn_config)
            update = submit(ours, data, loss, given.learning_rate, given.num_substeps)
            mine = await update.metrics()
        after = [await logprobs(client, batch) for client in (theirs, ours)]
        assert np.abs(after[0] - start).max() > 0.01
        assert after[1] == pytest.approx(after[0], abs=1e-4)
        assert mine["optim/grad_norm"] == pytest.approx(told["optim/grad_norm"], rel=1e-4)

    asyncio.run(compare())


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
    rates = [row["optim/lr"] for row in run(service, given, Algorithm(), "linear")]
    assert rates == pytest.approx([given.learning_rate * left / 4 for left in (4, 3, 2, 1)])
    rows = run(service, config(service, tmp_path, 5), Algorithm(), "linear")
    assert [row["step"] for row in rows] == [0, 1, 2, 3, 4]
    assert rows[4]["optim/lr"] == pytest.approx(given.learning_rate / 5)


def test_the_rate_rises_to_its_schedule(service: LocalService, tmp_path: Path) -> None:
    given = config(service, tmp_path, 4)
    rows = run(service, given, Algorithm(), "linear", 2)
    shares = [1 / 2, 3 / 4, 2 / 4, 1 / 4]
    assert [row["optim/lr"] for row in rows] == pytest.approx(
        [given.learning_rate * share for share in shares]
    )


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
