"""The gap of log-probabilities is what it says, and is found where there is one."""

import asyncio
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tinker
import torch
from transformers import AutoModelForCausalLM
from typer.testing import CliRunner

from tokengym.agents.cli import app
from tokengym.agents.probe.numerics import Gap, Measurement, ScoredReply, _sample, _score
from tokengym.agents.training.job import Job
from tokengym.agents.training.presets import preset

pytestmark = pytest.mark.filterwarnings("ignore")


def test_figures_are_those_computed_by_hand() -> None:
    first = ScoredReply([1, 2, 3], [4, 5], np.array([-1.0, -2.0]), np.array([-1.0, -1.9]))
    second = ScoredReply([1] * 6, [4, 5, 6], np.array([-1.0] * 3), np.array([-1.2, -1.0, -0.95]))
    found = Measurement.of("here", "m", 2, [first, second])
    assert asdict(found.all) == pytest.approx(
        {
            "tokens": 5,
            "mean": (0.1 - 0.2 + 0.05) / 5,
            "rms": (0.0525 / 5) ** 0.5,
            "largest": 0.2,
            # exp(0.1) is 1.105 and exp(-0.2) is 0.819.
            "outside": 0.4,
            "equal": 0.4,
        }
    )
    assert found.by_position["1-1"].mean == pytest.approx(-0.1)
    assert found.by_position["2-3"].tokens == 3
    assert {name: gap.tokens for name, gap in found.by_length.items()} == {"4-7": 2, "8-15": 3}
    # The products of the ratios are exp(0.1) and exp(-0.15).
    assert (found.replies, found.replies_outside) == (2, 1.0)


@pytest.mark.nightly
def test_log_probabilities_are_the_models_own(
    served: dict[str, Any],
) -> None:
    job = Job.resolve(preset("forecast", **served))
    model = AutoModelForCausalLM.from_pretrained(served["model"], dtype=torch.float32)

    async def scored() -> tuple[list[ScoredReply], list[ScoredReply]]:
        client = tinker.ServiceClient(base_url=served["base_url"])
        run = await client.create_lora_training_client(served["model"], rank=8, seed=1)
        prompt = [*job.codec.render([])[:1], *job.codec.write("half")]
        replies = await _score(run, await _sample(job, run, [prompt, prompt[:2]], 2, seed=1))
        inputs: Any = {"target_tokens": prompt[1:], "weights": [1.0] * (len(prompt) - 1)}
        read = tinker.ModelInput.from_ints(prompt[:-1])
        wanted = tinker.Datum(model_input=read, loss_fn_inputs=inputs)
        await run.forward_backward([wanted], "cross_entropy")
        await run.optim_step(tinker.AdamParams(learning_rate=5e-2))
        return replies, await _score(run, replies)

    fresh, stale = asyncio.run(scored())
    for reply in fresh:
        whole = torch.tensor([*reply.prompt, *reply.tokens])
        with torch.no_grad():
            table = model(whole[None]).logits[0].log_softmax(-1)
        at = torch.arange(len(reply.prompt) - 1, len(whole) - 1)
        expected = table[at, whole[at + 1]].numpy()
        np.testing.assert_allclose(reply.trained, expected, atol=2e-5)
        np.testing.assert_allclose(reply.sampled, expected, atol=2e-5)
    assert Gap.of(np.concatenate([reply.gaps for reply in stale])).outside > 0.5


@pytest.mark.nightly
def test_the_command_measures_a_server_beside_our_own(
    served: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "numerics.json"
    words = ["numerics", "--base-url", served["base_url"], "--model", served["model"]]
    words += ["--tasks", "2", "--samples", "2", "--steps", "1", "--rank", "8", "--json", str(file)]
    ended = CliRunner().invoke(app, words)
    assert ended.exit_code == 0, ended.output
    measured = json.loads(file.read_text())["measured"]
    kinds = [(item["service"], item["steps"]) for item in measured]
    url = served["base_url"]
    assert kinds == [(url, 0), (url, 1), ("local service", 0), ("local service", 1)]
    for item in measured:
        assert item["all"]["rms"] < 1e-5
        assert item["all"]["outside"] == 0
        assert sum(gap["tokens"] for gap in item["by_length"].values()) == item["all"]["tokens"]
    assert "root mean square" in ended.output
