"""disruption:L2, 2026-11-27, 20 minutes: fitted naive Bayes mixture, stated as it is.

Written from prompts and 60 train Tasks alone.

Method: a naive Bayes mixture of three kinds of paper (negative binomial citation counts, normal
reference statistics, groups of verbs) with a confusion matrix from kind to label.  Its parameters
were fitted jointly to the features, the values and the drawn outcomes of the train Tasks, and to
what the judge paid for claims there.  The posterior is stated as it is (the Brier score is proper)
and the challenger is ignored, since its argument showed no relation to the outcome.  The claims
are those three that bring a modelled naive Bayes judge nearest to the posterior in expected score.
"""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtr

Array = NDArray[np.float64]
Claim = tuple[str, str, int]

LABELS = ("disruptive", "consolidating", "neutral")
# All rows below run over the kinds disruptive, consolidating and neutral.
PRIOR = np.array([0.324, 0.388, 0.287])
LABEL_OF_KIND = np.array([[0.986, 0.005, 0.009], [0.005, 0.985, 0.010], [0.075, 0.075, 0.85]])
COUNT_MEAN = {
    "n_i": np.array([2.924, 0.551, 1.302]),
    "n_j": np.array([0.552, 3.694, 1.714]),
    "n_k": np.array([1.276, 2.610, 5.080]),
}
COUNT_SIZE = {"n_i": 39.8, "n_j": 56.7, "n_k": 12.2}  # negative binomial size
NORMAL_MEAN = {
    "references": np.array([17.822, 22.786, 20.941]),
    "age": np.array([10.048, 6.363, 8.024]),
    "venues": np.array([5.132, 5.178, 5.191]),
    "fields": np.array([2.501, 2.931, 2.294]),
}
NORMAL_SD = {
    "references": np.array([2.576, 4.188, 3.705]),
    "age": np.array([2.892, 2.912, 2.808]),
    "venues": np.array([1.991, 1.930, 2.013]),
    "fields": np.array([1.425, 1.239, 1.368]),
}
VERBS = {
    ("introduce", "propose", "discover"): np.array([0.399, 0.195, 0.178]),
    ("confirm", "refine", "extend"): np.array([0.276, 0.466, 0.325]),
    ("review", "compare", "apply"): np.array([0.325, 0.339, 0.496]),
}
JUDGED = ("n_i", "n_j", "n_k", "references", "age")  # what moves the judge
LOOSEST = 3  # claims may be this much weaker than the paper's own number


def read_paper(text: str) -> tuple[dict[str, int], str]:
    """The numbers of the paper and the verb of its abstract."""
    names = "|".join((*COUNT_MEAN, *NORMAL_MEAN))
    head = text.split("Later papers are counted", 1)[0]
    values = {name: int(number) for name, number in re.findall(rf"\b({names}) (\d+)", head)}
    verb = re.search(r"^We (\w+)", head, re.MULTILINE)
    return values, verb.group(1) if verb else ""


def count_log_pmf(name: str, number: int | Array) -> Array:
    """Log probability of a count under each kind (last axis)."""
    mean, size = COUNT_MEAN[name], COUNT_SIZE[name]
    n = np.asarray(number, dtype=float)[..., None]
    ways = gammaln(n + size) - gammaln(size) - gammaln(n + 1)
    odds = size * np.log(size / (size + mean)) + n * np.log(mean / (size + mean))
    result: Array = ways + odds
    return result


def posterior(values: dict[str, int], verb: str) -> Array:
    """Probabilities of the three labels."""
    log = np.log(PRIOR)
    for group, odds in VERBS.items():
        if verb in group:
            log = log + np.log(odds)
    for name, value in values.items():
        if name in COUNT_MEAN:
            log = log + count_log_pmf(name, value)
        else:
            sd = NORMAL_SD[name]
            log = log - 0.5 * ((value - NORMAL_MEAN[name]) / sd) ** 2 - np.log(sd)
    kinds = np.exp(log - log.max())
    result: Array = kinds / kinds.sum() @ LABEL_OF_KIND
    return result


def at_most(name: str, bound: int) -> Array:
    """Probability under each kind that a feature is at most the bound."""
    if name in COUNT_MEAN:
        numbers = np.arange(bound + 1, dtype=float)
        total: Array = np.exp(count_log_pmf(name, numbers)).sum(axis=0)
        return total
    result: Array = ndtr((bound + 0.5 - NORMAL_MEAN[name]) / NORMAL_SD[name])
    return result


def options(name: str, value: int) -> list[tuple[Claim, Array]]:
    """True claims about one feature, each with its likelihood under the kinds."""
    found: list[tuple[Claim, Array]] = []
    for slack in range(LOOSEST + 1):
        found.append(((name, "<=", value + slack), at_most(name, value + slack)))
        if value - slack > 0:
            found.append(((name, ">=", value - slack), 1 - at_most(name, value - slack - 1)))
    return found


def best_claims(values: dict[str, int], belief: Array) -> list[Claim]:
    """The three claims after which the judge's expected Brier score is best."""
    best: tuple[float, list[Claim]] = (float(((belief - 1 / 3) ** 2).sum()), [])
    by_name = [options(name, values[name]) for name in JUDGED if name in values]
    for trio in combinations(by_name, 3):
        likelihoods = [np.array([pair[1] for pair in choices]) for choices in trio]
        first, second, third = likelihoods
        judge = first[:, None, None] * second[None, :, None] * third[None, None] + 1e-12
        judge /= judge.sum(axis=-1, keepdims=True)
        distance = ((judge - belief) ** 2).sum(axis=-1)
        if distance.min() < best[0]:
            spot = np.unravel_index(int(distance.argmin()), distance.shape)
            chosen = [choices[int(k)][0] for choices, k in zip(trio, spot, strict=True)]
            best = (float(distance.min()), chosen)
    return best[1]


def rounded(belief: Array) -> list[float]:
    """The probabilities in thousandths that sum to one."""
    parts = [round(1000 * float(p)) for p in belief]
    parts[int(np.argmax(belief))] += 1000 - sum(parts)
    return [part / 1000 for part in parts]


def reply(texts: list[str], replies: list[str]) -> str:
    """The label, the probabilities, and in the last answer claims for the judge."""
    values, verb = read_paper(texts[0])
    belief = posterior(values, verb)
    stated = rounded(belief)
    lines = [
        f"LABEL {LABELS[int(np.argmax(stated))]}",
        "P " + " ".join(f"{p:.3f}" for p in stated),
    ]
    if replies:
        lines += [f"CLAIM {name} {sign} {n}" for name, sign, n in best_claims(values, belief)]
    return "\n".join(lines)
