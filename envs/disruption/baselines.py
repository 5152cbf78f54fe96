"""Scripted policies for both roles. All but the oracle use only what the Turns show."""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import NamedTuple, Self

import numpy as np

from tokengym.envs.core.play import Policy
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.disruption import challengers
from tokengym.envs.disruption.challengers import with_challenger
from tokengym.envs.disruption.claims import Claim, Fact
from tokengym.envs.disruption.evidence import CITER_FEATURES, FEATURES, Evidence
from tokengym.envs.disruption.generator import draw_evidence, draw_outcome
from tokengym.envs.disruption.grammar import Argument, PredictorAnswer
from tokengym.envs.disruption.inference import after, argument_of
from tokengym.envs.disruption.labels import LABELS, Target, disruption_label
from tokengym.envs.disruption.literature import (
    ALL_CUES,
    FEATURE_TABLE,
    ORDERS,
    Probabilities,
    cues_in,
    normalised,
    peaked,
    posterior,
)
from tokengym.envs.disruption.oracle import best_claims, likeliest, true_claims
from tokengym.envs.disruption.world import DisruptionWorld
from tokengym.rewards.arrays import Floats, Ints
from tokengym.rewards.debate import MOST_CLAIMS

_THIRD = (1 / 3, 1 / 3, 1 / 3)
_SAMPLE = 2000
_RIDGE = 1.0
_LOGIT_NOISE = 1.2
_FALSE_SHARE = 0.2
_DEGREES = (0.5, 0.7, 0.9)
_CLAIMED = tuple(name for name in FEATURES if name != "authors")
"""Columns of the claims of `random`; its recorded replies were drawn from these names."""


class LabelledPapers(NamedTuple):
    """Papers with known labels of one tier, for baselines to learn from.

    Attributes:
        features: shape (n, f), see `_features`; NaN where not shown.
        labels: position of the label of each target, shape (n,).
    """

    features: Floats
    labels: Mapping[Target, Ints]

    @classmethod
    def of(cls, rows: Sequence[list[float]], outcomes: Sequence[Mapping[Target, str]]) -> Self:
        """Collect papers' features and the labels of each target."""
        labels: dict[Target, Ints] = {
            target: np.array([LABELS[target].index(outcome[target]) for outcome in outcomes])
            for target in LABELS
        }
        return cls(np.array(rows), labels)


@with_challenger(challengers.null)
def _null(world: DisruptionWorld, rng: np.random.Generator) -> str:
    """No label preferred, nothing claimed; as challenger "are you sure?"."""
    count = len(world.targets)
    return PredictorAnswer((2,) * count, (_THIRD,) * count, ()).write(world.targets, decimals=3)


def _random_argument(world: World, _turn: Turn, rng: np.random.Generator) -> str:
    targets = DisruptionWorld.cast(world).targets
    target = targets[int(rng.integers(len(targets)))]
    return Argument(LABELS[target][int(rng.integers(3))], _random_claims(rng, 2)).write()


@with_challenger(_random_argument)
def _random(world: DisruptionWorld, rng: np.random.Generator) -> str:
    labels = tuple(int(rng.integers(3)) for _ in world.targets)
    reports = [peaked(label, 0.5) for label in labels]
    answer = PredictorAnswer(labels, tuple(reports), _random_claims(rng, MOST_CLAIMS))
    return answer.write(world.targets, decimals=3)


@with_challenger(challengers.null)
def _majority(world: DisruptionWorld, rng: np.random.Generator) -> str:
    """The most frequent label and the labels' frequencies, whatever is shown."""
    reports = tuple(_frequencies(target, world.level) for target in world.targets)
    return _answer(world, reports, ())


@with_challenger(challengers.scripted)
def _scripted(world: DisruptionWorld, rng: np.random.Generator) -> str:
    """The label the first year's citers would give, at even odds, with the claims that support it.

    Where only the challenger has notes on that year, it is taken at its word. Without them, and for
    novelty, all labels are alike.
    """
    evidence = _heard(world.compiled.evidence, world.argument)
    reports = tuple(_first_year_report(evidence, target) for target in world.targets)
    return _answer(world, reports, _best_claims(world, reports))


