"""Strategies without understanding: rules with parameters.

They are made of the replies of a world's own simple policies, so they fit any world: of a reply, or
of lines of any replies, each number is scaled, shifted, and changed by weighted numbers of the text
answered, beginning with the turn's number; above a threshold of such a number, another strategy
replies.
`search_space` chooses the best of many by successive halving, then by changing parameters.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, NamedTuple, Self, TypeVar

import numpy as np

from tokengym.agents.certify.source import say
from tokengym.envs.core.display import shorten
from tokengym.rewards.arrays import Floats

T = TypeVar("T")
Who = TypeVar("Who")

_NUMBER = re.compile(r"(?<![A-Za-z0-9_.])[+-]?[0-9]+(?:\.[0-9]+)?")
_MOST_LINES = 4
_DEPTH = 2
"""Most thresholds, one above the other."""
_LINES_KEPT = 400
_PLACES = 40
"""Numbers of a text that are looked at, from its beginning and from its end."""
_LARGEST = 1e9
"""Largest number in a reply, however large those of a text are."""
_KINDS = {"rule": 0.6, "lines": 0.25, "number": 0.1, "stop": 0.05}
"""How often strategies are drawn that begin with each."""

_KEPT = 0.1
"""Share of the strategies that each round but the last keeps."""
_SHARES = (0.1, 0.3, 1.0)
"""Of the Tasks, what these rounds play."""
_FEWEST = 5
"""Tasks on which strategies are compared at least."""
_ROUNDS, _PARENTS, _VARIANTS = 8, 3, 4
"""Rounds in which parameters are varied, of how many strategies, and variants of each."""

Replies = Mapping[str, Sequence[str]]
"""Replies of each simple rule in an episode of the same Task, by its name."""


@dataclass(frozen=True)
class Strategy:
    """How to reply: the text, and how its numbers are changed.

    Attributes:
        space: what the parameters are drawn from.
        rule: the simple rule whose reply it is, if any.
        fixed: the text otherwise; `None` ends the episode by the token budget.
        scale: factor of the numbers.
        shift: what is added to them.
        weights: by place in the text, the factor of the number there that is added.
        above: place in the text, value, and who replies where the number there is above it.
    """

    space: "StrategySpace"
    rule: str = ""
    fixed: str | None = None
    scale: float = 1.0
    shift: float = 0.0
    weights: Mapping[int, float] = field(default_factory=dict)
    above: "tuple[int, float, Strategy] | None" = None

    def reply(self, text: str, turn: int, simple: Replies) -> str | None:
        """Reply to a text at a turn, given the simple rules' replies."""
        shown = _numbers(text, turn) if self.weights or self.above else []
        if self.above is not None and _at_place(shown, self.above[0]) > self.above[1]:
            return self.above[2].reply(text, turn, simple)
        said = say(*simple[self.rule])(text, turn) if self.rule else self.fixed
        if said is None or (self.scale, self.shift, *self.weights) == (1.0, 0.0):
            return said
        added = self.shift + sum(w * _at_place(shown, place) for place, w in self.weights.items())

        def change(match: re.Match[str]) -> str:
            value = max(-_LARGEST, min(_LARGEST, self.scale * float(match[0]) + added))
            return f"{value:.3f}" if "." in match[0] else str(round(value))

        return _NUMBER.sub(change, said)

    def vary(self, rng: np.random.Generator) -> Self:
        """Return a strategy some of whose parameters are changed a little."""

        def step() -> float:
            return 0.2 * float(rng.normal()) if rng.random() < 0.4 else 0.0

        above = self.space.draw_threshold(rng, 0) if rng.random() < 0.1 else self.above
        if above is not None and rng.random() < 0.5:
            above = (*above[:2], above[2].vary(rng))
        scale = self.scale * math.exp(step())
        shift = self.shift + step() * self.space.spreads[self.rule]
        varied = replace(self, scale=scale, shift=shift, above=above)
        return varied.weighted(rng) if rng.random() < 0.4 else varied

    def weighted(self, rng: np.random.Generator) -> Self:
        """Return a strategy with one more number of the text in it, about its mean."""
        if not self.space.places:
            return self
        place = int(rng.choice(list(self.space.places)))
        values = self.space.places[place]
        deviation = self.space.spreads[self.rule]
        weight = 0.3 * float(rng.normal()) * deviation / float(values.std())
        weights = {**self.weights, place: self.weights.get(place, 0.0) + weight}
        return replace(self, weights=weights, shift=self.shift - weight * float(values.mean()))

    def __str__(self) -> str:
        """Describe what the strategy does, not how it was drawn."""
        if self.rule:
            changed = bool(self.weights) or (self.scale, self.shift) != (1, 0)
            words = "giving every Task the right reply to one" + ", its numbers changed" * changed
        elif self.fixed is None:
            words = "ending the episode by the token budget"
        else:
            words = f"always answering {shorten(repr(self.fixed))}"
        return words + ", or another reply by a number of the text" * (self.above is not None)


