"""A forecaster at a desk that reads only texts: it lists every possible world and looks ahead.

It shares no code with the world: chances are sums over a list of all worlds, and the value of a
look is found by trying every look after it.
"""

import itertools
import re
from functools import cache

import numpy as np
import numpy.typing as npt

_NOTE = re.compile(
    r"note (\d+), .*?: (?:(?P<wire>\w+) on item (?P<item>\d), right in (?P<right>\d+)%"
    r"|style book of (?P<style>\w+)|erratum to note (?P<fixed>\d+)); price (?P<price>[\d.]+)"
)
_PURSE = re.compile(r"times (\d+) points. You begin with (\d+) points")


class DeskReader:
    """Answers one episode, text by text."""

    def __init__(self, opening: str) -> None:
        purse = _PURSE.search(opening)
        limit = re.search(r"You have (\d+) replies", opening)
        assert purse
        assert limit
        self.base, self.points, self.replies = float(purse[1]), float(purse[2]), int(limit[1])
        self.notes = [match.groupdict() for match in _NOTE.finditer(opening)]
        self.prices = [float(note["price"]) for note in self.notes]
        priors = [int(prior) / 100 for prior in re.findall(r"so far: (\d+)%", opening)]
        join = all if "all three" in opening else any
        wires = sorted({note["style"] for note in self.notes if note["style"]})
        fixed = sorted({note["fixed"] for note in self.notes if note["fixed"]})
        chances, answers, shown = [], [], []
        keys = [*wires, *fixed]
        reports = [note for note in self.notes if note["wire"]]
        for items in itertools.product((False, True), repeat=len(priors)):
            chance = np.prod([p if x else 1 - p for p, x in zip(priors, items, strict=True)])
            for bits in itertools.product((False, True), repeat=len(keys)):
                key = dict(zip(keys, bits, strict=True))
                for rights in itertools.product((False, True), repeat=len(reports)):
                    likely, said, told = chance / 2 ** len(keys), [], iter(rights)
                    for number, note in enumerate(self.notes, 1):
                        if note["style"] or note["fixed"]:
                            said.append(key[note["style"] or note["fixed"]])
                            continue
                        right = next(told)
                        share = int(note["right"]) / 100
                        likely *= share if right else 1 - share
                        true = items[int(note["item"]) - 1] == right
                        green_is_true = key[note["wire"]] != key.get(str(number), False)
                        said.append(true == green_is_true)
                    chances.append(likely)
                    answers.append(join(items))
                    shown.append(said)
        self.chance_W, self.answer_W = np.array(chances), np.array(answers)
        self.shown_WN = np.array(shown)
        self.state: tuple[bool | None, ...] = (None,) * len(self.notes)
        self.value = cache(self._value)

    def read(self, text: str) -> None:
        """Read what a note says, and how many points are left."""
        match = re.match(r"Note (\d+), .*: (?:(GREEN|AMBER)|the colours were (not )?swapped)", text)
        left = re.search(r"You have ([\d.]+) points\.", text)
        assert match
        assert left
        number = int(match[1]) - 1
        self.points -= self.prices[number]
        assert abs(float(left[1]) - self.points) < 0.006
        bit = match[2] == "GREEN" if match[2] else not match[3]
        self.state = (*self.state[:number], bit, *self.state[number + 1 :])

    def reply(self) -> str:
        """Return the best call."""
        _, note = self.value(self.state)
        if note is not None:
            return f"open(note={note + 1})"
        return f"answer(probability={self._share(self.state):.6f})"

    def _worlds(self, state: tuple[bool | None, ...]) -> npt.NDArray[np.bool_]:
        seen = [place for place, bit in enumerate(state) if bit is not None]
        same: npt.NDArray[np.bool_] = (
            self.shown_WN[:, seen] == [state[place] for place in seen]
        ).all(axis=1)
        return same

    def _share(self, state: tuple[bool | None, ...]) -> float:
        weight_W = self.chance_W * self._worlds(state)
        return float(weight_W @ self.answer_W / weight_W.sum())

    def _value(self, state: tuple[bool | None, ...]) -> tuple[float, int | None]:
        """Points that the best way from here earns on average, and the note to open."""
        share = self._share(state)
        best: tuple[float, int | None] = (self.base * (1 - share * (1 - share)), None)
        total = float(self.chance_W @ self._worlds(state))
        for place, bit in enumerate(state):
            if bit is not None:
                continue
            value: float = -self.prices[place]
            for shows in (False, True):
                then = (*state[:place], shows, *state[place + 1 :])
                value += float(self.chance_W @ self._worlds(then)) / total * self.value(then)[0]
            if value > best[0] + 1e-9:
                best = value, place
        return best