def _heard(
    evidence: Evidence, argument: Argument | None, columns: Sequence[int] = ORDERS[0]
) -> Evidence:
    """Return the evidence with the counts that a challenger states, its columns taken as such."""
    if argument is None or not evidence.notes:
        return evidence
    meant = dict(zip((evidence.noted_features[k] for k in columns), evidence.notes, strict=True))
    facts = [claim for claim in argument.claims if isinstance(claim, Fact) and claim.op == "="]
    stated = {meant[fact.feature]: int(fact.value) for fact in facts if fact.feature in meant}
    return evidence._replace(facts={**evidence.facts, **stated})


def _likeliest_columns(evidence: Evidence) -> Sequence[int]:
    """Return where n_i, n_j and n_k stand if most labels of the record are those of its CD."""

    def right(columns: Sequence[int]) -> int:
        names = [evidence.noted_features[k] for k in columns]
        papers = evidence.record
        return sum(disruption_label(*map(p["notes"].get, names)) == p["label"] for p in papers)

    return max(ORDERS, key=right)


def _first_year_report(evidence: Evidence, target: Target) -> Probabilities:
    counts = [evidence.facts.get(name, 0) for name in CITER_FEATURES]
    if target == "novelty":
        return _THIRD
    label = disruption_label(*counts)
    return _THIRD if label is None else peaked(LABELS[target].index(label), 0.5)


@with_challenger(challengers.scripted)
def _logistic(world: DisruptionWorld, rng: np.random.Generator) -> str:
    """Multinomial logistic regression on the evidence, and the claims that fit its report.

    A challenger's statement about its notes is evidence too, weighed by its worth in other debates,
    in the order of the columns that its record bears out best.
    """
    reports = _logistic_reports(world)
    claims = _best_claims(world, reports)
    return _answer(world, reports, claims)


@with_challenger(challengers.scripted)
def _worked(world: DisruptionWorld, rng: np.random.Generator) -> str:
    """The label of the logistic report and one of three degrees of certainty, after its grounds.

    In an order and in steps that a small model can follow: the first year's citers, copied as
    claims, and their difference; once challenged, whether to keep the label; the label. Further
    decimals would be noise to a model that cannot compute them, and so would be claims chosen by
    what the judge makes of them.
    """
    facts = world.compiled.evidence.facts
    counts = {name: facts[name] for name in CITER_FEATURES if name in facts}
    reports = tuple(_to_a_degree(report) for report in _logistic_reports(world))
    answer = _answer(world, reports, (), decimals=2)
    steps = [Fact(name, "=", value).line for name, value in counts.items()][:MOST_CLAIMS]
    if len(counts) > 1:
        a, b, *_ = counts.values()
        steps.append(f"{a} - {b} = {a - b}")
    if world.first_answer is not None:
        kept = world.first_answer.labels == tuple(map(likeliest, reports))
        steps.append("Keep it." if kept else "Revise it.")
    return "\n".join([*steps, answer])


@with_challenger(challengers.scripted)
def _naive_bayes(world: DisruptionWorld, rng: np.random.Generator) -> str:
    """Naive Bayes on the labelled papers that are shown, or on a record where none are.

    Facts are normal in each class, their means drawn to the common one as by one more paper; of a
    cue's groups, and of the labels, one more paper each has been seen, or three.
    """
    evidence = world.compiled.evidence
    sample = _sample(world.level, False)
    if evidence.examples:
        shown = [Evidence("", e["abstract"], 0, "", e["facts"]) for e in evidence.examples]
        sample = LabelledPapers.of(
            [*map(_features, shown)], [e["labels"] for e in evidence.examples]
        )
    reports = [_naive_report(sample, _features(evidence), target) for target in world.targets]
    return _answer(world, reports, _best_claims(world, reports))


