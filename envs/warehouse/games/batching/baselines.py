"""Scripted policies of order batching. All but the oracle use only what the Turns have shown."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from tokengym.envs.warehouse.games.batching import heuristics
from tokengym.envs.warehouse.games.batching.rules import Pool
from tokengym.envs.warehouse.games.batching.session import BatchSession
from tokengym.envs.warehouse.grammar import Done, Trip, write_pick

Pick = Callable[[Pool, Sequence[int], np.random.Generator], Sequence[int]]
"""From the orders, those left and randomness to the next batch."""

_CUT_SHORT = 0.3


def _at_random(pool: Pool, left: Sequence[int], rng: np.random.Generator) -> Sequence[int]:
    shuffled = rng.permutation(left).tolist()
    return heuristics.fcfs(pool, shuffled)[0]


def _misled(pool: Pool, left: Sequence[int], rng: np.random.Generator) -> Sequence[int]:
    """Begin with any order, add those that lengthen the tour least, now and then one fewer."""
    some = rng.permutation(left)[: max(2, len(left) // 2)].tolist()
    batch = heuristics.seed(pool, some)[0]
    return batch[:-1] if len(batch) > 1 and rng.random() < _CUT_SHORT else batch


def _first(rule: heuristics.Rule) -> Pick:
    return lambda pool, left, _rng: rule(pool, left)[0]


def _planned(session: BatchSession) -> Sequence[int]:
    """Return the first batch of the plan whose orders are all left, else the best rule's."""
    pool, left = session.compiled.problem, session.left
    whole = [batch for batch in pool.plan if set(batch) <= set(left)]
    return whole[0] if whole else heuristics.improved_savings(pool, left)[0]


_PICKS: Mapping[str, Pick] = {
    "random": _at_random,
    "fcfs": _first(heuristics.fcfs),
    "seed": _first(heuristics.seed),
    "savings": _first(heuristics.savings),
    "replan": _first(heuristics.improved_savings),
    "noisy": _misled,
}


def _batching(pick: Pick) -> Callable[[BatchSession, np.random.Generator], str]:
    return lambda session, rng: _write(pick(session.compiled.problem, session.left, rng))


def _write(batch: Sequence[int]) -> str:
    return write_pick(Trip(tuple(f"O{order + 1}" for order in batch), ()))


POLICIES: Mapping[str, Callable[[BatchSession, np.random.Generator], str]] = MappingProxyType(
    {
        **{name: _batching(pick) for name, pick in _PICKS.items()},
        "null": lambda _session, _rng: write_pick(Done()),
        "oracle": lambda session, _rng: _write(_planned(session)),
    }
)
