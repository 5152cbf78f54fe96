"""Exact beliefs where challengers of several kinds hold notes that the predictor cannot check.

An honest challenger says what its notes support, an adversary what speaks against the predictor's
label, a careless one what an honest one would say if its columns were in order (`evidence.KINDS`).
What it noted of earlier papers is evidence of its columns; what it says of this one is evidence of
the kind and of the paper at once: all first years, a finite number, of which each kind would say
just that.
"""

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

from tokengym.envs.disruption.claims import Claim, Fact
from tokengym.envs.disruption.evidence import CITER_FEATURES, KINDS, Evidence
from tokengym.envs.disruption.grammar import Argument
from tokengym.envs.disruption.judge import LITERATURE
from tokengym.envs.disruption.labels import DISRUPTION_LABELS
from tokengym.envs.disruption.literature import (
    FEATURE_TABLE,
    ORDERS,
    Probabilities,
    class_likelihood,
    class_posterior,
    frequencies,
    label_rates,
    normalised,
)
from tokengym.rewards.arrays import Floats, Ints
from tokengym.rewards.debate import MOST_CHALLENGER_CLAIMS

_NEGLIGIBLE = 1e-10
"""First years this improbable in every class are left out of sums."""


class Voice(NamedTuple):
    """A kind of challenger with its columns in some order.

    Attributes:
        kind: one of `KINDS`.
        columns: positions in `CITER_FEATURES` of what stands in the columns of its notes.
        share: of all challengers.
    """

    kind: str
    columns: tuple[int, ...]
    share: float

    def noted(self, counts: Sequence[int]) -> tuple[int, ...]:
        """Return what its notes say of a first year."""
        return tuple(counts[column] for column in self.columns)

    def true(self, notes: Sequence[int]) -> tuple[int, ...]:
        """Return the first year of which its notes say that."""
        return tuple(notes[self.columns.index(axis)] for axis in range(3))


_COLUMNS = {"honest": ORDERS[:1], "adversarial": ORDERS[:1], "careless": ORDERS[1:]}
VOICES = tuple(
    Voice(kind, columns, count / sum(KINDS.values()) / len(_COLUMNS[kind]))
    for kind, count in KINDS.items()
    for columns in _COLUMNS[kind]
)
"""Every kind with every order that its columns may have."""

Message = tuple[str | None, frozenset[Claim]]


def message(argument: Argument) -> Message:
    """Return what an argument says, whatever the order of its claims."""
    return argument.label, frozenset(argument.claims)


@lru_cache(maxsize=65536)
def said_by(kind: str, counts: tuple[int, ...], label: int) -> Argument:
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
    beliefs = np.array([_belief(axis, count) for axis, count in enumerate(counts)])
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


def argument_of(evidence: Evidence, label: int) -> Argument:
    """Return what the scripted challenger with its notes argues after a label; see `said_by`."""
    return said_by(evidence.kind, _counts(evidence.notes), label)


def after(evidence: Evidence, label: int, argument: Argument) -> Probabilities:
    """Return the posterior of the disruption labels after an argument of a kind unknown.

    An argument that no kind makes says nothing.

    Args:
        evidence: what the predictor is shown.
        label: position of the label it chose.
        argument: what the challenger said.
    """
    return normalised(joint_after(evidence, label, argument).sum(axis=0))


class Replies(NamedTuple):
    """All arguments that follow a label.

    Attributes:
        messages: what they say.
        chances: probability of each, shape (m,).
        beliefs: posterior of the disruption labels after each, shape (m, label).
    """

    messages: tuple[Message, ...]
    chances: Floats
    beliefs: Floats


def replies_to(evidence: Evidence, label: int) -> Replies:
    """Enumerate what a challenger of unknown kind may say against a label.

    Args:
        evidence: what the predictor is shown.
        label: position of the label it chose.
    """
    told = _told(label)
    classes = np.array(class_posterior(evidence, "disruption"))
    weights_ML = np.einsum("v,vmcl,c->ml", voices_given(evidence), told.joint, classes)
    chances = weights_ML.sum(axis=1)
    possible = chances > 0.0
    beliefs = weights_ML[possible] / chances[possible, None]
    messages = tuple(m for m, heard in zip(told.places, possible, strict=True) if heard)
    return Replies(messages, chances[possible] / chances.sum(), beliefs)