def _naive_report(
    sample: LabelledPapers, features: Sequence[float], target: Target
) -> Probabilities:
    labels = sample.labels[target]
    count = np.bincount(labels, minlength=3)
    scores = np.log(count + 3.0)
    targets = [FEATURE_TABLE[name].target for name in FEATURES]
    targets += [cue.target for cue in ALL_CUES.values() for _ in range(3)]
    for column, (about, value) in enumerate(zip(targets, features, strict=False)):
        seen = sample.features[:, column]
        total = np.bincount(labels, seen, minlength=3)
        if about != target or math.isnan(value + total.sum()):
            continue
        if column < len(FEATURES):
            mean = (total + seen.mean()) / (count + 1.0)
            spread = max(1.0, (seen - mean[labels]).std()) * np.sqrt(1.0 + 1.0 / (count + 1.0))
            scores -= ((value - mean) / spread) ** 2 / 2.0 + np.log(spread)
        elif value:
            scores += np.log((total + 1.0) / (count + 3.0))
    return _softmax(scores - scores.max())


def _to_a_degree(report: Probabilities) -> Probabilities:
    """Round the largest probability to a degree of certainty."""
    label = likeliest(report)
    return peaked(label, min(_DEGREES, key=lambda degree: abs(degree - report[label])))


@with_challenger(challengers.noisy)
def _noisy(world: DisruptionWorld, rng: np.random.Generator) -> str:
    """The logistic report with noise on its log-odds, and claims at random, mostly true.

    Informed but far from the oracle: what a learner starts from.
    """
    reports = tuple(
        _softmax(np.log(report) + _LOGIT_NOISE * rng.normal(size=3))
        for report in _logistic_reports(world)
    )
    evidence = world.compiled.evidence
    offers = true_claims(evidence, world.compiled.judge)
    picks = rng.choice(len(offers), min(2, len(offers)), replace=False)
    claims = [offers[int(k)] for k in picks]
    return _answer(
        world,
        reports,
        [
            challengers.falsified(claim, evidence, rng) if rng.random() < _FALSE_SHARE else claim
            for claim in claims
        ],
    )


@with_challenger(challengers.scripted)
def _oracle(world: DisruptionWorld, rng: np.random.Generator) -> str:
    """The exact posterior and the claims that bring the judge nearest to it.

    A challenger's statement about its notes is weighed by type of challenger, and never repeated.
    For a real paper, whose posterior is unknown, the gold label replaces it.
    """
    compiled, first, argument = world.compiled, world.first_answer, world.argument
    reports = list(compiled.own)
    if compiled.evidence.notes and compiled.known and first is not None and argument is not None:
        place = world.targets.index("disruption")
        reports[place] = after(compiled.evidence, first.labels[place], argument)
    return stated(world, reports)


def stated(world: DisruptionWorld, reports: Sequence[Probabilities]) -> str:
    """Write an answer that states a report for each target, with the claims that serve it best."""
    return _answer(world, reports, _best_claims(world, reports), decimals=6)


def _answer(
    world: DisruptionWorld,
    reports: Sequence[Probabilities],
    claims: Sequence[Claim],
    decimals: int = 3,
) -> str:
    """Write an answer with the likeliest label of each report."""
    labels = tuple(likeliest(report) for report in reports)
    return PredictorAnswer(labels, tuple(reports), tuple(claims)).write(world.targets, decimals)


def _best_claims(world: DisruptionWorld, reports: Sequence[Probabilities]) -> tuple[Claim, ...]:
    compiled = world.compiled
    return best_claims(compiled.evidence, world.targets, reports, compiled.judge).claims


def _random_claims(rng: np.random.Generator, most: int) -> tuple[Claim, ...]:
    return tuple(
        Fact(
            _CLAIMED[int(rng.integers(len(_CLAIMED)))],
            (">=", "<=", "=")[int(rng.integers(3))],
            float(rng.integers(20)),
        )
        for _ in range(most)
    )


