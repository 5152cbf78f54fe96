"""Exact beliefs where challengers of several types hold notes that the predictor cannot check.

An honest challenger says what its notes support, an adversary what speaks against the predictor's
label, a careless one what an honest one would say if its columns were in order (`evidence.KINDS`).
Its notes on earlier papers are evidence of its columns; its statement on this one is evidence of
the kind and of the paper at once: all counts, a finite number, for which each type would say just
that. A statement that no type would make is taken literally: all counts for which it is true.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from tokengym.envs.disruption.claims import Claim, Fact
from tokengym.envs.disruption.evidence import KINDS, Evidence
from tokengym.envs.disruption.grammar import Argument
from tokengym.envs.disruption.labels import DISRUPTION_LABELS
from tokengym.envs.disruption.literature import (
    FEATURE_TABLE,
    ORDERS,
    SHARES,
    Probabilities,
    class_posterior,
    counted,
    frequencies,
    label_rates,
    normalised,
)
from tokengym.rewards.arrays import Flags, Floats, Ints

_NEGLIGIBLE = 1e-10
"""Counts this improbable in every class are left out of sums."""
_NOTHING = Evidence("", "", 0, "", {})

Names = tuple[str, ...]
"""The features that notes are about: citers of some years by kind."""


class Voice(NamedTuple):
    """A kind of challenger with its columns in some order.

    Attributes:
        kind: one of `KINDS`.
        columns: positions among the counts of what stands in the columns of its notes.
        share: of all challengers.
    """

    kind: str
    columns: tuple[int, ...]
    share: float


_COLUMNS = {"honest": ORDERS[:1], "adversarial": ORDERS[:1], "careless": ORDERS[1:]}
VOICES = tuple(
    Voice(kind, columns, count / sum(KINDS.values()) / len(_COLUMNS[kind]))
    for kind, count in KINDS.items()
    for columns in _COLUMNS[kind]
)
"""Every kind with every order that its columns may have."""
_ORDERS = np.array([voice.columns for voice in VOICES])
_BACK = np.argsort(_ORDERS, axis=1)

Message = tuple[str | None, frozenset[Claim]]


def message(argument: Argument) -> Message:
    """Return what an argument says, whatever the order of its claims."""
    return argument.label, frozenset(argument.claims)


def _say(kind: str, noted: Ints, label: int, names: Names) -> tuple[Ints, Ints]:
    """Return the label that a kind argues for, and the count that it does not state.

    Of each of notes of shape (n, 3); see `said_by`.
    """
    alone, together = _opinions(names)
    places = tuple(np.minimum(noted, alone.shape[1] - 1).T)
    beliefs = np.stack([alone[axis, place] for axis, place in enumerate(places)])
    if kind == "adversarial":
        beliefs /= beliefs[..., [label]]
        beliefs[..., label] = 0.0
        argued = beliefs.max(axis=0).argmax(axis=-1)
    else:
        argued = together[places].argmax(axis=-1)
    favour = np.take_along_axis(beliefs, argued[None, :, None], axis=-1)[..., 0]
    return argued, np.argsort(-favour, axis=0, kind="stable")[-1]


def said_by(kind: str, counts: Sequence[int], label: int, names: Names) -> Argument:
    """Return the argument of a scripted challenger: a label, and two counts of its notes.

    An honest or careless one argues for the label that is likeliest given all three counts and
    nothing else, by the counts that make it likeliest by themselves. An adversary argues for
    another label than the predictor's, the one that a single count most favours over it, by the
    counts that do so most.

    Args:
        kind: one of `KINDS`.
        counts: what its notes say, in the order of `names`.
        label: position of the predictor's label.
        names: what is counted.
    """
    (argued,), (kept_back,) = _say(kind, np.array([counts]), label, names)
    return _argument(int(argued), int(kept_back), counts, names)


def _argument(argued: int, kept_back: int, counts: Sequence[int], names: Names) -> Argument:
    # In order of the counts: an order by what they favour would tell the kinds apart.
    stated = [k for k in range(3) if k != kept_back]
    claims = tuple(Fact(names[k], "=", float(counts[k])) for k in stated)
    return Argument(DISRUPTION_LABELS[argued], claims)


def argument_of(evidence: Evidence, label: int) -> Argument:
    """Return what the scripted challenger with its notes argues after a label; see `said_by`."""
    names = evidence.noted_features
    return said_by(evidence.kind, [evidence.notes[name] for name in names], label, names)


def after(evidence: Evidence, label: int, argument: Argument) -> Probabilities:
    """Return the posterior of the disruption labels after an argument of a kind unknown.

    Args:
        evidence: what the predictor is shown.
        label: position of the label it chose.
        argument: what the challenger said.
    """
    return normalised(joint_after(evidence, label, argument).sum(axis=0))


def at_face_value(evidence: Evidence, argument: Argument) -> Probabilities | None:
    """Return the posterior of who believes what an argument states, whoever makes it.

    `None` if no likely counts bear it out.
    """
    names = evidence.noted_features
    in_order = next(place for place, voice in enumerate(VOICES) if voice.kind == "honest")
    counts = possible_counts(names)[_holding(argument, names)[in_order]]
    return normalised(_joint(evidence, counts, names).sum(axis=0)) if len(counts) else None


def joint_after(evidence: Evidence, label: int, argument: Argument) -> Floats:
    """Return P(one of `VOICES`, label of the paper) after an argument, up to a factor; see `after`.

    Shape (voice, label).
    """
    names = evidence.noted_features
    counts, told = possible_counts(names), _told(label, names)
    place = told.places.get(message(argument))
    said = _holding(argument, names) if place is None else told.said == place
    some = said.any(axis=0)
    spoken = said[:, some] @ _joint(evidence, counts[some], names)
    return np.asarray(voices_given(evidence)[:, None] * spoken)


def _holding(argument: Argument, names: Names) -> Flags:
    """Return for which counts each voice's notes support an argument's claims, shape (voice, n).

    All, if of none.
    """
    counts = possible_counts(names)
    found = np.ones((len(VOICES), len(counts)), dtype=bool)
    for claim in argument.claims:
        if isinstance(claim, Fact) and claim.feature in names:
            low, high = claim.interval()
            noted = counts[:, _ORDERS[:, names.index(claim.feature)]].T
            found &= (noted >= low) & (noted <= high)
    return found if found.any() else ~found


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
    names = evidence.noted_features
    told = _told(label, names)
    voices_V = voices_given(evidence)[:, None]
    joint_LN = np.ascontiguousarray(_joint(evidence, possible_counts(names), names).T)
    heard = [np.bincount(told.said.ravel(), (voices_V * each).ravel()) for each in joint_LN]
    weights_ML = np.stack(heard, axis=1)
    chances = weights_ML.sum(axis=1)
    return Replies((*told.places,), chances / chances.sum(), weights_ML / chances[:, None])


def voices_given(evidence: Evidence) -> Floats:
    """Return the probability of each of `VOICES` given what it noted of earlier papers."""
    names = evidence.noted_features
    weights = np.array([voice.share for voice in VOICES])
    for paper in evidence.record:
        true = np.array([paper["notes"][name] for name in names])[_BACK]
        weights *= _joint(_NOTHING, true, names)[:, DISRUPTION_LABELS.index(paper["label"])]
        weights /= weights.sum()
    return weights


def _joint(evidence: Evidence, counts: Ints, names: Names) -> Floats:
    """Return P(counts, label, paper kept | what is shown) up to a factor, shape (n, label).

    Args:
        evidence: what is shown of the paper.
        counts: of the years that the notes are about, shape (n, 3).
        names: what is counted.
    """
    seen, left = counted(evidence)
    rates = label_rates("disruption", (counts + seen).T, left - SHARES[names])
    tables = zip(names, counts.T, strict=True)
    chances = [np.transpose(FEATURE_TABLE[name].pmf)[column] for name, column in tables]
    weights = np.prod(chances, axis=0) * class_posterior(evidence, "disruption")
    return np.asarray(np.einsum("nc,cnl->nl", weights, rates) / frequencies("disruption"))


class _Opinions(NamedTuple):
    """Likelihoods of the labels given counts of some years, up to the largest count of the tables.

    Attributes:
        alone: posterior given one of them, shape (count, value, label).
        together: the same given all three, up to a factor, shape (value, value, value, label).
    """

    alone: Floats
    together: Floats


@cache
def _opinions(names: Names) -> _Opinions:
    pmfs = [np.array(FEATURE_TABLE[name].pmf) for name in names]
    counts = np.ogrid[tuple(slice(pmf.shape[1]) for pmf in pmfs)]
    rates = label_rates("disruption", counts, 1.0 - SHARES[names]) / frequencies("disruption")
    together = np.einsum("ci,cj,ck,cijkl->ijkl", *pmfs, rates)
    alone = np.stack([together.sum(axis=axes) for axes in ((1, 2), (0, 2), (0, 1))])
    return _Opinions(alone / alone.sum(axis=-1, keepdims=True), together)


@cache
def possible_counts(names: Names) -> Ints:
    """Enumerate the counts of some years whose probability is not negligible, shape (n, 3)."""
    chances = np.einsum("ci,cj,ck->cijk", *[FEATURE_TABLE[name].pmf for name in names])
    return np.asarray(np.argwhere(chances.max(axis=0) > _NEGLIGIBLE))


class _Told(NamedTuple):
    """Evidence of each voice against a label.

    Attributes:
        places: position of each message.
        said: position of the statement for each of `possible_counts`, shape (voice, n).
    """

    places: Mapping[Message, int]
    said: Ints


@cache
def _told(label: int, names: Names) -> _Told:
    counts, base = possible_counts(names), 1 + int(possible_counts(names).max())
    codes = []
    for voice in VOICES:
        noted = counts[:, voice.columns]
        argued, kept_back = _say(voice.kind, noted, label, names)
        noted[np.arange(len(noted)), kept_back] = 0
        codes.append(np.ravel_multi_index((argued, kept_back, *noted.T), (3, 3, *[base] * 3)))
    found, said = np.unique(codes, return_inverse=True)
    spoken = np.transpose(np.unravel_index(found, (3, 3, *[base] * 3))).tolist()
    messages = [message(_argument(a, back, stated, names)) for a, back, *stated in spoken]
    return _Told(
        dict(zip(messages, range(len(messages)), strict=True)), said.reshape(len(codes), -1)
    )
