"""The gap of log-probabilities is what it says."""

import asyncio
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
import tinker
import torch
from transformers import AutoModelForCausalLM

from tokengym.agents.conform.gaps import Gap, ScoredReply, scored_replies, tokens_of_any_model
from tokengym.agents.training.batches.datums import laid_out

pytestmark = pytest.mark.filterwarnings("ignore")


def test_figures_are_those_computed_by_hand() -> None:
    first = ScoredReply([1, 2, 3], [4, 5], np.array([-1.0, -2.0]), np.array([-1.0, -1.9]))
    second = ScoredReply([1] * 6, [4, 5, 6], np.array([-1.0] * 3), np.array([-1.2, -1.0, -0.95]))
    assert asdict(Gap.of([first, second])) == pytest.approx(
        {
            "tokens": 5,
            "mean": (0.1 - 0.2 + 0.05) / 5,
            "rms": (0.0525 / 5) ** 0.5,
            "largest": 0.2,
            # exp(0.1) is 1.105 and exp(-0.2) is 0.819.
            "outside": 0.4,
        }
    )


@pytest.mark.nightly
def test_log_probabilities_are_the_models_own(served: dict[str, Any]) -> None:
    model = AutoModelForCausalLM.from_pretrained(served["model"], dtype=torch.float32)

    async def scored() -> tuple[list[ScoredReply], list[ScoredReply]]:
        client = tinker.ServiceClient(base_url=served["base_url"])
        run = await client.create_lora_training_client(served["model"], rank=8, seed=1)
        sampler = await run.save_weights_and_get_sampling_client()
        fresh = await scored_replies(run, sampler)
        wanted = laid_out(tokens_of_any_model(16), weights=np.ones(16))
        await run.forward_backward([wanted], "cross_entropy")
        await run.optim_step(tinker.AdamParams(learning_rate=5e-2))
        return fresh, await scored_replies(run, sampler)

    fresh, stale = asyncio.run(scored())
    for reply in fresh:
        whole = torch.tensor([*reply.prompt, *reply.tokens])
        with torch.no_grad():
            table = model(whole[None]).logits[0].log_softmax(-1)
        at = torch.arange(len(reply.prompt) - 1, len(whole) - 1)
        expected = table[at, whole[at + 1]].numpy()
        np.testing.assert_allclose(reply.trained, expected, atol=4e-5)
        np.testing.assert_allclose(reply.sampled, expected, atol=4e-5)
    assert Gap.of(fresh).rms < 1e-5
    assert Gap.of(stale).outside > 0.5
