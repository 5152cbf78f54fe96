"""A landlord who knows nothing but the full prompt: plans prices by recursion over what is free."""

import re
from functools import cache
from typing import NamedTuple

State = tuple[int, ...]


class Customer(NamedTuple):
    """A kind of customer, as its line shows it."""

    bays: int
    months: int
    low: int
    high: int
    odds: tuple[float, ...]


class Landlord:
    """Months of leasing. Raises where a text contradicts the books."""

    def __init__(self, text: str) -> None:
        self.bays, self.last = map(
            int, _one(r"You lease out (\d+) bays of a warehouse for (\d+) months", text)
        )
        self.kinds = {
            name: Customer(int(n), int(m), int(low), int(high), tuple(map(float, odds.split(", "))))
            for name, n, m, low, high, odds in re.findall(
                r"^([A-Z]): (\d+) bays? for (\d+) months?; would pay \$(\d+) to \$(\d+); "
                r"asks with the probability by month ([\d., ]+)\.$",
                text,
                re.M,
            )
        }
        self.longest = max(kind.months for kind in self.kinds.values())
        self.worth = cache(self._worth)
        self.month, self.state = 1, self._shown(text, 1)
        self.who = self._read(text)
        self.price = 0

    def look(self, text: str) -> None:
        """Read a Turn."""
        kind = self.kinds[self.who]
        signed = re.search(r"^Signed for \$(\d+)\.", text, re.M)
        if signed is not None:
            assert int(signed[1]) == self.price * kind.bays * kind.months
        self.state = self._later(self.state, kind if signed else None)
        self.month += 1
        assert self._shown(text, self.month) == self.state
        self.who = self._read(text)

    def decide(self) -> str:
        """Quote the price that is worth most, or turn the customer away."""
        self.price, _ = self._best(self.month, self.state, self.kinds[self.who])
        return f"QUOTE {self.price}" if self.price else "REFUSE"

    def _worth(self, month: int, state: State) -> float:
        """Return what is earned on average from a month on."""
        if month > self.last:
            return 0.0
        return sum(
            kind.odds[month - 1] * self._best(month, state, kind)[1] for kind in self.kinds.values()
        )

    def _best(self, month: int, state: State, kind: Customer) -> tuple[int, float]:
        away = self.worth(month + 1, self._later(state, None))
        if sum(state) + kind.bays > self.bays:
            return 0, away
        signed = self.worth(month + 1, self._later(state, kind))
        best = (0, away)
        for price in range(kind.low, kind.high + 1):
            chance = (kind.high + 1 - price) / (kind.high + 1 - kind.low)
            value = chance * (price * kind.bays * kind.months + signed) + (1 - chance) * away
            best = max(best, (price, value), key=lambda found: found[1])
        return best

    def _later(self, state: State, kind: Customer | None) -> State:
        taken = [*state, 0]
        if kind is not None:
            taken[kind.months - 1] += kind.bays
        return tuple(taken[1:])

    def _shown(self, text: str, month: int) -> State:
        """Return the bays that come back in 1, 2, ... months."""
        free, more = _one(
            rf"Month {month} of {self.last}\. Free bays: (\d+)((?:, \d+ more .+)?)\.", text
        )
        back = {
            int(then): int(bays) for bays, then in re.findall(r"(\d+) more from month (\d+)", more)
        }
        state = tuple(back.get(month + after, 0) for after in range(1, self.longest))
        assert sum(back.values()) == sum(state) == self.bays - int(free)
        return state

    def _read(self, text: str) -> str:
        name, bays, months = _one(
            r"A customer of kind ([A-Z]) asks for (\d+) bays? for (\d+) months?\.", text
        )
        assert (int(bays), int(months)) == self.kinds[name][:2]
        return name


def _one(pattern: str, text: str) -> tuple[str, ...]:
    found = re.findall(pattern, text)
    assert len(found) == 1, (pattern, found)
    return tuple(found[0])
