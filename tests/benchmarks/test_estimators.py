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
)
from benchmarks.estimators.exact import Moments, Replies, batches, groups, moments
from benchmarks.estimators.schemes import Scheme
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
