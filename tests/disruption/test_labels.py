"""Laws of labels: integers decide, a threshold is neutral, ranks ignore drift."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.envs.disruption.labels import (
    DISRUPTION_LABELS,
    disruption_label,
    disruption_label_of_score,
    novelty_label,
    percentile_places,
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


scores = st.lists(st.tuples(st.floats(-1, 1), st.integers(0, 1)), min_size=1, max_size=40)


@given(papers=scores, share=st.floats(0.05, 0.5), drift=st.floats(0.05, 1.0))
def test_percentile_labels_ignore_how_scores_drift_with_the_years(
    papers: list[tuple[float, int]], share: float, drift: float
) -> None:
    cd, field = (np.array(column) for column in zip(*papers, strict=True))
    cd = np.round(cd, 3)
    places = percentile_places(cd, field, share)
    assert places.tolist() == percentile_places(cd * drift, field, share).tolist()


@given(papers=scores, share=st.floats(0.05, 0.5))
def test_percentile_labels_follow_the_order_within_a_field(
    papers: list[tuple[float, int]], share: float
) -> None:
    cd, field = (np.array(column) for column in zip(*papers, strict=True))
    labels = [DISRUPTION_LABELS[place] for place in percentile_places(cd, field, share)]
    height = {"disruptive": 2, "neutral": 1, "consolidating": 0}
    for a in range(len(cd)):
        for b in range(len(cd)):
            if field[a] == field[b]:
                if cd[a] == cd[b]:
                    assert labels[a] == labels[b]
                elif cd[a] > cd[b]:
                    assert height[labels[a]] >= height[labels[b]]


def test_percentile_tails_have_the_size_asked_for() -> None:
    places = percentile_places(np.linspace(-1, 1, 100), np.zeros(100, np.int64), 0.2)
    assert np.bincount(places).tolist() == [20, 20, 60]
