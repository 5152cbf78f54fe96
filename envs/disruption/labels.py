"""Labels from scores: by exact counts or by percentile within field and year."""

from typing import Literal

import numpy as np
import numpy.typing as npt

from tokengym.rewards.arrays import Floats, Ints

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
"""Papers without recorded references score +1 and dominate trends (Holst et al. 2024)."""
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


def percentile_places(score: Floats, field: Ints, share: float) -> npt.NDArray[np.int8]:
    """Label papers of one year by rank within their field.

    Ranks are robust to reference lists growing over time. Papers whose mid-rank lies in the top
    `share` of their field are disruptive, in the bottom `share` consolidating, the others neutral.
    Equal scores get equal labels.

    Args:
        score: CD index, defined for all, shape (n,).
        field: number of the field of each paper, shape (n,).
        share: size of either tail, in (0, 0.5].

    Returns:
        positions in `DISRUPTION_LABELS`, shape (n,).
    """
    from scipy.stats import rankdata

    rank = np.empty(len(score))
    for one in np.unique(field):
        own = field == one
        rank[own] = (rankdata(score[own]) - 0.5) / own.sum()
    return np.select([rank > 1 - share, rank < share], [0, 1], 2).astype(np.int8)


def _side(value: float, threshold: float) -> int:
    """Return the position among `DISRUPTION_LABELS`: above, below, or within ±threshold."""
    return 0 if value > threshold else 1 if value < -threshold else 2
