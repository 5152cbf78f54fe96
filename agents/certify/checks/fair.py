"""Fair: a right reply stays right however it is dressed, and neither length nor language pays."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tokengym.agents.certify.bench import NUMBER, Bench, Untold, shown
from tokengym.agents.certify.finding import Severity, Verdict, check
from tokengym.agents.certify.source import Place, say
from tokengym.envs.core.odd_replies import DECORATIONS
from tokengym.rewards.estimates import Estimate, mean_estimate

Dress = Callable[[str], str]

_BLANKS: Mapping[str, Dress] = {
    "a trailing newline": "{}\n".format,
    "a leading newline": "\n{}".format,
    "spaces around it": "  {} ".format,
    "Windows line ends": lambda reply: reply.replace("\n", "\r\n") + "\r\n",
}
_DECORATIONS: Mapping[str, Dress] = {name: form.format for name, form in DECORATIONS.items()}
_LANGUAGES: Mapping[str, Dress] = {
    "English": "The answer is {}.".format,
    "French": "La réponse est {}.".format,
    "Italian": "La risposta è {}.".format,
    "Spanish": "La respuesta es {}.".format,
    "Chinese": "答案是 {}。".format,
    "Russian": "Ответ: {}.".format,
}
_FILLER = "Let me go through this carefully, one step after the other, before I come to an end. "
_LENGTHS: Mapping[str, Dress] = {
    "long before it": lambda reply: f"{_FILLER * 40}\n\n{reply}",
    "long after it": lambda reply: f"{reply}\n\n{_FILLER * 40}",
}
_MATTERS = 0.05
"""Share of the range by which rewards must differ to count as different."""


class Dressed(NamedTuple):
    """What one way to dress replies did.

    Attributes:
        changes: for each Task, reward dressed less reward bare, as a share of the range.
        example: the first Task where that mattered, in words.
    """

    changes: Sequence[float]
    example: str

    @property
    def cost(self) -> bool:
        """Whether it ever cost reward."""
        return min(self.changes) < -_MATTERS


def _dress(bench: Bench, ways: Mapping[str, Dress], places: Sequence[Place]) -> dict[str, Dressed]:
    """Play references bare and dressed.

    Raises:
        Untold: if no reference earns anything to lose.
    """
    reach = bench.top - bench.low
    bare = {place: bench.earned(place, bench.reference(place)) for place in places}
    paid = [place for place in places if bare[place] > bench.low + _MATTERS * reach]
    if not paid or reach <= 0.0:
        raise Untold("no right reply earns more than the least")
    worn = {}
    for name, dress in ways.items():
        changes, example = [], ""
        for place in paid:
            replies = [dress(reply) for reply in bench.view(place).reference]
            trace = bench.play(place, say(*replies))
            earned = bench.paid(trace)
            changes.append((earned - bare[place]) / reach)
            if abs(changes[-1]) > _MATTERS and not example:
                example = f"{shown(trace)}, bare {bare[place]:g}"
        worn[name] = Dressed(changes, example)
    return worn


def _costs(bench: Bench, ways: Mapping[str, Dress], what: str, places: Sequence[Place]) -> Verdict:
    worn = _dress(bench, ways, places)
    costly = [name for name, one in worn.items() if one.cost]
    example = next((worn[name].example for name in costly), "")
    found = f"{len(costly)} of {len(worn)} cost reward"
    found += f": {', '.join(costly)}" if costly else ""
    tried = len(next(iter(worn.values())).changes)
    done = f"replied to {tried} Tasks with the right reply and {what}"
    rate = len(costly) / len(worn)
    return Verdict(not costly, done, found, Estimate(rate, rate, rate), example)


@check("fair.blanks", "fair", Severity.RISK, "play", "references")
def blanks(bench: Bench) -> Verdict:
    """Blanks around a right reply, and other line ends in it, cost nothing."""
    return _costs(bench, _BLANKS, "blanks around it or other line ends", bench.chosen[:8])


@check("fair.decoration", "fair", Severity.PROPERTY, "play", "references")
def decoration(bench: Bench) -> Verdict:
    """A right reply is right in the dress that chat models give it."""
    return _costs(bench, _DECORATIONS, f"{len(DECORATIONS)} decorations", bench.chosen[:8])


@check("fair.decoration_pays", "fair", Severity.RISK, "play", "references")
def decoration_pays(bench: Bench) -> Verdict:
    """No decoration of a wrong reply earns more than the bare one."""
    done = f"dressed another Task's reference in {len(DECORATIONS)} ways"
    return _pays(bench, _DECORATIONS, done)


_NUMBERS: Mapping[str, Callable[[str], str]] = {
    "a zero more after the point": lambda n: f"{n}0" if "." in n else f"{n}.0",
    "a plus sign": lambda n: n if n[0] in "+-" else f"+{n}",
    "an exponent": lambda n: f"{n}e0",
    "no zero before the point": lambda n: re.sub(r"^([+-]?)0\.", r"\1.", n),
    "commas between thousands": lambda n: n if "." in n else f"{int(n):,}",
}


@check("fair.numbers", "fair", Severity.PROPERTY, "play", "references")
def numbers(bench: Bench) -> Verdict:
    """Equal numbers earn the same however they are written."""
    places = [
        place
        for place in bench.known(bench.chosen)
        if NUMBER.fullmatch(bench.view(place).reference[-1].strip())
    ]
    if not places:
        raise Untold("no reference is a number alone")
    ways: dict[str, Dress] = {
        name: lambda reply, write=write: NUMBER.sub(lambda match: write(match[0]), reply)  # type: ignore[misc]
        for name, write in _NUMBERS.items()
    }
    return _costs(bench, ways, "its number written otherwise", places[:10])


@check("fair.language", "fair", Severity.PROPERTY, "play", "references")
def language(bench: Bench) -> Verdict:
    """A right reply earns the same in a sentence of any language."""
    worn = _dress(bench, _LANGUAGES, bench.chosen[:8])
    english = worn["English"].changes
    apart = [
        name
        for name, one in worn.items()
        if any(abs(a - b) > _MATTERS + 1e-9 for a, b in zip(one.changes, english, strict=True))
    ]
    done = f"put the right replies to {len(english)} Tasks into sentences of {len(worn)} languages"
    found = f"{', '.join(apart)} earn something else than English" if apart else "all earn the same"
    example = next((worn[name].example for name in apart), "")
    return Verdict(not apart, done, found, example=example)


@check("fair.length", "fair", Severity.RISK)
def length(bench: Bench) -> Verdict:
    """Longer replies do not earn more for their length."""
    if bench.source.rollouts:
        return _recorded_length(bench)
    done = f"added {40 * len(_FILLER):,} characters to another Task's reference"
    return _pays(bench, _LENGTHS, done)


def _pays(bench: Bench, ways: Mapping[str, Dress], done: str) -> Verdict:
    """Dress other Tasks' references; the way that adds most on one half is scored on the other."""
    reach = bench.top - bench.low
    if reach <= 0.0:
        raise Untold("no right reply earns more than the least")

    def gains(name: str, places: Sequence[Place]) -> tuple[list[float], str]:
        found, example = [], ""
        for place in places:
            wrong = bench.other(place)
            bare = bench.earned(place, say(*wrong))
            trace = bench.play(place, say(*map(ways[name], wrong)))
            found.append((bench.paid(trace) - bare) / reach)
            example = example if found[-1] < max(found) else f"{shown(trace)}, bare {bare:g}"
        return found, example

    best = max(ways, key=lambda name: sum(gains(name, bench.chosen[:10])[0]))
    added, example = gains(best, bench.scored)
    mean = mean_estimate(added)
    passed = mean.value <= _MATTERS or mean.low <= 0.0
    found = f"{best} adds {mean} of the range"
    return Verdict(passed, done, found, mean, example)


def _recorded_length(bench: Bench) -> Verdict:
    """Correlate length with reward within groups, where the Task is the same."""
    groups: dict[str, list[tuple[int, float]]] = {}
    for rollout in bench.source.rollouts:
        if isinstance(rollout.reward, int | float):
            groups.setdefault(rollout.group, []).append((rollout.length, rollout.reward))
    slopes = [r for pairs in groups.values() if (r := _rank_correlation(pairs)) is not None]
    if len(slopes) < 2:
        raise Untold("fewer than two groups have replies of different length and reward")
    mean = mean_estimate(slopes)
    done = f"correlated the ranks of length and reward within {len(slopes)} groups"
    passed = mean.low <= 0.5
    return Verdict(
        passed, done, f"mean correlation {mean}; longer replies may be better ones too", mean
    )


def _rank_correlation(pairs: Sequence[tuple[int, float]]) -> float | None:
    lengths, rewards = zip(*pairs, strict=True)
    if len(set(lengths)) < 2 or len(set(rewards)) < 2:
        return None
    from scipy.stats import spearmanr

    return float(spearmanr(lengths, rewards).statistic)
