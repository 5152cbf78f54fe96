"""Models fitted to 200 resolved Tasks and to the notes that are shown fall short of inference."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import minimize

from tests.disruption.test_hidden_evidence import Belief, worth
from tokengym.envs.disruption.evidence import CITER_FEATURES, Evidence
from tokengym.envs.disruption.generator import draw_evidence, draw_outcome
from tokengym.envs.disruption.inference import after, argument_of
from tokengym.envs.disruption.labels import DISRUPTION_LABELS, disruption_label
from tokengym.envs.disruption.literature import posterior

Floats = npt.NDArray[np.float64]

RESOLVED, PLAYED = 200, 300


class Debate(NamedTuple):
    """A paper, what was said of it, and what may be believed then."""

    evidence: Evidence
    own: Belief
    argued: int
    stated: dict[int, int]
    modelled: Belief
    truth: Belief
    label: int


def debate_of(seed: int) -> Debate:
    rng = np.random.default_rng(seed)
    evidence = draw_evidence(rng, "private")
    own = posterior(evidence, "disruption")
    first = int(np.argmax(own))
    argument = argument_of(evidence, first)
    argued = DISRUPTION_LABELS.index(str(argument.label))
    stated = {CITER_FEATURES.index(c.feature): int(c.value) for c in argument.claims}
    label = DISRUPTION_LABELS.index(draw_outcome(rng, evidence).labels()["disruption"])
    modelled, truth = after(evidence, first, argument), posterior(evidence.known, "disruption")
    return Debate(evidence, own, argued, stated, modelled, truth, label)


def naive_bayes(debate: Debate) -> Floats:
    """Poisson counts by label, fitted to the notes on earlier papers, given what is shown."""
    noted = np.array([[*paper["notes"].values()] for paper in debate.evidence.record], float)
    labels = np.array([DISRUPTION_LABELS.index(p["label"]) for p in debate.evidence.record])
    usual, log_odds = noted.mean(axis=0) + 0.5, np.log(debate.own)
    for place in range(3):
        same = noted[labels == place]
        mean = (same.sum(axis=0) + usual) / (len(same) + 1)
        log_odds[place] += sum(n * np.log(mean[k]) - mean[k] for k, n in debate.stated.items())
    return np.asarray(np.exp(log_odds - np.logaddexp.reduce(log_odds)))


def features(debate: Debate) -> list[float]:
    """All that is shown and said, whether the record bears the columns out, and naive Bayes."""
    record = debate.evidence.record
    right = float(np.mean([disruption_label(*p["notes"].values()) == p["label"] for p in record]))
    said = [float(debate.argued == k) for k in range(3)]
    said += [float(debate.stated.get(k, -1)) for k in range(3)]
    shown = np.log([*debate.own, *(naive_bayes(debate) + 0.01)])
    return [*shown.tolist(), right, *said, *(right * value for value in said)]


@pytest.fixture(scope="module")
def played() -> list[Debate]:
    return [debate_of(seed) for seed in range(RESOLVED + PLAYED)]


def regressed(debates: list[Debate], ridge: float) -> Floats:
    """Beliefs of a logistic regression fitted to the first ones, about the others."""
    table = np.array([features(one) for one in debates])
    fitted = table[:RESOLVED]
    x = np.c_[(table - fitted.mean(axis=0)) / fitted.std(axis=0), np.ones(len(table))]
    y = np.eye(3)[[one.label for one in debates[:RESOLVED]]]

    def beliefs(flat: Floats) -> Floats:
        scores = x @ flat.reshape(-1, 3)
        return np.asarray(np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)))

    def loss(flat: Floats) -> tuple[float, Floats]:
        said = beliefs(flat)[:RESOLVED]
        slope = x[:RESOLVED].T @ (said - y) + ridge * flat.reshape(-1, 3)
        return float(ridge / 2 * flat @ flat - np.log(said[y == 1.0]).sum()), slope.ravel()

    return beliefs(minimize(loss, np.zeros(3 * x.shape[1]), jac=True).x)[RESOLVED:]


@pytest.mark.nightly
def test_no_fitted_model_comes_near_who_models_the_kinds(played: list[Debate]) -> None:
    others = played[RESOLVED:]
    simple = {f"ridge {ridge}": regressed(played, ridge) for ridge in (10.0, 30.0, 100.0)}
    simple["naive Bayes"] = np.array([naive_bayes(one) for one in others])

    def earned(finals: npt.ArrayLike) -> Floats:
        pairs = zip(others, np.asarray(finals), strict=True)
        return np.array([worth(one.own, final, one.truth) for one, final in pairs])

    models = earned([one.modelled for one in others])
    third = (1 / 3,) * 3
    blind = np.array([worth(third, third, one.truth) for one in others])
    for name, finals in simple.items():
        left = (models - earned(finals)).mean() / (models - blind).mean()
        assert left >= 0.3, name
