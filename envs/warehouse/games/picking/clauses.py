"""Clauses: terms of a shift stated in words; each changes the optimal plan.

A clause holds trips up at the depot, fines them, raises what an order earns, or pays for several
orders at once; none refuses a trip. With one picker, to leave sooner is never worse for it, and
what a trip earns depends on when it is back and on which orders left before it, but not on how: the
dynamic program over sets of shipped orders stays exact.

A drawn Task states one of the sets of three clauses, each in one of the wordings, that its split
has to itself. Any two clauses meet equally often in every split.
"""

import tomllib
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from itertools import combinations
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self, TypeVar

import numpy as np

from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.immutable import Immutable
from tokengym.rewards.arrays import Floats

Ids = frozenset[str]
Value = TypeVar("Value", float, Floats)

_SHARES = MappingProxyType({"train": 0.7, "validation": 0.15, "test": 0.15})
_PLACES = MappingProxyType({"train": (0, 1, 2), "validation": (3,), "test": (4, 5)})
"""Of the wordings of a split among those of a kind."""
WORDINGS: Mapping[str, Sequence[str]] = tomllib.loads(
    Path(__file__).with_name("wordings.toml").read_text("utf-8")
)
"""Of drawn Tasks, by kind of clause: three of training, one of validation and two of test."""
_LEAST = MappingProxyType({"start": 0, "end": 1, "fine": 0, "factor": 1})
_MOST = 999


