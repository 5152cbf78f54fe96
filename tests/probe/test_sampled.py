"""Samplers of another distribution than the trained one are found; right ones are not."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.sampled_replies import drawn
from tokengym.agents.cli import app
from tokengym.agents.probe.policy import load_model
from tokengym.agents.probe.rollouts import write_rollouts
from tokengym.agents.probe.sampled import TokenSample, judge_sample, temperature_of
from tokengym.agents.probe.verdict import VerdictKind
from tokengym.agents.toy_model import MODEL_DIR

PLACES, VOCABULARY = 1500, 60


def sampled(
    seed: int, power: float = 1.0, top_k: int = VOCABULARY, top_p: float = 1.0
) -> TokenSample:
    """Draw tokens of random distributions, raised to a power and cut."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(PLACES, VOCABULARY)) * 1.5
    logps = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    p = np.exp(power * (logps - logps.max(axis=1, keepdims=True)))
    order = np.argsort(-p, axis=1)
    p = np.take_along_axis(p / p.sum(axis=1, keepdims=True), order, axis=1)
    p[:, top_k:] = 0.0
    p[np.cumsum(p, axis=1) - p >= top_p] = 0.0
    places = rng.random((PLACES, 1)) * p.sum(axis=1, keepdims=True)
    ranks = (np.cumsum(p, axis=1) < places).sum(axis=1, keepdims=True)
    return TokenSample(logps, np.take_along_axis(order, ranks, axis=1)[:, 0])


@pytest.mark.nightly
def test_right_samplers_have_standard_normal_scores() -> None:
    samples = [sampled(seed) for seed in range(30)]
    assert {judge_sample(one).kind for one in samples} == {VerdictKind.FOLLOWS}
    scores = np.array([temperature_of(one)[0] for one in samples])
    assert abs(scores.mean()) < 4 / np.sqrt(30)
    assert 0.6 < scores.std() < 1.5


def test_one_unlikely_token_among_few_is_no_alarm() -> None:
    logps = np.log(np.array([[0.999, 0.001]] * 20))
    sample = TokenSample(logps, np.array([0] * 19 + [1]))
    assert temperature_of(sample)[0] < -5
    assert judge_sample(sample).kind is VerdictKind.FOLLOWS


@pytest.mark.parametrize("temperature", [0.7, 1.4])
def test_another_temperature_is_estimated(temperature: float) -> None:
    verdict = judge_sample(sampled(1, power=1 / temperature))
    assert (verdict.kind, verdict.name) == (VerdictKind.WRONG, "temperature")
    assert verdict.off == pytest.approx(abs(1 - temperature), abs=0.1)


@pytest.mark.parametrize(
    ("cut", "named"),
    [({"top_k": 20}, "the 20 likeliest (top_k)"), ({"top_p": 0.9}, "the likeliest 0.9 (top_p)")],
)
def test_truncation_is_named(cut: dict[str, Any], named: str) -> None:
    verdict = judge_sample(sampled(2, **cut))
    assert (verdict.kind, verdict.name) == (VerdictKind.WRONG, "truncated")
    assert named in verdict.sentence


def test_greedy_replies_are_of_temperature_zero() -> None:
    assert judge_sample(sampled(3, power=1e3)).name == "temperature"
    z, temperature = temperature_of(sampled(3, power=1e3))
    assert z > 10
    assert temperature < 0.01


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
def test_the_command_judges_rollouts_of_any_trainer(tmp_path: Path) -> None:
    model, file = load_model(MODEL_DIR).float(), tmp_path / "r.jsonl"
    command = ["probe", "sent", str(file), "--model", str(MODEL_DIR)]
    write_rollouts(file, drawn(model, 0))
    ended = CliRunner().invoke(app, command)
    assert (ended.exit_code, ended.output[:7]) == (0, "follows")
    write_rollouts(file, drawn(model, 0, temperature=0.6))
    ended = CliRunner().invoke(app, command)
    assert (ended.exit_code, ended.output[:31]) == (1, "wrong: sampled at temperature 0")
