"""What each kind of challenger says and gives away, against an enumeration of all first years."""

import itertools
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.contract.planners.disruption import Predictor, followed, says
from tests.disruption.debates import make
from tokengym.envs.disruption.claims import Claim, Fact
from tokengym.envs.disruption.evidence import KINDS, NOTED_LEVELS, Evidence
from tokengym.envs.disruption.generator import draw_evidence
from tokengym.envs.disruption.grammar import Argument
from tokengym.envs.disruption.inference import (
    VOICES,
    after,
    argument_of,
    joint_after,
    message,
    replies_to,
    said_by,
)
from tokengym.envs.disruption.labels import DISRUPTION_LABELS
from tokengym.envs.disruption.literature import class_posterior, posterior

Floats = npt.NDArray[np.float64]

N, M = ("n_i", "n_j", "n_k"), ("m_i", "m_j", "m_k")
FEW: Mapping[tuple[str, ...], int] = {N: 28, M: 40}
"""Counts from which on they are left out; all of those have a chance of 1e-8."""
ORDERS = list(itertools.permutations(range(3)))
labels = st.integers(0, 2)
papers = st.tuples(st.integers(0, 2**32), st.sampled_from(NOTED_LEVELS)).map(
    lambda drawn: draw_evidence(np.random.default_rng(drawn[0]), drawn[1])
)


def exactly(name: str, count: float) -> Claim:
    return Fact(name, "=", float(count))


@pytest.mark.nightly
@pytest.mark.parametrize("names", [N, M])
def test_challengers_say_what_a_reader_of_the_prompt_expects(names: tuple[str, ...]) -> None:
    """Of 300 notes, many of which hold a count that no class makes likely, such as 18, 7 and 6."""
    noted = np.random.default_rng(0).integers(0, 24, (300, 3))
    readings = {"honest": None, "careless": None, **{f"adversarial {k}": k for k in range(3)}}
    for kind, against in readings.items():
        expected = says(names[0][0], noted, against)
        for counts, (argued, stated) in zip(noted.tolist(), expected, strict=True):
            argument = said_by(kind.split()[0], counts, against or 0, names)
            claims = tuple(exactly(names[k], counts[k]) for k in sorted(stated))
            assert argument == Argument(DISRUPTION_LABELS[argued], claims)


@pytest.mark.nightly
@settings(max_examples=4)
@given(st.integers(0, 10**6), st.sampled_from(NOTED_LEVELS), labels, st.integers(0, 30))
def test_a_reader_of_the_prompt_finds_the_same_probabilities(
    index: int, level: str, label: int, place: int
) -> None:
    """Of each message and, after it, of each label."""
    world = make(level)
    task, reader = world.task("test", index), Predictor()
    reader.read_paper(world.start(task).text)
    reader.label = label
    replies = replies_to(world.compiled.evidence, label)
    likeliest = int(np.argsort(-replies.chances)[place])
    argued, claims = replies.messages[likeliest]
    stated = {names_of(world.compiled.evidence).index(c.feature): int(c.value) for c in claims}
    joint_L = reader.spoken(DISRUPTION_LABELS.index(argued), stated)
    assert joint_L.sum() == pytest.approx(replies.chances[likeliest], rel=1e-5)
    assert joint_L / joint_L.sum() == pytest.approx(replies.beliefs[likeliest], abs=1e-5)


@cache
def joint(names: tuple[str, ...], counts: tuple[int, ...], seen: tuple[int, ...]) -> Floats:
    """P(counts of some years, label, kept | class) up to a factor, shape (class, label).

    Args:
        names: of the counts.
        counts: of the years.
        seen: the first year's counts, or none.
    """
    return np.asarray(followed(names[0][0], np.array([counts]), seen or None)[:, 0])


def names_of(evidence: Evidence) -> tuple[str, ...]:
    return tuple(evidence.notes)


def kinds_given(evidence: Evidence, label: int, argument: Argument) -> dict[str, float]:
    weights_V = joint_after(evidence, label, argument).sum(axis=1)
    shares = dict.fromkeys(KINDS, 0.0)
    for voice, weight in zip(VOICES, weights_V / weights_V.sum(), strict=True):
        shares[voice.kind] += float(weight)
    return shares


