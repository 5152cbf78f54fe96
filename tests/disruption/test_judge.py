"""Laws of the judges: Bayesians over claims, moved by what is true and by nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.envs.disruption.claims import Claim, Fact, Quote, Unreadable
from tokengym.envs.disruption.evidence import Evidence
from tokengym.envs.disruption.generator import draw_evidence
from tokengym.envs.disruption.judge import LITERATURE
from tokengym.envs.disruption.labels import Target
from tokengym.envs.disruption.literature import FEATURE_TABLE, posterior
from tokengym.envs.disruption.oracle import best_claims, true_claims
from tokengym.rewards.debate import half_brier

TARGETS: tuple[Target, ...] = ("disruption", "novelty")
papers = st.integers(0, 2**32).map(lambda seed: draw_evidence(np.random.default_rng(seed), "L2"))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("claims", [(), (Quote("paper"),), (Fact("n_i", ">=", 0.0),)])
def test_without_information_all_labels_are_alike(
    target: Target, claims: tuple[Claim, ...]
) -> None:
    assert LITERATURE.believe(claims, target) == pytest.approx((1 / 3, 1 / 3, 1 / 3), abs=1e-6)


def test_a_likelihood_is_the_probability_of_the_claim() -> None:
    rng = np.random.default_rng(0)
    drawn = 1 + rng.binomial(9, [0.65, 0.3, 0.5], (100_000, 3))
    claimed = LITERATURE.likelihood(Fact("venues", "<=", 4.0), "novelty")
    assert claimed == pytest.approx((drawn <= 4).mean(axis=0), abs=0.01)


@given(value=st.integers(-5, 10**6), op=st.sampled_from([">=", "<=", "=", ">", "<"]))
def test_no_claim_however_extreme_silences_the_judge(value: int, op: str) -> None:
    for name in FEATURE_TABLE:
        told = LITERATURE.believe((Fact(name, op, float(value)),), FEATURE_TABLE[name].target)
        assert sum(told) == pytest.approx(1)
        assert min(told) > 0


@given(evidence=papers)
def test_all_offered_claims_are_true(evidence: Evidence) -> None:
    assert all(claim.holds(evidence) for claim in true_claims(evidence, LITERATURE))


def test_false_repeated_and_unreadable_claims_do_not_count() -> None:
    evidence = draw_evidence(np.random.default_rng(1), "L2")
    n_i = evidence.facts["n_i"]
    true, again = Fact("n_i", "=", float(n_i)), Fact("n_i", ">=", float(n_i))
    false = Fact("n_j", ">", float(evidence.facts["n_j"]))
    hearing = LITERATURE.verify((true, false, again, Unreadable("x")), evidence)
    assert hearing.claims == (true,)
    assert hearing.false == 2
    assert LITERATURE.verify((), evidence) == ((), 0)


def test_a_claim_about_known_evidence_does_not_count_twice() -> None:
    first, again = Quote("we refine a view"), Quote("we refine")
    evidence = draw_evidence(np.random.default_rng(1), "L0")._replace(abstract="We refine a view.")
    assert LITERATURE.verify((first, again), evidence).claims == (first,)
    told = Fact("n_i", ">=", 2.0)
    assert LITERATURE.verify((told,), evidence) == ((), 1)
    assert LITERATURE.verify((told,), evidence, granted=(told,)) == ((told,), 0)


def test_a_quote_of_two_cues_is_the_product_of_both() -> None:
    both = Quote("we refine what others can start from here")
    parts = [
        LITERATURE.likelihood(Quote(q), "disruption")
        for q in ("we refine", "others can start from here")
    ]
    assert LITERATURE.likelihood(both, "disruption") == pytest.approx(np.prod(parts, axis=0))
    assert LITERATURE.subjects(both) == {"aim", "use"}


@given(evidence=papers, other=papers)
def test_claims_chosen_for_the_posterior_are_best(evidence: Evidence, other: Evidence) -> None:
    belief = posterior(evidence, "disruption")
    honest = best_claims(evidence, ("disruption",), (belief,), LITERATURE)
    spin = best_claims(evidence, ("disruption",), (posterior(other, "disruption"),), LITERATURE)
    bound = half_brier(belief, belief)
    assert 1 <= len(honest.claims) <= 3
    assert LITERATURE.verify(honest.claims, evidence) == (honest.claims, 0)
    assert honest.loss == pytest.approx(
        half_brier(LITERATURE.believe(honest.claims, "disruption"), belief), abs=1e-9
    )
    assert honest.loss >= bound - 1e-9
    assert half_brier(LITERATURE.believe(spin.claims, "disruption"), belief) >= honest.loss - 0.02


def test_chosen_claims_come_near_the_bound_on_average() -> None:
    rng = np.random.default_rng(3)
    gaps = []
    for _ in range(150):
        evidence = draw_evidence(rng, "L2")
        belief = posterior(evidence, "disruption")
        gaps.append(
            best_claims(evidence, ("disruption",), (belief,), LITERATURE).loss
            - half_brier(belief, belief)
        )
    assert 0 <= np.mean(gaps) < 0.004


def test_with_nothing_to_claim_nothing_is_claimed() -> None:
    empty = Evidence("Untitled", "", 2000, "Physics", {})
    assert best_claims(empty, ("disruption",), ((0.2, 0.3, 0.5),), LITERATURE).claims == ()
