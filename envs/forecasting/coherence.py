"""How incoherent the probabilities of questions on the same facts are."""

from collections.abc import Mapping, Sequence
from itertools import combinations, permutations
from statistics import fmean

from tokengym.envs.forecasting.question import Question


def incoherence(stated: Sequence[tuple[Question, float]]) -> Mapping[str, float]:
    """Return how far probabilities of yes break the laws that join their questions.

    Questions are compared by the outcomes of the facts in which their answer is yes. A question
    and its opposite must sum to 1; one that implies another is no likelier than it; both of two are
    no likelier than either and, by Bonferroni's inequality, at least as likely as the two less 1.

    Args:
        stated: questions with the probability of yes stated for each; those that are not among
            several on the same facts are passed over.

    Returns:
        the mean breach of each law, in [0, 1] and 0 for any coherent forecaster:
        `complement_gap`, `threshold_gap`, `conjunction_gap`; and `incoherence`, their mean. A law
        that joins none of the questions is missing.
    """
    pairs = [(frozenset(question.event), p) for question, p in stated if question.event is not None]
    outcomes = frozenset[int]().union(*(event for event, _ in pairs))
    gaps: dict[str, list[float]] = {}
    for (a, p), (b, q) in combinations(pairs, 2):
        if not a & b and a | b == outcomes:
            gaps.setdefault("complement_gap", []).append(abs(p + q - 1.0))
    for (a, p), (b, q), (c, r) in permutations(pairs, 3):
        # Both of two: each pair once, and neither of them implies the other.
        if a == b & c and a != b and a != c and sorted(b) < sorted(c):
            gaps.setdefault("conjunction_gap", []).append(max(0.0, p - min(q, r), q + r - 1.0 - p))
    both = {
        a for (a, _), (b, _), (c, _) in permutations(pairs, 3) if a == b & c and a not in (b, c)
    }
    for (a, p), (b, q) in permutations(pairs, 2):
        if a < b and a not in both:
            gaps.setdefault("threshold_gap", []).append(max(0.0, p - q))
    means = {name: fmean(values) for name, values in gaps.items()}
    return {**means, "incoherence": fmean(means.values())} if means else {}
