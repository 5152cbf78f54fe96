"""Least expected cents of a home with price spikes and a car that may leave, on a coarse grid.

Battery and car together, by backward induction over what the prompt states: it shares nothing with
the world, which plans them one after the other.
"""

from typing import Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

PARTS = 5
"""The car charges 0 or from 2 to 5 of these parts of its most power."""
NEVER = 1e7
REFRESH = 3
"""Steps from one look at new forecasts to the next."""


class Home(Protocol):
    """What the planner has read of a home."""

    t: int
    steps: int
    table: list[dict[str, float]]
    schedule: list[float]
    capacity: float
    power: float
    eta: float
    wear: float
    imports: float
    exports: float
    sale: float
    lost: float
    won: float
    start: float
    spike: float
    spikes: dict[int, float]
    ev: tuple[float, ...]
    need: float
    takes: float
    late: float
    leaves: float
    home: range
    energy: float
    car: float


def cents(home: Home, t: int, price: float, before: Floats, after: Floats, car: float) -> Floats:
    """Cents of an hour by the battery's energy before and after it."""
    change = after[None, :] - before[:, None]
    power = np.where(change > 0.0, change / home.eta, change * home.eta)
    net = home.table[t]["load"] - home.table[t]["sun"] + car + power
    money = price * np.maximum(net, 0.0) - home.sale * np.clip(-net, 0.0, home.exports)
    money = money + home.wear * np.abs(power)
    fits = (np.abs(power) <= home.power + 1e-9) & (net <= home.imports) & (net >= -home.exports)
    kept = after[None, :] >= home.schedule[t] - 1e-9
    return np.where(fits & kept, money, NEVER)


class Chances:
    """Expected cents from each step on, with the car at home and with it gone."""

    def __init__(self, home: Home) -> None:
        self.home = home
        known = [home.start, *home.schedule]
        self.store_E = np.union1d(np.linspace(0.0, home.capacity, 45), known)
        self.part = home.ev[1] / PARTS
        self.charge_Q = np.arange(0.0, home.takes + self.part, self.part)
        extra_E = self.store_E - home.start
        end_E = np.where(extra_E > 0.0, -home.won * extra_E, -home.lost * extra_E)
        self.gone = {home.steps: end_E}
        self.there = {home.steps: np.repeat(end_E[:, None], len(self.charge_Q), axis=1)}
        self.look_ahead()

    def look_ahead(self) -> None:
        """Take over what the home expects of the steps after this one."""
        home = self.home
        for t in reversed(range(home.t + 1, home.steps)):
            self.gone[t] = np.zeros(len(self.store_E))
            self.there[t] = np.zeros((len(self.store_E), len(self.charge_Q)))
            spike = home.spikes.get(t, 0.0)
            for chance, more in ((1.0 - spike, 0.0), (spike, home.spike)):
                if not chance:
                    continue
                price = home.table[t]["price"] + more
                money_EE = cents(home, t, price, self.store_E, self.store_E, 0.0)
                self.gone[t] += chance * (money_EE + self.gone[t + 1]).min(axis=1)
                least_EQ = np.full(self.there[t].shape, np.inf)
                for k in (0, 2, 3, 4, 5) if t in home.home else (0,):
                    money_EE = cents(home, t, price, self.store_E, self.store_E, k * self.part)
                    after_EQ = self.after(
                        t, self.charge_Q[: len(self.charge_Q) - k] + k * self.part
                    )
                    found_EQ = (money_EE[:, :, None] + after_EQ[None]).min(axis=1)
                    kept = least_EQ[:, : found_EQ.shape[1]]
                    np.minimum(kept, found_EQ, out=kept)
                self.there[t] += chance * least_EQ

    def after(self, t: int, charge_Q: Floats) -> Floats:
        """Expected cents after step t with the car charged so far, by energy and charge."""
        home, later_EQ = self.home, self.there[t + 1]
        stay_EQ = np.array([np.interp(charge_Q, self.charge_Q, row) for row in later_EQ])
        if t not in home.home:
            return stay_EQ
        goes = 1.0 if t == home.home[-1] else home.leaves
        missing_Q = home.late * np.maximum(home.need - charge_Q, 0.0)
        return goes * (self.gone[t + 1][:, None] + missing_Q) + (1.0 - goes) * stay_EQ

    def best(self) -> dict[str, float]:
        """Return the powers of least expected cents at this step."""
        home, t = self.home, self.home.t
        if t % REFRESH == 0:
            self.look_ahead()
        after_F = np.union1d(self.store_E, np.linspace(0.0, home.capacity, 601))
        after_F = np.union1d(after_F, home.energy)
        there = t in home.home
        powers = [0.0, *np.linspace(home.ev[0], home.ev[1], 24)] if there else [0.0]
        if there and home.ev[0] <= home.need - home.car <= home.ev[1]:
            powers.append(home.need - home.car)
        found = []
        for car in powers:
            if home.car + car > home.takes + 1e-9:
                continue
            gone = t >= home.home.stop
            later_E = self.gone[t + 1] if gone else self.after(t, np.array([home.car + car]))[:, 0]
            (money_F,) = cents(
                home, t, home.table[t]["price"], np.array([home.energy]), after_F, car
            )
            total_F = money_F + np.interp(after_F, self.store_E, later_E)
            best = int(np.argmin(total_F))
            found.append((total_F[best], after_F[best] - home.energy, car))
        _, change, car = min(found)
        return {"BATTERY": change / home.eta if change > 0.0 else change * home.eta, "EV": car}
