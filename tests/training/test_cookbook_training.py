"""`tinker_cookbook.rl.train.main` trains by the page's lines; our loop makes the same updates."""

import asyncio
import json
import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import chz
import numpy as np
import pytest
import tinker
from tinker_cookbook.rl import train
from tinker_cookbook.rl.types import TrajectoryGroup

from tokengym.agents.training.batches.credit import advantages
from tokengym.agents.training.batches.datums import drift, rollout_data, turn_table
from tokengym.agents.training.config import Algorithm
from tokengym.agents.training.loop import BatchLoss, submit, without_mask

pytestmark = pytest.mark.filterwarnings("ignore")

STEPS, GROUPS = 2, 4
RATE = 2e-3
PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "tinker.md"
_LOSS_OF_ASYNC = "loss_fn" in chz.chz_fields(train.AsyncConfig)  # from 0.6 of the cookbook on
MODES: dict[str, dict[str, Any]] = {
    "sync": {},
    "substeps": {"num_substeps": 2, "loss_fn": "ppo"},
    "streaming": {
        "stream_minibatch_config": train.StreamMinibatchConfig(
            groups_per_batch=GROUPS, num_minibatches=2
        )
    },
    "async": {
        "async_config": train.AsyncConfig(
            max_steps_off_policy=2,
            groups_per_batch=GROUPS,
            **({"loss_fn": "importance_sampling"} if _LOSS_OF_ASYNC else {}),
        )
    },
}


def page_config() -> train.Config:
    """Return the configuration that the page's lines make."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (lines,) = [block for block in blocks if "train.Config(" in block]
    names: dict[str, Any] = {}
    exec(lines, names)
    config = names["config"]
    assert isinstance(config, train.Config)
    return config


def our_data(groups: Sequence[TrajectoryGroup]) -> list[tinker.Datum]:
    """Return what our loop makes of rollouts, with the advantages of its usual estimator."""
    credited = advantages(Algorithm(), turn_table(groups))
    return [
        datum
        for group, group_advantages in zip(groups, credited, strict=True)
        for rollout, turn_advantages in zip(
            group.trajectories_G, group_advantages.tolist(), strict=True
        )
        for datum in rollout_data(rollout, turn_advantages)
    ]


async def logprobs(client: tinker.TrainingClient, data: Sequence[tinker.Datum]) -> Any:
    """Return what a policy thinks of the tokens that were sampled."""
    output = await client.forward(without_mask(data), loss_fn="importance_sampling")
    return np.concatenate([row["logprobs"].to_numpy() for row in output.loss_fn_outputs])


@pytest.mark.nightly
@pytest.mark.parametrize("mode", MODES)
def test_the_cookbooks_loop_makes_our_updates(
    mode: str, tmp_path: Path, served: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, base_url = served["model"], served["base_url"]
    written, extra = page_config(), MODES[mode]
    dataset = chz.replace(
        written.dataset_builder,
        options={"prompt": "terse"},  # what the small policy knows
        model_name_for_tokenizer=model,
        n_batches=STEPS,
        groups_per_batch=GROUPS,
        group_size=4,
    )
    parts: list[list[TrajectoryGroup]] = []
    prepare = train.prepare_minibatch

    async def note(builders: Any, groups: Any, *rest: Any, **named: Any) -> Any:
        """Keep the rollouts that the cookbook's loop trains on."""
        parts.append(list(groups))
        return await prepare(builders, groups, *rest, **named)

    monkeypatch.setattr(train, "prepare_minibatch", note)

    async def compare() -> None:
        service = tinker.ServiceClient(base_url=base_url)
        ours = await service.create_lora_training_client(model, rank=8, seed=7)
        start = (await ours.save_state("start")).path
        config = chz.replace(
            written,
            dataset_builder=dataset,
            model_name=model,
            base_url=base_url,
            load_checkpoint_path=start,
            lora_rank=8,
            learning_rate=RATE,
            max_tokens=12,
            log_path=str(tmp_path),
            eval_every=0,
            **extra,
        )
        await train.main(config)
        (last,) = (
            row
            for row in map(json.loads, (tmp_path / "checkpoints.jsonl").read_text().splitlines())
            if row["name"] == "final"
        )
        theirs = await service.create_training_client_from_state(last["state_path"])
        each = len(parts) // STEPS
        steps = [list(chain.from_iterable(parts[n * each : (n + 1) * each])) for n in range(STEPS)]
        assert [len(groups) for groups in steps] == [GROUPS] * STEPS
        sampled = our_data(list(chain.from_iterable(steps)))
        before = await logprobs(ours, sampled)
        loss = BatchLoss(config.loss_fn, drift, config.loss_fn_config)
        for groups in steps:
            update = submit(ours, our_data(groups), loss, RATE, config.num_substeps)
            await update.metrics()
        after = [await logprobs(client, sampled) for client in (theirs, ours)]
        assert np.abs(after[0] - before).max() > 0.01
        assert after[1] == pytest.approx(after[0], abs=1e-3)

    asyncio.run(compare())
