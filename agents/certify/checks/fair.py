"""Fair: a right reply stays right however it is dressed, and neither length nor language pays."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from tokengym.agents.certify.bench import TEXTS, Bench, Untold, shown
from tokengym.agents.certify.finding import CheckVerdict, Severity, check
from tokengym.agents.certify.source import TaskPlace, say
from tokengym.envs.core.odd_replies import DECORATIONS
from tokengym.rewards.estimates import Estimate, mean_estimate

Dress = Callable[[str], str]

_BLANKS: Mapping[str, Dress] = {
    "a trailing newline": "{}\n".format,
    "a leading newline": "\n{}".format,
    "spaces around it": "  {} ".format,
    "Windows line ends": lambda reply: reply.replace("\n", "\r\n") + "\r\n",
}
_LANGUAGES: Mapping[str, Dress] = {name: text.format for name, text in TEXTS["languages"].items()}
_FILLER = "Let me go through this carefully, one step after the other, before I come to an end. "
_LENGTHS: Mapping[str, Dress] = {
    "long before it": lambda reply: f"{_FILLER * 40}\n\n{reply}",
    "long after it": lambda reply: f"{reply}\n\n{_FILLER * 40}",
}
MATTERS = 0.05
"""Share of the range by which rewards must differ to count as different."""


class Dressed(NamedTuple):
    """Effect of one way to decorate replies.

    Attributes:
        changes: for each Task, reward dressed less reward bare, as a share of the range.
        example: the Task where that mattered most, in words.
    """

    changes: Sequence[float]
    example: str


def _dress(
    bench: Bench,
    ways: Mapping[str, Dress],
    places: Sequence[TaskPlace],
    replies: Callable[[TaskPlace], Sequence[str]],
) -> dict[str, Dressed]:
    """Play replies in the form that the source reads, and dressed around that."""
    form = bench.source.facts.form.format
    said = {place: tuple(map(form, replies(place))) for place in places}
    bare = {place: bench.earned(place, say(*said[place])) for place in places}
    worn = {}
    for name, dress in ways.items():
        traces = [bench.play(place, say(*map(dress, said[place]))) for place in places]
        changes = [(bench.paid(trace) - bare[trace.place]) / bench.reach for trace in traces]
        most = max(range(len(changes)), key=lambda at: abs(changes[at]))
        worn[name] = Dressed(changes, f"{shown(traces[most])}, bare {bare[places[most]]:g}")
    return worn


def _dress_right(
    bench: Bench, ways: Mapping[str, Dress], places: Sequence[TaskPlace]
) -> dict[str, Dressed]:
    """Play references that earn something to lose, bare and dressed.

    Raises:
        Untold: if none does.
    """
    least = bench.low + MATTERS * bench.reach
    paid = [place for place in places if bench.earned(place, bench.reference(place)) > least]
    if not paid:
        raise Untold("no right reply earns more than the least")
    return _dress(bench, ways, paid, lambda place: bench.view(place).reference)


def _costs(bench: Bench, ways: Mapping[str, Dress]) -> CheckVerdict:
    worn = _dress_right(bench, ways, bench.chosen[:8])
    costly = [name for name, one in worn.items() if min(one.changes) < -MATTERS]
    fragile = costly == ["Windows line ends"]
    example = next((worn[name].example for name in costly), "")
    found = f"{len(costly)} of {len(worn)} cost reward"
    found += f": {', '.join(costly)}" if costly else ""
    rate = len(costly) / len(worn)
    estimate, severity = Estimate(rate, rate, rate), Severity.FRAGILE if fragile else None
    return CheckVerdict(not costly, found, estimate, example, severity=severity)


@check("fair.blanks", "fair", Severity.RISK, "play", "references")
def blanks(bench: Bench) -> CheckVerdict:
    """Blanks around a right reply, and other line ends in it, cost nothing."""
    return _costs(bench, _BLANKS)


@check("fair.decoration", "fair", Severity.PROPERTY, "play", "references")
def decoration(bench: Bench) -> CheckVerdict:
    """A right reply is right with the decoration that chat models add."""
    return _costs(bench, _decorations(bench))


@check("fair.decoration_pays", "fair", Severity.RISK, "play", "references")
def decoration_pays(bench: Bench) -> CheckVerdict:
    """No decoration of a wrong reply earns more than the bare one."""
    return _pays(bench, _decorations(bench))


def _decorations(bench: Bench) -> dict[str, Dress]:
    """Return decorations, without those that mark an answer as the source's own form does."""
    mark = bench.source.facts.form.format("\n").partition("\n")[0].strip()
    kept = {name: form for name, form in DECORATIONS.items() if not mark or mark not in form}
    return {name: partial(_decorate, form) for name, form in kept.items()}


def _decorate(form: str, reply: str) -> str:
    """Decorate a reply; a box holds one line, and models put none around several."""
    return reply if form == DECORATIONS["a box"] and "\n" in reply else form.format(reply)


@check("fair.language", "fair", Severity.PROPERTY, "play", "references")
def language(bench: Bench) -> CheckVerdict:
    """A right reply earns the same in a sentence of any language."""
    worn = _dress_right(bench, _LANGUAGES, bench.chosen[:8])
    english = worn["English"].changes
    leads = {name: np.subtract(one.changes, english) for name, one in worn.items()}
    apart = [name for name, lead in leads.items() if abs(lead).max() > MATTERS + 1e-9]
    found = f"{', '.join(apart)} earn something else than English" if apart else "all earn the same"
    example = next((worn[name].example for name in apart), "")
    return CheckVerdict(not apart, found, example=example)


@check("fair.length", "fair", Severity.RISK)
def length(bench: Bench) -> CheckVerdict:
    """Longer replies do not earn more for their length."""
    return _recorded_length(bench) if bench.source.rollouts else _pays(bench, _LENGTHS)


def _pays(bench: Bench, ways: Mapping[str, Dress]) -> CheckVerdict:
    """Dress other Tasks' references; the way that adds most on one half is scored on the other."""
    first = _dress(bench, ways, bench.chosen[:10], bench.other)
    best = max(ways, key=lambda name: sum(first[name].changes))
    added, example = _dress(bench, {best: ways[best]}, bench.scored, bench.other)[best]
    mean = mean_estimate(added)
    passed = mean.value <= MATTERS or mean.low <= 0.0
    return CheckVerdict(passed, f"{best} adds {mean} of the range", mean, example)


def _recorded_length(bench: Bench) -> CheckVerdict:
    """Correlate length with reward within groups, where the Task is the same."""
    groups: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for rollout in bench.source.rollouts:
        if isinstance(rollout.reward, int | float):
            groups[rollout.group].append((rollout.length, rollout.reward))
    slopes = [r for pairs in groups.values() if (r := _rank_correlation(pairs)) is not None]
    if len(slopes) < 2:
        raise Untold("fewer than two groups have replies of different length and reward")
    mean = mean_estimate(slopes)
    found = f"mean correlation of length and reward in {len(slopes)} groups {mean}"
    return CheckVerdict(mean.low <= 0.5, found, mean)


def _rank_correlation(pairs: Sequence[tuple[int, float]]) -> float | None:
    lengths, rewards = zip(*pairs, strict=True)
    if len(set(lengths)) < 2 or len(set(rewards)) < 2:
        return None
    from scipy.stats import spearmanr

    return float(spearmanr(lengths, rewards).statistic)
