"""Laws of the study of estimators: closed forms, and a page that shows its data."""

import json
import math

import numpy as np
import pytest

from benchmarks.estimators.__main__ import BLOCK, TABLES, claim_table, study_table
from benchmarks.estimators.claims import (
    CLAIMS,
    constraints,
    difficulty,
    length_bias,
    noisy_labels,
    random_rewards,
    spike,
    turn_level,
    turn_replies,
)
from benchmarks.estimators.exact import Moments, Replies, batches, groups, moments, softmax_replies
from benchmarks.estimators.policy import SmallPolicy
from benchmarks.estimators.schemes import BY_BATCH, BY_GROUP, LOSSES_OFF_POLICY, TURNS, Scheme
from benchmarks.estimators.study import GRADED, RARE, binary, enumerated, turns
from benchmarks.pages import read_block
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "estimators.md"
SIZES = (4, 8, 16)


def found(scheme: Scheme, size: int, *prompts: Replies) -> Moments:
    of = batches(prompts, size)
    assert of.exact
    return moments(of, scheme(of))


@pytest.mark.parametrize("size", SIZES)
def test_groups_are_all_there_are(size: int) -> None:
    chance_K = np.array([0.7, 0.25, 0.05])
    members_NG, chance_N = groups(chance_K, size)
    assert len(members_NG) == math.comb(size + 2, size)
    assert chance_N.sum() == pytest.approx(1.0, abs=1e-12)
    share_K = [(chance_N @ (members_NG == k).mean(axis=1)) for k in range(3)]
    assert share_K == pytest.approx(chance_K, abs=1e-12)


@pytest.mark.parametrize("replies", [GRADED, RARE, *binary(2, 0.3)])
def test_the_exact_gradient_is_the_slope_of_the_expected_return(replies: Replies) -> None:
    logits_K, step = np.log(replies.chance_K), 1e-5

    def expected(logits_K: np.ndarray) -> float:
        chance_K = np.exp(logits_K) / np.exp(logits_K).sum()
        return float(chance_K @ replies.rewards_KT[:, 0])

    slopes = [
        (expected(logits_K + step * unit) - expected(logits_K - step * unit)) / (2 * step)
        for unit in np.eye(len(logits_K))
    ]
    assert replies.gradient_D == pytest.approx(slopes, abs=1e-9)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("replies", [GRADED, RARE, *binary(2, 0.3)])
def test_centring_shrinks_the_gradient_unlike_leaving_one_out(replies: Replies, size: int) -> None:
    for name, factor in (
        ("centred by group", (size - 1) / size),
        ("leave one out", 1.0),
        ("ReMax", 1.0),
    ):
        one = found(BY_GROUP[name], size, replies)
        assert one.factor == pytest.approx(factor, abs=1e-9)
        assert one.cosine == pytest.approx(1.0, abs=1e-9)


def test_standardising_turns_rare_but_not_binary_rewards() -> None:
    two = found(BY_GROUP["standardised by group"], 4, softmax_replies((0.9, 0.1), (0, 1)))
    assert two.cosine == pytest.approx(1.0, abs=1e-12)
    assert two.factor == pytest.approx(1.46, abs=0.005)
    assert found(BY_GROUP["standardised by group"], 4, RARE).cosine == pytest.approx(0.56, abs=5e-3)


def test_the_variance_of_a_pair_is_their_differences() -> None:
    # G = 2, right in one half: the advantages are ±1 where the two differ, which is half the time.
    one = found(BY_GROUP["leave one out"], 2, softmax_replies((0.5, 0.5), (0, 1)))
    assert one.variance == pytest.approx(1.0, abs=1e-12)
    assert one.needed == pytest.approx(2.0, abs=1e-12)


def test_dropping_dead_groups_biases_the_gradient_of_unlike_prompts() -> None:
    prompts = binary(1, 0.1, 0.5)
    assert found(BY_BATCH["centred by group"], 8, *prompts).cosine == pytest.approx(1.0)
    assert found(BY_BATCH["centred, dead groups dropped"], 8, *prompts).cosine < 0.999


@pytest.mark.parametrize("size", SIZES)
def test_turns_that_few_reach_are_weighed_by_those_few(size: int) -> None:
    went = 0.4
    for name, factor in (
        ("turn, centred", 1 - (1 - (1 - went) ** size) / (size * went)),
        ("turn, leave one out", 1 - (1 - went) ** (size - 1)),
    ):
        one = found(TURNS[name], size, turn_replies())
        second = slice(2, 4)
        assert one.mean_D[second] == pytest.approx(factor * one.exact_D[second], abs=1e-12)


def test_turns_centred_by_index_leave_the_first_nothing() -> None:
    replies = turn_replies(stopping=0.0)
    of = batches([replies], 8)
    weights_NG2 = TURNS["turn rewards centred by index"](of)[:, 0]
    went_NG = of.members_NBG[:, 0] > 0
    assert (weights_NG2[:, :, 0] * went_NG).sum(axis=1) == pytest.approx(0.0, abs=1e-12)
    assert replies.gradient_D[1] > 0.1


def test_only_importance_weights_are_unbiased_off_policy() -> None:
    sampled_K = np.array([0.7, 0.25, 0.05])
    now = softmax_replies((0.6, 0.2, 0.2), (0.1, 0.2, 5))
    ratios = np.log(now.chance_K / sampled_K)[:, None]
    off = Replies(now.chance_K, now.rewards_KT, now.scores_KTD, now.tokens_KT, sampled_K, ratios)
    for name, scheme in LOSSES_OFF_POLICY.items():
        one = found(scheme, 4, off)
        assert (one.bias < 1e-9) == (name == "`importance_sampling`")


@pytest.mark.nightly
def test_the_gradient_is_that_of_the_expected_return() -> None:
    policy = SmallPolicy(0)
    replies = policy.replies()
    assert replies.chance_K.sum() == pytest.approx(1.0, abs=1e-12)
    length = float(np.linalg.norm(policy.exact_gradient()))
    assert np.linalg.norm(replies.gradient_D) == pytest.approx(length, rel=1e-6)
    one = found(BY_GROUP["leave one out"], 4, replies)
    assert one.factor == pytest.approx(1.0, abs=1e-6)


def test_claims_agree_where_the_formula_is_exact() -> None:
    for claims in (turn_level, spike, length_bias, noisy_labels, random_rewards):
        for claim in claims():
            limits = "DAPO" in claim.quantity or "log-odds" in claim.quantity
            assert limits or claim.agrees, claim
    assert [claim.agrees for claim in difficulty()] == [False] * 3
    assert [claim.agrees for claim in constraints()] == [True, True, False]


def test_the_page_shows_computed_data() -> None:
    rows = [json.loads(line) for line in PAGE.with_suffix(".jsonl").read_text().splitlines()]
    for name in TABLES:
        ours = [row for row in rows if row["table"] == name]
        assert read_block(PAGE, BLOCK.format(name)) == study_table(ours)
    claims = [row for row in rows if row["table"] == "claims"]
    assert read_block(PAGE, BLOCK.format("claims")) == claim_table(claims)
    kept = {
        (row["table"], row["replies"], row["estimator"], row["G"]): row
        for row in rows
        if "G" in row
    }
    small = (row for row in enumerated() if row["table"] == "one prompt")
    for row in [*turns(), *(next(small) for _ in range(12))]:
        assert kept[row["table"], row["replies"], row["estimator"], row["G"]] == pytest.approx(row)
    assert len(claims) >= sum(1 for _ in CLAIMS)
