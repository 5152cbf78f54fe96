"""The algorithm in one file trains, and what it trains on is what was sampled."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from tokengym.agents.service import LocalService

# Calls that the SDK deprecates.
pytestmark = pytest.mark.filterwarnings("ignore")

SCRIPT = Path(__file__).parents[2] / "examples" / "grpo.py"


def test_it_is_short_and_hides_nothing_of_the_algorithm() -> None:
    lines = SCRIPT.read_text().splitlines()
    assert len(lines) <= 150
    ours = [line for line in lines if line.startswith(("import tokengym", "from tokengym"))]
    allowed = ("from tokengym.envs", "from tokengym.agents.tinker.codec")
    assert all(line.startswith(allowed) for line in ours)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("env", "level", "turns"), [("energy", "small", 12), ("forecast", "update", 2)]
)
def test_it_trains_on_what_it_sampled(
    env: str,
    level: str,
    turns: int,
    starting_service: LocalService,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TINKER_BASE_URL", starting_service.base_url)
    monkeypatch.setenv("TINKER_API_KEY", starting_service.api_key)
    few = ["--steps", "2", "--groups", "2", "--group-size", "3", "--evaluation-tasks", "3"]
    monkeypatch.setattr(sys, "argv", ["grpo.py", "--env", env, "--level", level, *few])
    names = runpy.run_path(str(SCRIPT))
    shown = capsys.readouterr().out
    assert shown.splitlines()[0].startswith("before: mean return 0.")
    gradients = [float(text) for text in re.findall(r"gradient (\S+)", shown)]
    assert len(gradients) == 2
    assert all(np.isfinite(gradients))
    assert max(gradients) > 0
    # By now the weights have moved; those that sample are those that are trained.
    sampler = names["policy"].save_weights_and_get_sampling_client()
    ((episode,), (earned,)) = names["play"](sampler, [names["world"].task("train", 99)], seed=0)
    assert len(episode) == turns
    assert 0.0 <= earned <= 1.0
    data = list(names["datums"](episode, 0.5))
    assert len(data) == 1
    written = sum(len(sampled) for _, sampled, _ in episode)
    (advantages, sampled) = (
        data[0].loss_fn_inputs[name].to_numpy() for name in ("advantages", "logprobs")
    )
    assert sorted(set(advantages.tolist())) == [0.0, 0.5]
    assert (advantages != 0).sum() == written
    result = names["policy"].forward(data, "importance_sampling").result()
    trained = result.loss_fn_outputs[0]["logprobs"].to_numpy()
    marked = advantages != 0
    np.testing.assert_allclose(trained[marked], sampled[marked], atol=2e-3)
