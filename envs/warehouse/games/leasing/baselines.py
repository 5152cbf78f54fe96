"""Scripted policies of leasing out storage. All use only what the Turns have shown."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from tokengym.envs.warehouse.games.leasing.heuristics import bid_price, lowest, myopic
from tokengym.envs.warehouse.games.leasing.rules import CustomerKind
from tokengym.envs.warehouse.games.leasing.session import LeaseSession
from tokengym.envs.warehouse.grammar import write_quote
from tokengym.envs.warehouse.levels import LeaseLevel

Landlord = Callable[[LeaseSession, np.random.Generator], str]

_NOISE = 0.25
_PRICES = (5, 8, 10, 12, 15, 20, 25, 30)


def _off_target(customer: CustomerKind, rng: np.random.Generator) -> int:
    return max(1, round(myopic(customer) * (1.0 + _NOISE * float(rng.normal()))))


def _quoting(quote: Callable[[CustomerKind, np.random.Generator], int]) -> Landlord:
    """Return the policy that quotes by a rule where there is room, and turns others away."""

    def reply(session: LeaseSession, rng: np.random.Generator) -> str:
        fits = session.compiled.problem.model.free(session.taken) >= session.customer.bays
        return write_quote(quote(session.customer, rng) if fits else 0)

    return reply


def _bid_price(session: LeaseSession, _rng: np.random.Generator) -> str:
    model, customer = session.compiled.problem.model, session.customer
    fits = model.free(session.taken) >= customer.bays
    return write_quote(bid_price(model, session.turns, session.taken, customer) if fits else 0)


POLICIES: Mapping[str, Landlord] = MappingProxyType(
    {
        "null": _quoting(lambda _customer, _rng: 0),
        "random": _quoting(lambda customer, rng: int(rng.integers(1, customer.high + 1))),
        "fcfs": _quoting(lambda customer, _rng: lowest(customer)),
        "newsvendor": _quoting(lambda customer, _rng: myopic(customer)),
        "textbook": _bid_price,
        "replan": lambda session, _rng: write_quote(session.best_quote()),
        "noisy": _quoting(_off_target),
        "oracle": lambda session, _rng: write_quote(session.best_quote()),
    }
)


def blind(_level: LeaseLevel) -> dict[str, Callable[[int], str]]:
    """Return policies that quote the same to everybody."""
    return {f"quotes of {price}": _same(price) for price in _PRICES}


def _same(price: int) -> Callable[[int], str]:
    return lambda _turns: write_quote(price)
