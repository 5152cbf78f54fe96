"""Laws of labels: integers decide, a threshold is neutral, ranks ignore drift, eligibility."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.envs.core.errors import DataError
from tokengym.envs.disruption.labels import (
    DISRUPTION_LABELS,
    disruption_label,
    disruption_label_of_score,
    eligible,
    novelty_label,
    percentile_labels,
)

counts = st.integers(0, 10**6)


@pytest.mark.parametrize(
    ("case", "label"),
    [
        ((11, 9, 0), "neutral"),
        ((3, 2, 5), "neutral"),
        ((9, 11, 0), "neutral"),
        ((12, 9, 0), "disruptive"),
        ((9, 12, 0), "consolidating"),
        ((0, 0, 7), "neutral"),
        ((0, 0, 0), None),
    ],
)
def test_the_integer_rule(case: tuple[int, int, int], label: str | None) -> None:
    assert disruption_label(*case) == label


@given(counts, counts, counts)
def test_the_integer_rule_and_the_recorded_score_agree(i: int, j: int, k: int) -> None:
    label = disruption_label(i, j, k)
    total = i + j + k
    assert label == (disruption_label_of_score((i - j) / total) if total else None)


@given(counts, counts, counts)
def test_swapping_i_and_j_swaps_the_labels(i: int, j: int, k: int) -> None:
    mirror = {"disruptive": "consolidating", "consolidating": "disruptive"}
    label = disruption_label(i, j, k)
    assert disruption_label(j, i, k) == mirror.get(label or "", label)


def test_novelty_needs_atypical_pairs_and_then_the_median_decides() -> None:
    assert novelty_label(0.0, -5.0) == "conventional"
    assert novelty_label(-0.1, 0.0) == "novel"
    assert novelty_label(-0.1, 0.1) == "balanced"
    assert novelty_label(-0.1, 0.1, field_median=0.1) == "novel"


scores = st.lists(
    st.tuples(
        st.floats(-1, 1) | st.just(float("nan")), st.sampled_from("ab"), st.integers(2000, 2002)
    ),
    min_size=1,
    max_size=40,
)


@given(papers=scores, share=st.floats(0.05, 0.5), drift=st.floats(0.05, 1.0))
def test_percentile_labels_ignore_how_scores_drift_with_the_years(
    papers: list[tuple[float, str, int]], share: float, drift: float
) -> None:
    cd, field, year = (np.array(column) for column in zip(*papers, strict=True))
    cd = np.round(cd, 3)
    labels = percentile_labels(cd, field, year, share=share)
    shrunk = percentile_labels(cd * drift ** (year - 1999), field, year, share=share)
    assert labels.tolist() == shrunk.tolist()
    assert ((labels == "") == np.isnan(cd)).all()


@given(papers=scores, share=st.floats(0.05, 0.5))
def test_percentile_labels_follow_the_order_within_a_group(
    papers: list[tuple[float, str, int]], share: float
) -> None:
    cd, field, year = (np.array(column) for column in zip(*papers, strict=True))
    labels = percentile_labels(cd, field, year, share=share)
    height = {"disruptive": 2, "neutral": 1, "consolidating": 0}
    for a in range(len(cd)):
        for b in range(len(cd)):
            if field[a] == field[b] and year[a] == year[b]:
                if cd[a] == cd[b]:
                    assert labels[a] == labels[b]
                elif cd[a] > cd[b]:
                    assert height[str(labels[a])] >= height[str(labels[b])]


def test_percentile_tails_have_the_size_asked_for() -> None:
    labels = percentile_labels(np.linspace(-1, 1, 100), ["a"] * 100, [2000] * 100, share=0.2)
    assert [int((labels == name).sum()) for name in DISRUPTION_LABELS] == [20, 20, 60]


def test_only_articles_with_references_and_citers_are_papers() -> None:
    good = {"references": 5, "citers": 5, "year": 2010, "article": True}
    assert eligible(**good, last_year=2015)
    for spoiled in ({"references": 4}, {"citers": 4}, {"year": 2011}, {"article": False}):
        assert not eligible(**{**good, **spoiled}, last_year=2015)


def test_bad_groups_and_shares_are_refused() -> None:
    with pytest.raises(DataError, match="share"):
        percentile_labels([0.0], ["a"], [2000], share=0.6)
    with pytest.raises(DataError, match="equally long"):
        percentile_labels([0.0], ["a", "b"], [2000])
