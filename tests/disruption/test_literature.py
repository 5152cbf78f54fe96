"""Laws of the synthetic literature: balanced labels, and posteriors that are the truth."""

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.contract.planners.disruption import Predictor
from tokengym.envs.disruption.evidence import LEVELS, Evidence
from tokengym.envs.disruption.generator import CitationDraw, draw_evidence, draw_outcome, draw_paper
from tokengym.envs.disruption.judge import LITERATURE
from tokengym.envs.disruption.labels import LABELS, LEAST_CITERS, Target
from tokengym.envs.disruption.literature import VARIED, label_rates, posterior
from tokengym.envs.disruption.oracle import true_claims
from tokengym.envs.disruption.world import DisruptionWorld
from tokengym.envs.registry import make_world

TIERS = ("L0", "L2")
TARGETS: tuple[Target, ...] = ("disruption", "novelty")


def drawn(rng: np.random.Generator, tier: str, jointly: bool) -> tuple[Evidence, CitationDraw]:
    """A paper and what came of it: drawn together by its hidden classes, or given what is shown."""
    if not jointly:
        evidence = draw_evidence(rng, tier)
        return evidence, draw_outcome(rng, evidence)
    if tier != "examples":
        return draw_paper(rng, tier, {})
    names = [name for names in VARIED.values() for name in names]
    orders = {name: rng.permutation(3).tolist() for name in names}
    (evidence, outcome), *others = (draw_paper(rng, tier, orders) for _ in range(13))
    examples = [
        {"abstract": paper.abstract, "facts": paper.facts, "labels": known.labels()}
        for paper, known in others
    ]
    return evidence._replace(examples=examples), outcome


@cache
def sample(tier: str, count: int, jointly: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Posteriors, shape (count, target, 3), and drawn labels, shape (count, target)."""
    rng = np.random.default_rng(0)
    posteriors, labels = [], []
    for _ in range(count):
        evidence, came_of_it = drawn(rng, tier, jointly)
        outcome = came_of_it.labels()
        posteriors.append([posterior(evidence, target) for target in TARGETS])
        labels.append([LABELS[target].index(outcome[target]) for target in TARGETS])
    return np.array(posteriors), np.array(labels)


@pytest.mark.nightly
@pytest.mark.parametrize("jointly", [True, False])
@pytest.mark.parametrize("tier", LEVELS)
def test_labels_are_balanced_and_the_posterior_is_calibrated(tier: str, jointly: bool) -> None:
    posteriors, labels = sample(tier, 800 if tier == "examples" else 2000, jointly)
    for k, _target in enumerate(TARGETS):
        drawn = np.eye(3)[labels[:, k]]
        stated = posteriors[:, k]
        assert np.abs(drawn.mean(axis=0) - 1 / 3).max() < 0.05
        assert np.abs(stated.mean(axis=0) - 1 / 3).max() < 0.03
        for low in np.arange(0.0, 1.0, 0.2):
            inside = (stated >= low) & (stated < low + 0.2)
            if inside.sum() < 100:
                continue
            error = np.sqrt((stated * (1 - stated))[inside].sum()) / inside.sum()
            assert abs(drawn[inside].mean() - stated[inside].mean()) < 4 * error


def test_label_rates_of_novelty_are_what_drawing_gives() -> None:
    """Those of disruption are computed again in `test_inference`."""
    rates, rng = label_rates("novelty"), np.random.default_rng(0)
    assert np.all((rates >= 0) & (rates <= 1))
    assert np.all(rates.sum(axis=1) <= 1 + 1e-9)
    tenth = rng.normal(-1.5, 1.0, 200_000)
    median = tenth + rng.exponential(1.5, 200_000)
    assert rates[0][0] == pytest.approx(np.mean((tenth < 0) & (median <= 1.0)), abs=0.005)


@given(seed=st.integers(0, 2**32), level=st.sampled_from(LEVELS))
def test_citations_follow_the_first_year_ranked_among_all(seed: int, level: str) -> None:
    """Of which each has Poisson(4), of whichever class."""
    evidence = draw_evidence(np.random.default_rng(seed), level)
    if level != "L2":
        assert evidence.citations == {}
        return
    count = evidence.facts["n_i"] + evidence.facts["n_j"]
    fewer = float(stats.poisson.cdf(count - 1, 4.0))
    assert evidence.citations == {"count": count, "above": min(99, math.floor(100 * fewer))}


def test_citations_change_no_belief_and_no_outcome() -> None:
    for seed in range(40):
        evidence = draw_evidence(np.random.default_rng(seed), "L2")
        untold = evidence._replace(citations={})
        for target in TARGETS:
            assert posterior(evidence, target) == posterior(untold, target)
        assert true_claims(evidence, LITERATURE) == true_claims(untold, LITERATURE)
        drawn = [draw_outcome(np.random.default_rng(seed), one) for one in (evidence, untold)]
        assert drawn[0] == drawn[1]


@given(seed=st.integers(0, 2**32))
def test_outcomes_continue_the_first_year(seed: int) -> None:
    rng = np.random.default_rng(seed)
    evidence = draw_evidence(rng, "L2")
    outcome = draw_outcome(rng, evidence)
    for name, later in zip(("n_i", "n_j", "n_k"), ("m_i", "m_j", "m_k"), strict=True):
        assert getattr(outcome, name) >= evidence.facts[name] + evidence.private[later]
    assert outcome.n_i + outcome.n_j >= LEAST_CITERS
    assert outcome.conventionality_score >= outcome.novelty_score


@pytest.mark.parametrize("target", TARGETS)
def test_classes_are_equally_likely_before_anything_is_seen(target: Target) -> None:
    rng = np.random.default_rng(0)
    evidence = draw_evidence(rng, "L0")._replace(title="", abstract="")
    np.testing.assert_allclose(posterior(evidence, target), 1 / 3)


@pytest.mark.nightly
@pytest.mark.parametrize("level", LEVELS)
def test_a_planner_that_reads_the_prompt_believes_the_same(level: str) -> None:
    world = DisruptionWorld.cast(make_world("disruption", level))
    for index in range(3 if level == "examples" else 20):
        task, planner = world.task("train", index), Predictor()
        planner.reply(world.start(task).text)
        assert planner.own() == pytest.approx(world.compile(task).own[0], abs=1e-6)