@cache
def _sample(tier: str, argued: bool) -> LabelledPapers:
    """Draw a sample from a separate stream: none of its papers is a Task.

    Args:
        tier: the level.
        argued: whether what a challenger with notes says of each is among the features.
    """
    rng = generator("disruption record", tier)
    rows, outcomes = [], []
    for _ in range(_SAMPLE):
        evidence = draw_evidence(rng, tier)
        label = likeliest(posterior(evidence, "disruption"))
        rows.append(_features(evidence, argument_of(evidence, label) if argued else None))
        outcomes.append(draw_outcome(rng, evidence).labels())
    return LabelledPapers.of(rows, outcomes)


@cache
def _frequencies(target: Target, tier: str) -> Probabilities:
    return normalised(np.bincount(_sample(tier, False).labels[target], minlength=3))


class Regression(NamedTuple):
    """A fitted multinomial logistic regression on standardised features."""

    mean: Floats
    deviation: Floats
    weights: Floats

    def report(self, features: Sequence[float]) -> Probabilities:
        """Probabilities of the labels; a feature that is not shown counts as its mean."""
        x = np.nan_to_num((np.array(features) - self.mean) / self.deviation)
        return _softmax(np.append(x, 1.0) @ self.weights)


@cache
def _regression(target: Target, tier: str, argued: bool) -> Regression:
    """Fit by penalised maximum likelihood on the sample."""
    from scipy.optimize import minimize

    sample = _sample(tier, argued)
    ever_shown = ~np.isnan(sample.features).all(axis=0)
    mean = np.where(ever_shown, np.nan_to_num(sample.features).mean(axis=0), 0.0)
    deviation = np.nan_to_num(sample.features).std(axis=0)
    deviation[deviation == 0.0] = 1.0
    x = np.nan_to_num((sample.features - mean) / deviation)
    x = np.hstack([x, np.ones((len(x), 1))])
    y = np.eye(3)[sample.labels[target]]

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(-1, 3)
        scores = x @ weights
        scores -= scores.max(axis=1, keepdims=True)
        log_share = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        gradient = x.T @ (np.exp(log_share) - y) + _RIDGE * weights
        return float(-(y * log_share).sum() + _RIDGE / 2 * flat @ flat), gradient.ravel()

    fit = minimize(loss, np.zeros(3 * x.shape[1]), jac=True, method="L-BFGS-B")
    return Regression(mean, deviation, fit.x.reshape(-1, 3))


def _logistic_reports(world: DisruptionWorld) -> tuple[Probabilities, ...]:
    evidence = world.compiled.evidence
    argument = world.argument if evidence.notes else None
    features, argued = _features(evidence, argument), argument is not None
    return tuple(_regression(t, world.level, argued).report(features) for t in world.targets)


def _features(evidence: Evidence, argument: Argument | None = None) -> list[float]:
    """Every fact (NaN if not shown) and whether the text uses each class's phrases of each cue.

    Then which label a challenger argues for that has notes, whose counts stand among the facts.
    """
    columns = _likeliest_columns(evidence)
    shown, groups = _heard(evidence, argument, columns).facts, cues_in(evidence.text)
    facts = [float(shown.get(name, np.nan)) for name in FEATURES]
    cues = [float(groups.get(cue) == k) for cue in ALL_CUES for k in range(3)]
    label = argument and argument.label
    return [*facts, *cues, *(float(label == name) for name in LABELS["disruption"])]


def _softmax(scores: Floats) -> Probabilities:
    return normalised(np.exp(scores - scores.max()))


BASELINES: Mapping[str, Policy] = MappingProxyType(
    {
        "null": _null,
        "random": _random,
        "majority": _majority,
        "scripted": _scripted,
        "logistic": _logistic,
        "worked": _worked,
        "naive_bayes": _naive_bayes,
        "noisy": _noisy,
        "oracle": _oracle,
    }
)