@dataclass(frozen=True)
class Clause(Immutable, ABC):
    """A clause of a shift.

    Attributes:
        words: its wording, with the names of its other fields in braces, or `length`.
    """

    words: str

    @classmethod
    @abstractmethod
    def draw(cls, rng: np.random.Generator, orders: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Draw its fields but for `words`, for orders in their plain form."""

    def closed(self, ids: Ids, slots: Collection[str]) -> tuple[int, int]:
        """Return from when until when a trip of such orders and slots cannot leave."""
        return 0, 0

    def fined(self, before: Ids, ids: Ids) -> float:
        """Return the fine of a trip, `before` being the orders that left before it."""
        return 0.0

    def worth(self, order: str, value: Value, late: Any) -> Value:
        """Return what an order earns that would earn `value` without the clause."""
        return value

    @property
    def consignment(self) -> Ids:
        """Orders that earn when the last of them is back, and nothing sooner."""
        return frozenset()

    @property
    def text(self) -> str:
        """The clause in words."""
        terms = {field.name: getattr(self, field.name) for field in fields(self)}
        shown = {name: _listed(v) if isinstance(v, tuple) else v for name, v in terms.items()}
        length = terms.get("end", 0) - terms.get("start", 0)
        return self.words.format_map({**shown, "length": length})

    @classmethod
    def of(cls, data: Mapping[str, Any], known: Ids) -> Self:
        """Read a clause on orders that are `known`.

        Raises:
            TaskError: if an order is not, or a number is out of range.
        """
        stated = {field.name: data[field.name] for field in fields(cls)}
        terms: dict[str, Any] = {
            n: tuple(v) if isinstance(v, list) else v for n, v in stated.items()
        }
        clause = cls(**terms)
        named = {*terms.get("orders", ()), *terms.get("others", ()), terms.get("order")} - {None}
        if not named <= known:
            raise TaskError(f"a clause names orders that the shift lacks: {sorted(named - known)}")
        numbers = {name: terms[name] for name in _LEAST if name in terms}
        if any(not _LEAST[name] <= number <= _MOST for name, number in numbers.items()):
            raise TaskError(f"a clause has numbers from {dict(_LEAST)} to {_MOST}, got {numbers}")
        _ = clause.text
        return clause


@dataclass(frozen=True)
class DockClosed(Clause):
    """No trip leaves from `start` to `end`."""

    start: int
    end: int

    @classmethod
    def draw(cls, rng: np.random.Generator, orders: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Draw a closure that begins after the first trip or two."""
        start = int(rng.integers(10, 31))
        return {"start": start, "end": start + int(rng.integers(35, 61))}

    def closed(self, ids: Ids, slots: Collection[str]) -> tuple[int, int]:
        """Return the closure, for every trip."""
        return self.start, self.end


@dataclass(frozen=True)
class AisleBlocked(Clause):
    """No trip with a slot in an aisle leaves from `start` to `end`."""

    aisle: str
    start: int
    end: int

    @classmethod
    def draw(cls, rng: np.random.Generator, orders: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Draw an early closure of an aisle that orders need."""
        aisles = [slot.partition("-")[0] for order in orders for slot, _ in order["lines"]]
        start = int(rng.integers(0, 16))
        length = int(rng.integers(50, 81))
        return {"aisle": str(rng.choice(aisles)), "start": start, "end": start + length}

    def closed(self, ids: Ids, slots: Collection[str]) -> tuple[int, int]:
        """Return the closure, for a trip that visits the aisle."""
        barred = any(slot.startswith(f"{self.aisle}-") for slot in slots)
        return (self.start, self.end) if barred else (0, 0)


@dataclass(frozen=True)
class GoodsDue(Clause):
    """An order cannot leave before `end`."""

    order: str
    end: int

    @classmethod
    def draw(cls, rng: np.random.Generator, orders: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Draw an order that is due early, and a time at which about half of the shift is over."""
        order = rng.choice(_by_due(orders)[: len(orders) // 2])
        return {"order": str(order), "end": int(rng.integers(40, 71))}

    def closed(self, ids: Ids, slots: Collection[str]) -> tuple[int, int]:
        """Return the time before the release, for a trip with the order."""
        return 0, self.end if self.order in ids else 0


@dataclass(frozen=True)
class KeptApart(Clause):
    """A trip with one of `orders` and one of `others` is fined."""

    orders: tuple[str, ...]
    others: tuple[str, ...]
    fine: int

    @classmethod
    def draw(cls, rng: np.random.Generator, orders: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Draw two or three orders on each side."""
        chosen = rng.permutation(_by_due(orders)).tolist()
        one, both = int(rng.integers(2, 4)), 5
        return {
            "orders": chosen[:one],
            "others": chosen[one:both],
            "fine": int(rng.integers(8, 16)),
        }

    def fined(self, before: Ids, ids: Ids) -> float:
        """Return the fine, of a trip with both."""
        mixed = not (ids.isdisjoint(self.orders) or ids.isdisjoint(self.others))
        return float(self.fine * mixed)


@dataclass(frozen=True)
class GoesFirst(Clause):
    """There is a fine if the first trip leaves without an order."""

    order: str
    fine: int

    @classmethod
    def draw(cls, rng: np.random.Generator, orders: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Draw an order that is due late."""
        order = rng.choice(_by_due(orders)[len(orders) // 2 :])
        return {"order": str(order), "fine": int(rng.integers(10, 21))}

    def fined(self, before: Ids, ids: Ids) -> float:
        """Return the fine, of a first trip without the order."""
        return float(self.fine * (not before and self.order not in ids))


@dataclass(frozen=True)
class GoldCustomers(Clause):
    """Each of `orders` earns `factor` times its value when it is on time."""

    orders: tuple[str, ...]
    factor: int

    @classmethod
    def draw(cls, rng: np.random.Generator, orders: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Draw two orders."""
        chosen = rng.permutation(_by_due(orders)[: len(orders) // 2]).tolist()
        return {"orders": chosen[:2], "factor": int(rng.integers(3, 5))}

    def worth(self, order: str, value: Value, late: Any) -> Value:
        """Return `factor` times the value of a gold customer's order that is not late."""
        return value * (1 + (self.factor - 1) * (late == 0)) if order in self.orders else value


@dataclass(frozen=True)
class OneCustomer(Clause):
    """Each of `orders` counts as back when the last of them is, and earns nothing before."""

    orders: tuple[str, ...]

    @classmethod
    def draw(cls, rng: np.random.Generator, orders: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Draw three orders."""
        return {"orders": rng.permutation(_by_due(orders)).tolist()[:3]}

    @property
    def consignment(self) -> Ids:
        """Return the orders."""
        return frozenset(self.orders)


CLAUSES: Mapping[str, type[Clause]] = MappingProxyType(
    {
        "dock": DockClosed,
        "aisle": AisleBlocked,
        "goods": GoodsDue,
        "apart": KeptApart,
        "first": GoesFirst,
        "gold": GoldCustomers,
        "customer": OneCustomer,
    }
)
"""The seven types of clauses, by what instances call them."""


def split_of_kinds(kinds: Sequence[str]) -> str:
    """Return the split of a set of three types.

    Validation and test have a projective plane of order two each: seven sets in which each pair of
    kinds is once. The 21 other sets are those of training. Source: Fano, Giornale di Matematiche 30
    (1892).
    """
    places = sorted(map([*CLAUSES].index, kinds))
    moved = [{(place + step) % len(CLAUSES) for place in places} for step in range(len(CLAUSES))]
    return "test" if {0, 1, 3} in moved else "validation" if {0, 2, 3} in moved else "train"


@cache
def _sets_of(split: str) -> list[tuple[str, ...]]:
    return [kinds for kinds in combinations(CLAUSES, 3) if split_of_kinds(kinds) == split]


def split_of_words(clauses: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the split whose wordings an instance has; `None` if they are not of one split."""
    found = {
        split
        for clause in clauses
        for split, places in _PLACES.items()
        if clause["words"] in [WORDINGS[clause["kind"]][place] for place in places]
    }
    return found.pop() if len(found) == 1 else None


def draw_clauses(
    rng: np.random.Generator, orders: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Draw the clauses of a shift of `orders` in their plain form, all of one split."""
    split = str(rng.choice([*_SHARES], p=[*_SHARES.values()]))
    sets, drawn = _sets_of(split), []
    for kind in rng.permutation(sets[int(rng.integers(len(sets)))]).tolist():
        words = WORDINGS[kind][int(rng.choice(_PLACES[split]))]
        drawn.append({"kind": kind, "words": words, **CLAUSES[kind].draw(rng, orders)})
    return drawn


def read_clauses(data: Sequence[Mapping[str, Any]], known: Ids) -> tuple[Clause, ...]:
    """Read clauses on orders that are `known` from their plain form.

    Raises:
        TaskError: if one is of no kind, names other orders, or has a number out of range, or if two
            pay for one order.
    """
    if unknown := [entry["kind"] for entry in data if entry["kind"] not in CLAUSES]:
        raise TaskError(f"the clauses are {', '.join(CLAUSES)}, got {unknown[0]!r}")
    clauses = tuple(CLAUSES[entry["kind"]].of(entry, known) for entry in data)
    if twice := [name for name in known if sum(name in c.consignment for c in clauses) > 1]:
        raise TaskError(f"orders are of one consignment each, got several for {sorted(twice)}")
    return clauses


def closures(clauses: Sequence[Clause], ids: Ids, slots: Collection[str]) -> list[tuple[int, int]]:
    """Return from when until when a trip cannot leave, by when that begins."""
    return sorted([clause.closed(ids, slots) for clause in clauses])


def leaves(closed: Sequence[tuple[int, int]], time: int) -> int:
    """Return when a trip leaves that would leave at `time`, with its closures."""
    for start, end in closed:
        if start <= time < end:
            time = end
    return time


def paid(clauses: Sequence[Clause], before: Ids, ids: Ids) -> Ids:
    """Return the orders that earn when a trip with `ids` is back, `before` having left before."""
    found, shipped = ids, before | ids
    for clause in clauses:
        group = clause.consignment
        found = found | group if group <= shipped and not group <= before else found - group
    return found


def fines(clauses: Sequence[Clause], before: Ids, ids: Ids) -> float:
    """Return the fines of a trip, `before` being the orders that left before it."""
    return sum((clause.fined(before, ids) for clause in clauses), 0.0)


def _by_due(orders: Sequence[Mapping[str, Any]]) -> list[str]:
    return [order["id"] for order in sorted(orders, key=itemgetter("due"))]


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
