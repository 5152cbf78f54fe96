"""Labels from scores: by exact counts or by percentile within field and year; eligibility.

Scores of one paper are plain numbers; of many papers, one-dimensional arrays in the same order.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tokengym.envs.core.errors import DataError
from tokengym.rewards.arrays import Flags

Target = Literal["disruption", "novelty"]

DISRUPTION_LABELS = ("disruptive", "consolidating", "neutral")
NOVELTY_LABELS = ("novel", "conventional", "balanced")
LABELS: dict[Target, tuple[str, str, str]] = {
    "disruption": DISRUPTION_LABELS,
    "novelty": NOVELTY_LABELS,
}
"""The labels of each target, in the order every probability vector of this folder uses."""

THRESHOLD = 0.1
LEAST_REFERENCES = 5
LEAST_CITERS = 5


def disruption_label(n_i: int, n_j: int, n_k: int) -> str | None:
    """Label a paper by its CD index against ±0.1, in integers and thus exactly.

    Args:
        n_i: later papers that cite it and none of its references.
        n_j: later papers that cite both.
        n_k: later papers that cite only its references.

    Returns:
        `disruptive`, `consolidating` or `neutral`; `None` if nobody cites anything (CD undefined).
    """
    total = n_i + n_j + n_k
    if total == 0:
        return None
    return DISRUPTION_LABELS[_side(10 * (n_i - n_j), total)]


def disruption_label_of_score(cd: float) -> str:
    """Label a recorded CD index by ±0.1; a score at the threshold itself is neutral."""
    return DISRUPTION_LABELS[_side(cd, THRESHOLD)]


def novelty_label(tenth_percentile: float, median: float, field_median: float = 0.0) -> str:
    """Label a paper by the z-scores of its pairs of cited venues (Uzzi et al. 2013).

    Args:
        tenth_percentile: 10th percentile over the paper's pairs; below 0 it holds atypical pairs.
        median: median over the pairs, the paper's conventionality.
        field_median: the usual median of its field and year.
    """
    if tenth_percentile >= 0:
        return "conventional"
    return "novel" if median <= field_median else "balanced"


def percentile_labels(
    score: npt.ArrayLike,
    field: Sequence[Any] | npt.NDArray[Any],
    year: npt.ArrayLike,
    *,
    share: float = 0.25,
) -> npt.NDArray[np.str_]:
    """Label by rank within field and year, which is robust to reference lists growing over time.

    Papers whose mid-rank lies in the top `share` of their group are disruptive, in the bottom
    `share` consolidating, the others neutral. Equal scores get equal labels.

    Args:
        score: CD index, shape (n,); NaN is undefined.
        field: field of each paper, shape (n,).
        year: publication year, shape (n,).
        share: size of either tail, in (0, 0.5].

    Returns:
        labels, shape (n,); the empty string where the score is undefined.

    Raises:
        DataError: if the lengths differ or `share` is out of range.
    """
    from scipy.stats import rankdata

    if not 0 < share <= 0.5:
        raise DataError(f"share must be in (0, 0.5], got {share!r}")
    values = np.asarray(score, dtype=np.float64)
    fields, years = np.asarray(field), np.asarray(year)
    if not values.shape == fields.shape == years.shape or values.ndim != 1:
        raise DataError(
            "score, field and year must be one-dimensional and equally long, got shapes "
            f"{values.shape}, {fields.shape}, {years.shape}"
        )
    labels = np.full(values.shape, "", dtype="<U13")
    defined = np.flatnonzero(~np.isnan(values))
    if not len(defined):
        return labels
    group = np.unique(fields[defined], return_inverse=True)[1] * (len(defined) + 1)
    group = group + np.unique(years[defined], return_inverse=True)[1]
    order = np.argsort(group, kind="stable")
    rank = np.empty(len(group))
    for own in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        rank[own] = (rankdata(values[defined[own]]) - 0.5) / len(own)
    names = np.select([rank > 1 - share, rank < share], DISRUPTION_LABELS[:2], DISRUPTION_LABELS[2])
    labels[defined] = names
    return labels


def eligible(
    references: npt.ArrayLike,
    citers: npt.ArrayLike,
    year: npt.ArrayLike,
    *,
    last_year: int,
    window: int = 5,
    article: npt.ArrayLike = True,
) -> Flags:
    """Return which papers have enough references and citers for a CD index worth a label.

    Papers without recorded references score +1 and dominate published trends (Holst et al. 2024),
    so a paper needs 5 references resolved in the graph, 5 citers, and a complete window.

    Args:
        references: references resolved in the graph, shape (n,).
        citers: papers that cite it within the window, n_i + n_j, shape (n,).
        year: publication year, shape (n,).
        last_year: last year the graph covers completely.
        window: years counted after publication.
        article: whether it is a journal or conference article, shape (n,) or one value.
    """
    fit: Flags = (
        (np.asarray(references) >= LEAST_REFERENCES)
        & (np.asarray(citers) >= LEAST_CITERS)
        & (np.asarray(year) + window <= last_year)
        & np.asarray(article, dtype=bool)
    )
    return fit


def _side(value: float, threshold: float) -> int:
    """Return the position among `DISRUPTION_LABELS`: above, below, or within ±threshold."""
    return 0 if value > threshold else 1 if value < -threshold else 2
