"""Settings that are right raise no alarm, whatever the seed."""

import pytest

from tests.probe.plain_trainer import Settings
from tests.probe.probing import FEW, batch_of, probe, probe_steps
from tokengym.agents.probe.verdict import VerdictKind
from tokengym.agents.probe.worlds import designed_rollouts

pytestmark = pytest.mark.nightly

SEEDS = range(10)
FOLLOWS = {
    "plain": Settings(),
    "micro-batches": Settings(micro_batch=4),
    "gradients clipped": Settings(norm=0.01),
    "momentum": Settings(optimizer="momentum"),
    "AdamW": Settings(optimizer="adamw", rate=1e-3),
    "temperature": Settings(temperature=0.7),
}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_right_first_update_follows(seed: int) -> None:
    for name, settings in FOLLOWS.items():
        verdict = probe(settings, seed, few=True)
        assert verdict.kind is VerdictKind.FOLLOWS, f"{name}: {verdict}"
        assert verdict.off < 1e-3


@pytest.mark.parametrize("seed", SEEDS)
def test_groups_of_two_and_eight_follow(seed: int) -> None:
    for size in (2, 8):
        rollouts = designed_rollouts(seed, size, FEW[1:])
        verdicts = probe_steps(Settings(), rollouts, seed, rows=[None])
        assert {one.kind for one in verdicts} == {VerdictKind.FOLLOWS}, verdicts


@pytest.mark.parametrize("seed", SEEDS)
def test_a_small_learning_rate_cannot_be_judged(seed: int) -> None:
    verdict = probe(Settings(rate=1e-6), seed, few=True)
    assert verdict.kind is VerdictKind.UNKNOWN
    assert "raise the learning rate of this step at least" in str(verdict)


@pytest.mark.parametrize("seed", SEEDS)
def test_second_updates_of_a_batch_follow(seed: int) -> None:
    rollouts = batch_of(seed, few=True)
    for clip in (None, 0.2):
        verdicts = probe_steps(Settings(rate=0.1, clip=clip), rollouts, seed)
        assert {one.kind for one in verdicts} == {VerdictKind.FOLLOWS}, verdicts
