"""Faults planted in a trainer are found, and most of them named."""

from itertools import product

import numpy as np
import pytest

from tests.probe.plain_trainer import Settings
from tests.probe.probing import batch_of, first_table, places, probe, probe_steps, trained
from tokengym.agents.probe.batch import ProbeBatch
from tokengym.agents.probe.documented import DocumentedUpdate, Part
from tokengym.agents.probe.estimators import RARE, estimators, expected_cosine
from tokengym.agents.probe.fit import Fit
from tokengym.agents.probe.update import update
from tokengym.agents.probe.verdict import VerdictKind

BY_NAME = {
    "sign": "sign",
    "next reward": "next reward",
    "mask late": "mask late",
    "mask early": "mask early",
    "observations trained": "observations trained",
    "negatives dropped": "negatives dropped",
    "end untrained": "end untrained",
    "only the last turn": "only the last turn",
    "absolute advantages": "absolute advantages",
    "left padding": "left padding",
    "groups mixed over tasks": "groups mixed",
    "groups mixed over workers": "groups mixed",
    "clipped rewards": "clipped rewards",
    "entropy bonus": "an entropy bonus",
    "weight decay": "weight decay",
    "padding trained": "padding trained",
    "double normalisation": "double normalisation",
}
"""Faults of a first update, and the names they are found under."""


ALIKE = "all tokens of a rollout weigh the same: rewards, baselines or advantages are wrong"


def documented(seed: int, bias: str = "") -> DocumentedUpdate:
    """Return an update that is documented to be centred and summed."""
    rollouts = batch_of(seed)
    table = first_table(seed, False, 1.0, False)
    batch = ProbeBatch(rollouts, table, table.logprob_K)
    due_K = next(estimators(batch, batch.rewards_N, batch.groups_N)).advantages_K * batch.own_K
    nothing_P = np.zeros(len(table.layer_P))
    parts = [Part("centred", "scale"), Part("summed", "loss", bias)]
    return DocumentedUpdate(parts, due_K, 0 * due_K, nothing_P)


@pytest.mark.nightly
@pytest.mark.parametrize("fault", BY_NAME)
def test_a_planted_fault_is_wrong_under_its_name(fault: str) -> None:
    verdict = probe(Settings(fault=fault))
    assert (verdict.kind, verdict.name) == (VerdictKind.WRONG, BY_NAME[fault])
    assert verdict.off > 0.005


@pytest.mark.nightly
def test_a_temperature_that_the_gradient_forgets_is_found() -> None:
    settings = Settings(temperature=0.7, fault="temperature")
    verdict = probe(settings)
    assert (verdict.kind, verdict.name) == (VerdictKind.WRONG, "temperature")


def test_a_setting_that_is_ignored_is_found() -> None:
    said = [documented(0)]
    verdict = probe(Settings(), said=said)
    assert (verdict.kind, verdict.biases) == (VerdictKind.FOLLOWS, ())
    assert verdict.sentence.startswith("centred, summed, as scale and loss document")
    verdict = probe(Settings(fault="ignored setting"), said=said)
    assert (verdict.kind, verdict.name) == (VerdictKind.WRONG, "ignored setting")
    assert "centred, summed is documented, trained is standardised by group" in verdict.sentence


def test_documented_biases_are_choices_that_can_be_accepted() -> None:
    verdict = probe(Settings(), said=[documented(0, "length")])
    assert (verdict.kind, verdict.biases) == (VerdictKind.CHOICE, ("length",))
    assert str(verdict).startswith("biased by choice: length: centred, summed, as loss documents")