class StrategySpace(NamedTuple):
    """Draws strategies.

    Attributes:
        lines: lines of the rules' replies.
        spreads: standard deviation of the numbers in each rule's replies, and in all, under "".
        places: at each place of the texts where numbers vary, its numbers.
    """

    lines: Sequence[str]
    spreads: Mapping[str, float]
    places: Mapping[int, Floats]

    @classmethod
    def of(cls, texts: Sequence[Sequence[str]], episodes: Sequence[Replies]) -> Self:
        """Learn from the texts to answer in each episode, and from replies of the simple rules."""
        replies = {
            rule: [said for episode in episodes for said in episode[rule]] for rule in episodes[0]
        }
        replies[""] = [said for spoken in replies.values() for said in spoken]
        lines = dict.fromkeys(line for said in replies[""] for line in said.splitlines() if line)
        shown = [_numbers(text, turn) for asked in texts for turn, text in enumerate(asked)]
        near = range(-_PLACES, _PLACES)
        rows = {at: [row[at] for row in shown if -len(row) <= at < len(row)] for at in near}
        places = {at: np.array(row) for at, row in rows.items()}
        numbers = {rule: _numbers("\n".join(said))[1:] for rule, said in replies.items()}
        spreads = {rule: float(np.std(several or [0.0])) for rule, several in numbers.items()}
        varied = {place: row for place, row in places.items() if len(set(row.tolist())) > 1}
        return cls(list(lines)[:_LINES_KEPT], spreads, varied)

    def draw(self, rng: np.random.Generator, depth: int = _DEPTH) -> Strategy:
        """Draw a strategy with at most `depth` thresholds."""
        kind = rng.choice([*_KINDS], p=[*_KINDS.values()])
        if kind == "stop":
            return Strategy(self)
        if kind == "rule":
            drawn = Strategy(self, str(rng.choice(list(self.spreads)[:-1])))
        else:
            count = int(rng.integers(1, _MOST_LINES + 1))
            drawn = Strategy(self, fixed="\n".join(rng.choice(self.lines or [""], size=count)))
        if kind == "number" and self.places:
            return replace(drawn, scale=0.0, weights={int(rng.choice(list(self.places))): 1.0})
        changes = rng.random(4) < 0.3
        if changes[0]:
            drawn = replace(drawn, scale=float(rng.choice([0.0, 0.5, 0.9, 1.1, 2.0])))
        if changes[1]:
            drawn = replace(drawn, shift=float(rng.normal()) * self.spreads[drawn.rule])
        if changes[2]:
            drawn = drawn.weighted(rng)
        threshold = depth > 0 and changes[3]
        return replace(drawn, above=self.draw_threshold(rng, depth - 1) if threshold else None)

    def draw_threshold(
        self, rng: np.random.Generator, depth: int
    ) -> tuple[int, float, Strategy] | None:
        """Draw a threshold, often of the turn, and the strategy above it; `None` without places."""
        if not self.places:
            return None
        place = 0 if 0 in self.places and rng.random() < 0.5 else int(rng.choice(list(self.places)))
        return place, float(rng.choice(self.places[place])), self.draw(rng, depth)


class Candidate(NamedTuple, Generic[Who]):
    """A strategy, or anybody else who replies, with the returns on the first Tasks."""

    who: Who
    returns: list[float]


class Trials(NamedTuple, Generic[T, Who]):
    """Tasks to try strategies on, and what one earns on a Task."""

    tasks: Sequence[T]
    earn: Callable[[T, Who], float]

    def halved(self, several: Iterable[Who]) -> list[Candidate[Who]]:
        """Return those of several that earn most on all Tasks, the best one first."""
        left = [Candidate(who, []) for who in several]
        for share in _SHARES:
            left = self.best(left, math.ceil(_KEPT * len(left)), share)
        return left

    def best(
        self, candidates: Sequence[Candidate[Who]], kept: int, share: float = 1.0
    ) -> list[Candidate[Who]]:
        """Return the candidates that earn most on the first Tasks, a share of them."""
        upto = max(math.ceil(share * len(self.tasks)), _FEWEST)
        for who, returns in candidates:
            returns += [self.earn(task, who) for task in self.tasks[len(returns) : upto]]
        return sorted(candidates, key=lambda one: -math.fsum(one.returns[:upto]))[:kept]


def search_space(
    trials: Trials[T, Strategy], space: StrategySpace, count: int, rng: np.random.Generator
) -> Candidate[Strategy]:
    """Return the best of as many strategies of a space, its parameters varied, with its returns."""
    left = trials.halved([space.draw(rng) for _ in range(count)])
    for _ in range(_ROUNDS):
        left = trials.best(left, _PARENTS)
        varied = [one.who.vary(rng) for one in left for _ in range(_VARIANTS)]
        left += trials.best([Candidate(strategy, []) for strategy in varied], _PARENTS, 0.3)
    return trials.best(left, 1)[0]


def _numbers(text: str, turn: int = 0) -> list[float]:
    """Return the number of the turn, and those in a text that are no parts of names."""
    return [float(turn), *map(float, _NUMBER.findall(text))]


def _at_place(numbers: Sequence[float], place: int) -> float:
    """Return the number at a place, counted from the end if negative; the last if there is none."""
    return numbers[place] if -len(numbers) <= place < len(numbers) else numbers[-1]
