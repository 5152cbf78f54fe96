"""A buyer that knows nothing but the full prompt: it keeps its own books of stock and orders."""

import math
import re
from statistics import NormalDist

FORGETTING = 0.8


class Buyer:
    """Periods of buying one article. Raises where a text contradicts the books."""

    def __init__(self, text: str) -> None:
        self.periods = int(_one(r"sell it for (\d+) periods", text))
        promise = re.search(r"arrives (\d+) periods? after|arrives in the period it", text)
        assert promise is not None
        self.promised = int(promise[1] or 0)
        self.kept = "keeps the promise" in text
        self.profit = float(_one(r"A unit sold earns \$([\d.]+);", text))
        self.holding = float(_one(r"end of a period costs \$([\d.]+),", text))
        self.seen = [int(units) for units in _one(r"most recent: ([\d, ]+)\.", text).split(", ")]
        self.period, self.on_hand = 1, 0
        self.pending: dict[int, int] = {}
        self.leads: list[int] = []
        self._read(text)

    def look(self, text: str) -> None:
        """Read a Turn."""
        news = re.search(
            r"^Period (\d+): arrived (.+); asked for (\d+), sold (\d+), lost (\d+), left (\d+)\.",
            text,
            re.M,
        )
        assert news is not None
        assert int(news[1]) == self.period
        for units, at in re.findall(r"(\d+) of period (\d+)", news[2]):
            assert self.pending.pop(int(at)) == int(units)
            self.leads.append(self.period - int(at))
            self.on_hand += int(units)
        asked, sold, lost, left = (int(news[n]) for n in (3, 4, 5, 6))
        assert (sold, lost, left) == (
            min(asked, self.on_hand),
            max(0, asked - self.on_hand),
            max(0, self.on_hand - asked),
        )
        self.seen.append(asked)
        self.on_hand = left
        self.period += 1
        self._read(text)

    def _read(self, text: str) -> None:
        state = re.search(
            rf"Period (\d+) of {self.periods}\. On hand: (\d+)\. Ordered and not arrived: (.+)\.",
            text,
        )
        assert state is not None
        assert (int(state[1]), int(state[2])) == (self.period, self.on_hand)
        shown = {
            int(at): int(units) for units, at in re.findall(r"(\d+) of period (\d+)", state[3])
        }
        assert shown == self.pending

    def decide(self) -> str:
        """Order up to what recent demand needs, as far as a period can be expected to use it."""
        weights = [FORGETTING**age for age in reversed(range(len(self.seen)))]
        mean = sum(w * x for w, x in zip(weights, self.seen, strict=True)) / sum(weights)
        square = sum(w * (x - mean) ** 2 for w, x in zip(weights, self.seen, strict=True))
        spread = math.sqrt(square / (sum(weights) - sum(w * w for w in weights) / sum(weights)))
        left = self.periods - self.period + 1
        leads = [self.promised] if self.kept else [*self.leads]
        if not self.kept:
            leads += [lead for lead in range(self.promised - 1, self.promised + 2) if lead >= 0]
        longest = max(self.promised + 1, *leads)
        lost = 0 if self.kept else sum(self.period - at > longest for at in self.pending)
        came = len(self.leads)
        arrive = 1.0 if self.kept else (came + 1.5) / (came + lost + 2.0)
        position = float(self.on_hand)
        for at, units in self.pending.items():
            later = arrive * sum(lead >= self.period - at for lead in leads) / len(leads)
            position += units * later / (later + 1.0 - arrive) if later else 0.0
        cover = min(1.0 + sum(leads) / len(leads), left)
        safety = NormalDist().inv_cdf(self.profit / (self.profit + self.holding))
        wanted = cover * mean + safety * math.sqrt(cover) * spread - position
        # Each order comes in a given period by chance: that spreads what arrives in one.
        shares = [arrive * leads.count(lead) / len(leads) for lead in set(leads)]
        arrivals = mean * math.sqrt(sum(share * (1.0 - share) for share in shares))
        most = mean + 1.645 * spread
        if self.promised:
            most = 0.75 * mean + safety * math.sqrt(spread**2 + arrivals**2)
        units = 0 if min(leads) >= left else max(0, math.ceil(min(wanted, most)))
        if units:
            self.pending[self.period] = units
        return f"REORDER S1 {units}"


def _one(pattern: str, text: str) -> str:
    found = re.findall(pattern, text)
    assert len(found) == 1, (pattern, found)
    return str(found[0])