def in_columns(evidence: Evidence, order: tuple[int, ...], notes: Sequence[int]) -> Floats:
    """P(counts, label, kept | class) of the paper of which notes with such columns say that."""
    true = [0, 0, 0]
    for column, axis in enumerate(order):
        true[axis] = notes[column]
    names = names_of(evidence)
    return joint(names, tuple(true), tuple(evidence.facts[n] for n in N) if names == M else ())


def record_chance(evidence: Evidence, order: tuple[int, ...]) -> float:
    """P(notes of earlier papers, their labels | columns)."""
    chance, names = 1.0, names_of(evidence)
    for paper in evidence.record:
        true = [0, 0, 0]
        for column, axis in enumerate(order):
            true[axis] = paper["notes"][names[column]]
        of_notes = joint(names, tuple(true), ())
        chance *= float(of_notes.sum(axis=0)[DISRUPTION_LABELS.index(paper["label"])])
    return chance


@settings(max_examples=15)
@given(papers, labels)
def test_beliefs_average_to_the_prior_over_all_statements(evidence: Evidence, label: int) -> None:
    replies = replies_to(evidence, label)
    assert replies.chances.sum() == pytest.approx(1.0)
    own = posterior(evidence, "disruption")
    assert replies.chances @ replies.beliefs == pytest.approx(own, abs=1e-4)
    argument = argument_of(evidence, label)
    place = replies.messages.index(message(argument))
    assert replies.beliefs[place] == pytest.approx(after(evidence, label, argument))


@pytest.mark.nightly
@settings(max_examples=6)
@given(papers, labels, st.permutations(range(3)), st.sampled_from(["=", ">=", "<="]))
def test_what_no_kind_says_is_read_for_what_it_states(
    evidence: Evidence, label: int, axes: list[int], op: str
) -> None:
    """All counts of which the claims are true, in whatever order of the columns."""
    names, notes = names_of(evidence), [*evidence.notes.values()]
    first, second, _ = axes
    claims = (exactly(names[first], notes[first]), Fact(names[second], op, float(notes[second])))
    classes, known = np.array(class_posterior(evidence, "disruption")), np.zeros(3)
    near = {">=": range(notes[second], notes[second] + 60), "<=": range(notes[second] + 1)}
    free = [near.get(op, [notes[second]]), range(FEW[names])]
    for order in ORDERS:
        share = KINDS["careless"] / 5 if order != ORDERS[0] else 2.0
        seen = share * record_chance(evidence, order)
        for told, kept_back in itertools.product(*free):
            said = dict(zip(axes, (notes[first], told, kept_back), strict=True))
            there = in_columns(evidence, order, [said[k] for k in range(3)])
            known = known + seen * (classes @ there)
    believed = after(evidence, label, Argument(None, claims))
    assert believed == pytest.approx(tuple(known / known.sum()), abs=1e-3)


@pytest.mark.parametrize("level", NOTED_LEVELS)
@pytest.mark.parametrize(
    "values", [(), (300.0, 300.0)], ids=["nothing stated", "what no notes say"]
)
def test_what_states_nothing_possible_changes_nothing(
    values: tuple[float, ...], level: str
) -> None:
    """Not a division of nothing by nothing."""
    evidence = draw_evidence(np.random.default_rng(0), level)
    own = posterior(evidence, "disruption")
    claims = tuple(map(exactly, names_of(evidence), values))
    in_order, *mixed_up = (record_chance(evidence, order) for order in ORDERS)
    chance = {kind: in_order * KINDS[kind] for kind in ("honest", "adversarial")}
    chance["careless"] = sum(mixed_up) / 5 * KINDS["careless"]
    shares = {kind: found / sum(chance.values()) for kind, found in chance.items()}
    for label in range(3):
        argument = Argument(DISRUPTION_LABELS[(label + 1) % 3], claims)
        assert after(evidence, label, argument) == pytest.approx(own, abs=1e-4)
        assert kinds_given(evidence, label, argument) == pytest.approx(shares, abs=1e-4)