@pytest.mark.nightly
def test_layers_that_did_not_move_are_named() -> None:
    rollouts = batch_of(0, few=True)
    (verdict,) = probe_steps(Settings(fault="frozen"), rollouts, rows=[None])
    assert (verdict.kind, verdict.name) == (VerdictKind.WRONG, "frozen layers")
    assert verdict.sentence.startswith("11 of 24 parameters did not move, model.layers.0.self_attn")
    assert "the others: follows: centred by group" in str(verdict)
    (verdict,) = probe_steps(Settings(fault="frozen late mask"), rollouts, rows=[None])
    assert (verdict.kind, verdict.name) == (VerdictKind.WRONG, "mask late")
    assert "11 of 24 parameters did not move" in str(verdict)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("fault", "name", "said"),
    [
        ("half batch", "rollouts left out", "only one micro-batch of two counts: the second half"),
        (
            "every third rollout",
            "rollouts left out",
            "15 of 48 rollouts, numbers 3, 6, 18, 21, 24, 27, ...: each of them is not",
        ),
        ("first token", "first token", "the first token of a reply is not trained"),
        ("end twice", "token weights", "the end token counts 2 times"),
        # Which estimator is the nearest is a near tie, and with it the rollouts that are named.
        ("clipped advantages", "", ALIKE),
        ("shuffled", "", ALIKE),
        ("discounted", "", "tokens of a rollout weigh differently"),
    ],
)
def test_differences_are_described_in_a_trainer_s_terms(fault: str, name: str, said: str) -> None:
    verdict = probe(Settings(fault=fault))
    assert (verdict.kind, verdict.name) == (VerdictKind.WRONG, name), verdict
    assert said in str(verdict)


@pytest.mark.nightly
def test_averages_by_micro_batch_are_a_choice() -> None:
    verdict = probe(Settings(weighting="micro mean", micro_batch=8))
    assert (verdict.kind, verdict.biases) == (VerdictKind.CHOICE, ("micro-batches",))
    assert "token mean of micro-batches of 8" in verdict.sentence


@pytest.mark.nightly
def test_a_second_update_without_the_ratio_is_found() -> None:
    first, second = probe_steps(
        Settings(rate=0.3, fault="stale without ratio"), batch_of(0, few=True)
    )
    assert first.kind is VerdictKind.FOLLOWS
    assert (second.kind, second.name) == (VerdictKind.WRONG, "stale without ratio")


def test_choices_are_named_with_their_constants() -> None:
    for settings, name in (
        (Settings(estimator="standardised"), "standardised by group (ddof 1, eps 0.0001)"),
        (
            Settings(estimator="standardised", epsilon=1e-6),
            "standardised by group (ddof 1, eps 1e-06)",
        ),
        (Settings(weighting="own mean"), "centred by group, mean over its tokens"),
    ):
        verdict = probe(settings)
        assert verdict.kind is VerdictKind.CHOICE
        assert verdict.name.startswith(name)
        assert ("expected cosine 0.56" in str(verdict)) is name.startswith("standardised")


def test_what_standardising_costs_where_a_great_reply_is_rare() -> None:
    # With all of the deviation drowned it is centring, which is unbiased.
    assert expected_cosine(4, 1, 1e9) == pytest.approx(1.0)
    exact = np.zeros(3)
    for replies in product(range(3), repeat=4):
        paid = np.array(RARE[1])[list(replies)]
        if paid.std() > 0:
            of_reply = (paid - paid.mean()) / paid.std(ddof=1)
            chance = np.prod(np.array(RARE[0])[list(replies)])
            exact += chance * np.bincount(replies, of_reply, 3)
    true = np.array(RARE[0]) * (np.array(RARE[1]) - np.dot(*RARE))
    cosine = exact @ true / np.linalg.norm(exact) / np.linalg.norm(true)
    assert expected_cosine(4, 1, 0.0) == pytest.approx(cosine)


def test_the_weights_are_those_that_were_given() -> None:
    # Of twins only the sum is known.
    rollouts = batch_of(0)
    before, after = trained(Settings(), rollouts, 0)
    batch = ProbeBatch(rollouts, table := first_table(0, False, 1.0, False), table.logprob_K)
    step = update(before, after, places())
    weights_K = Fit(table, step.change_P).weights_K() * step.size * len(rollouts)
    rewards = np.array([one.reward for one in rollouts]).reshape(-1, 4)
    due_K = (rewards - rewards.mean(1, keepdims=True)).ravel()[table.rollout_K] * batch.own_K
    single_K = table.rollout_K < len(rollouts) - 4
    np.testing.assert_allclose(weights_K[single_K], due_K[single_K], atol=1e-3)