def voices_given(evidence: Evidence) -> Floats:
    """Return the probability of each of `VOICES` given what it noted of earlier papers."""
    weights = np.array([voice.share for voice in VOICES])
    for paper in evidence.record:
        notes, place = _counts(paper["notes"]), DISRUPTION_LABELS.index(paper["label"])
        weights *= [_joint(voice.true(notes))[:, place].sum() for voice in VOICES]
        weights /= weights.sum()
    return weights


def paper_given_notes(evidence: Evidence) -> Probabilities:
    """Return the posterior of the labels as a challenger holds it, which knows its aim and notes.

    One that is paid to help does not know whether its columns are in order.

    Args:
        evidence: with notes.
    """
    misleads = evidence.kind == "adversarial"
    known = sum(
        weight * _joint(voice.true(_counts(evidence.notes)))
        for voice, weight in zip(VOICES, voices_given(evidence), strict=True)
        if (voice.kind == "adversarial") == misleads
    )
    return normalised(np.array(class_posterior(evidence, "disruption")) @ known)


@lru_cache(maxsize=65536)
def _joint(counts: tuple[int, int, int]) -> Floats:
    """Return P(first year, label, paper kept | class) up to a factor, shape (class, label)."""
    shown = Evidence("", "", 0, "", dict(zip(CITER_FEATURES, counts, strict=True)))
    rates = np.array([label_rates("disruption", c, counts) for c in range(3)])
    chance = np.array(class_likelihood(shown, "disruption"))
    return np.asarray(chance[:, None] * rates / np.array(frequencies("disruption")))


def _counts(notes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(notes[name] for name in CITER_FEATURES)


def _exact(counts: Sequence[int], axes: Sequence[int]) -> tuple[Claim, ...]:
    return tuple(Fact(CITER_FEATURES[axis], "=", float(counts[axis])) for axis in axes)


@cache
def _belief(axis: int, count: int) -> Probabilities:
    """Return what the judge believes given one count."""
    return LITERATURE.believe(_exact((count,) * 3, [axis]), "disruption")


def joint_after(evidence: Evidence, label: int, argument: Argument) -> Floats:
    """Return P(one of `VOICES`, label of the paper) after an argument, up to a factor; see `after`.

    Shape (voice, label).
    """
    told = _told(label)
    place = told.places.get(message(argument))
    said = told.joint.sum(axis=1) if place is None else told.joint[:, place]
    classes = np.array(class_posterior(evidence, "disruption"))
    weights: Floats = voices_given(evidence)[:, None] * np.einsum("c,vcl->vl", classes, said)
    return weights


class _Told(NamedTuple):
    """What each voice says against a label.

    Attributes:
        places: position of each message.
        joint: P(message, label, paper kept | voice, class) up to a factor, shape (voice, m, class,
            label).
    """

    places: Mapping[Message, int]
    joint: Floats


@cache
def _told(label: int) -> _Told:
    counts, joint = first_years()
    rows = [tuple(row) for row in counts.tolist()]
    places: dict[Message, int] = {}
    told = []
    for voice in VOICES:
        against = label if voice.kind == "adversarial" else 0  # others do not heed the label
        said = [message(said_by(voice.kind, voice.noted(row), against)) for row in rows]
        told.append([places.setdefault(one, len(places)) for one in said])
    by_voice = np.zeros((len(VOICES), len(places), 3, 3))
    for v, found in enumerate(told):
        np.add.at(by_voice[v], found, joint)
    return _Told(places, by_voice)


@cache
def first_years() -> tuple[Ints, Floats]:
    """Enumerate the first years of the literature whose probability is not negligible.

    Returns:
        n_i, n_j and n_k, shape (n, 3); P(counts, label, paper kept | class) up to a factor, shape
        (n, class, label).
    """
    pmfs = [np.array(FEATURE_TABLE[name].pmf) for name in CITER_FEATURES]
    chances = np.einsum("ci,cj,ck->cijk", *pmfs)
    counts = np.argwhere(chances.max(axis=0) > _NEGLIGIBLE)
    return counts, np.array([_joint((i, j, k)) for i, j, k in counts.tolist()])
