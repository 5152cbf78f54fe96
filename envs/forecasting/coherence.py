"""How incoherent the probabilities of questions on the same facts are, and what coherence earns."""

from collections.abc import Mapping, Sequence
from itertools import combinations, permutations
from statistics import fmean

from tokengym.envs.forecasting.question import Question

SHARE = 0.25
"""Part of the score of questions on the same facts that their coherence earns."""


def incoherence(stated: Sequence[tuple[Question, float]]) -> Mapping[str, float]:
    """Return how far probabilities of yes break the laws that join their questions.

    Questions are compared by the outcomes of the facts in which their answer is yes. A question
    and its opposite must sum to 1; one that implies another is no likelier than it; and whether
    both of two are true and whether either is must sum to what the two do.

    Args:
        stated: questions with the probability of yes stated for each; those that are not among
            several on the same facts are passed over.

    Returns:
        the mean breach of each law, in [0, 1] and 0 for any coherent forecaster:
        `complement_gap`, `implication_gap`, `union_gap`; and `incoherence`, their mean. A law
        that joins none of the questions is missing.
    """
    by_event = {frozenset(question.event): p for question, p in stated if question.event}
    outcomes = frozenset[int]().union(*by_event)
    gaps: dict[str, list[float]] = {}
    for a, b in combinations(by_event, 2):
        p, q = by_event[a], by_event[b]
        if not a & b and a | b == outcomes:
            gaps.setdefault("complement_gap", []).append(abs(p + q - 1.0))
        elif not (a < b or b < a) and {a & b, a | b} <= by_event.keys():
            excess = by_event[a & b] + by_event[a | b] - p - q
            gaps.setdefault("union_gap", []).append(min(1.0, abs(excess)))
    for a, b in permutations(by_event, 2):
        if a < b:
            gaps.setdefault("implication_gap", []).append(max(0.0, by_event[a] - by_event[b]))
    means = {name: fmean(values) for name, values in gaps.items()}
    return {**means, "incoherence": fmean(means.values())} if means else {}
