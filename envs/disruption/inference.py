"""Exact beliefs where challengers of several kinds hold notes that the predictor cannot check.

An honest challenger says what its notes support, an adversary what speaks against the predictor's
label, a careless one what an honest one would say of another paper (`evidence.KINDS`). What is said
is evidence of the kind and of the paper at once: all first years, a finite number, of which each
kind would say just that.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tokengym.envs.disruption.claims import Claim, Fact
from tokengym.envs.disruption.evidence import CITER_FEATURES, KINDS, Evidence
from tokengym.envs.disruption.grammar import Argument
from tokengym.envs.disruption.judge import LITERATURE
from tokengym.envs.disruption.labels import DISRUPTION_LABELS
from tokengym.envs.disruption.literature import (
    FEATURE_TABLE,
    FloatArray,
    Probabilities,
    class_posterior,
    frequencies,
    label_rates,
    normalised,
)
from tokengym.rewards.debate import MOST_CHALLENGER_CLAIMS

_NEGLIGIBLE = 1e-7
"""First years this improbable in every class are left out of sums."""
_SHARES = np.array(list(KINDS.values())) / sum(KINDS.values())

Message = tuple[str | None, frozenset[Claim]]


def message(argument: Argument) -> Message:
    """Return what an argument says, whatever the order of its claims."""
    return argument.label, frozenset(argument.claims)


def said_by(kind: str, counts: Sequence[int], label: int) -> Argument:
    """Return the argument of a scripted challenger: a label, and two counts of its notes.

    An honest or careless one argues for the label that is likeliest given all three counts and
    nothing else, by the counts that make it likeliest by themselves. An adversary argues for
    another label than the predictor's, the one that a single count most favours over it, by the
    counts that do so most.

    Args:
        kind: one of `KINDS`.
        counts: n_i, n_j and n_k of the first year by its notes.
        label: position of the predictor's label.
    """
    beliefs = np.array([_belief(axis, int(count)) for axis, count in enumerate(counts)])
    if kind == "adversarial":
        favour = beliefs / beliefs[:, [label]]
        favour[:, label] = 0.0
        argued = int(favour.max(axis=0).argmax())
    else:
        favour = beliefs
        argued = int(np.argmax(LITERATURE.believe(_exact(counts, range(3)), "disruption")))
    axes = np.argsort(-favour[:, argued], kind="stable")[:MOST_CHALLENGER_CLAIMS]
    # In order of the counts: an order by what they favour would tell the kinds apart.
    return Argument(DISRUPTION_LABELS[argued], _exact(counts, sorted(axes.tolist())))


def kinds_given(evidence: Evidence, label: int, argument: Argument) -> Mapping[str, float]:
    """Return the probability of each kind of challenger given what it said; see `after`."""
    weights = _weights(evidence, label, argument).sum(axis=1)
    return dict(zip(KINDS, (weights / weights.sum()).tolist(), strict=True))


def after(evidence: Evidence, label: int, argument: Argument) -> Probabilities:
    """Return the posterior of the disruption labels after an argument of a kind unknown.

    An argument that no kind makes says nothing.

    Args:
        evidence: what the predictor is shown.
        label: position of the label it chose.
        argument: what the challenger said.
    """
    return normalised(_weights(evidence, label, argument).sum(axis=0))


class Replies(NamedTuple):
    """All arguments that follow a label.

    Attributes:
        messages: what they say.
        chances: probability of each, shape (m,).
        beliefs: posterior of the disruption labels after each, shape (m, label).
    """

    messages: tuple[Message, ...]
    chances: FloatArray
    beliefs: FloatArray


def replies_to(evidence: Evidence, label: int) -> Replies:
    """Enumerate what a challenger of unknown kind may say against a label.

    Args:
        evidence: what the predictor is shown.
        label: position of the label it chose.
    """
    told = _told(label)
    classes = np.array(class_posterior(evidence, "disruption"))
    weights_ML = np.einsum("k,kmcl,c->ml", _SHARES, told.joint, classes)
    chances = weights_ML.sum(axis=1)
    beliefs = weights_ML / chances[:, None]
    return Replies(tuple(told.places), chances / chances.sum(), beliefs)


def paper_given_notes(evidence: Evidence) -> Probabilities:
    """Return the posterior of the labels as a challenger holds it, which knows its aim and notes.

    Whether an honest challenger's notes are of this paper it does not know: a careless one takes
    itself for honest.

    Args:
        evidence: with notes.
    """
    first = first_years()
    counts = [evidence.notes[name] for name in CITER_FEATURES]
    noted = (first.counts == counts).all(axis=1)
    right, another = first.joint[:, noted].sum(axis=1), first.chance[noted].sum() * first.any_paper
    weights = KINDS["honest"] * right + KINDS["careless"] * another
    known = right if evidence.kind == "adversarial" else weights
    return normalised(np.array(class_posterior(evidence, "disruption")) @ known)


def _exact(counts: Sequence[int], axes: Sequence[int]) -> tuple[Claim, ...]:
    return tuple(Fact(CITER_FEATURES[axis], "=", float(counts[axis])) for axis in axes)


@cache
def _belief(axis: int, count: int) -> Probabilities:
    """Return what the judge believes given one count."""
    return LITERATURE.believe(_exact((count,) * 3, [axis]), "disruption")


def _weights(evidence: Evidence, label: int, argument: Argument) -> FloatArray:
    """Return P(kind, label, argument) up to a factor, shape (kind, label)."""
    told = _told(label)
    place = told.places.get(message(argument))
    said = first_years().any_paper[None] if place is None else told.joint[:, place]
    classes = np.array(class_posterior(evidence, "disruption"))
    weights: FloatArray = _SHARES[:, None] * np.einsum("c,kcl->kl", classes, said)
    return weights


class _Told(NamedTuple):
    """What each kind says against a label.

    Attributes:
        places: position of each message.
        joint: P(message, label, paper kept | kind, class) up to a factor, shape (kind, m, class,
            label).
    """

    places: Mapping[Message, int]
    joint: FloatArray


@cache
def _told(label: int) -> _Told:
    first = first_years()
    rows = first.counts.tolist()
    said = {
        kind: [message(said_by(kind, row, label)) for row in rows]
        for kind in ("honest", "adversarial")
    }
    places: dict[Message, int] = {}
    for spoken in (one for messages in said.values() for one in messages):
        places.setdefault(spoken, len(places))
    joint = np.zeros((len(KINDS), len(places), 3, 3))
    of_another = first.chance[:, None, None] * first.any_paper
    for k, kind in enumerate(KINDS):
        messages = said["adversarial" if kind == "adversarial" else "honest"]
        weight = of_another if kind == "careless" else first.joint.transpose(1, 0, 2)
        np.add.at(joint[k], [places[one] for one in messages], weight)
    return _Told(places, joint)


class FirstYears(NamedTuple):
    """All first years of non-negligible probability.

    Attributes:
        counts: n_i, n_j and n_k, shape (n, 3).
        joint: P(counts, label, paper kept | class) up to a factor, shape (class, n, label).
        any_paper: P(label, paper kept | class) up to the same factor, shape (class, label).
        chance: P(counts) over all papers kept, shape (n,).
    """

    counts: npt.NDArray[np.int64]
    joint: FloatArray
    any_paper: FloatArray
    chance: FloatArray


@cache
def first_years() -> FirstYears:
    """Enumerate the first years of the literature."""
    pmfs = [np.array(FEATURE_TABLE[name].pmf) for name in CITER_FEATURES]
    chances = np.einsum("ci,cj,ck->cijk", *pmfs)
    counts = np.argwhere(chances.max(axis=0) > _NEGLIGIBLE)
    often = np.array(frequencies("disruption"))
    rates = [
        [label_rates("disruption", c, (i, j, k)) for i, j, k in counts.tolist()] for c in range(3)
    ]
    joint = chances[:, *counts.T][..., None] * np.array(rates) / often
    of_all = joint.sum(axis=(0, 2))
    return FirstYears(counts, joint, joint.sum(axis=1), of_all / of_all.sum())
