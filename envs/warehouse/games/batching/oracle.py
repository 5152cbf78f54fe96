"""A bound for order batching, and batches that come close to it or reach it.

The bound. A tour in S-shape is as long as the set of aisles it visits says and, where their number
is odd, how far it leads into the last one; it only gets longer as orders are added. So all batches
fall into few kinds: those of orders within a set of aisles and up to a depth of its last one, none
of which is shorter than the tour of all orders of that kind that go farthest. A price for every
order, and one for every trip, bound the length from below if no batch of any kind is worth more
than its tour is long: a knapsack for every kind says by how much prices have to be scaled for that.
The prices are those of the linear program that covers the orders with batches known so far, of
which there are at least as many as the articles fill; batches worth more than they are long are
added to it.

Source: column generation after Gademann and van de Velde, IIE Transactions 37 (2005); the bound
from scaled prices: Farley, Operations Research 38 (1990).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from tokengym.envs.warehouse.games.batching import heuristics
from tokengym.envs.warehouse.games.batching.rules import Pool
from tokengym.rewards.arrays import Flags, Floats

_MOST_ROUNDS = 100
_LEAST_PRICE = 1e-9
"""So that no knapsack is empty."""
_ADDED = 40
"""Batches that a round adds, at most."""
_NODES = 8
"""Nodes of the search for a plan: a limit of time would make plans depend on the machine."""


def kinds(pool: Pool) -> tuple[Flags, Floats]:
    """Return the kinds of batches; those whose orders fit in a shorter one are left out.

    Returns:
        which of N orders may be in a batch of each of K kinds, (K, N), and how long it is, (K,).
    """
    visited = pool.reach > 0.0
    rows = []
    for aisles in range(1, 1 << pool.aisles):
        inside = (aisles >> np.arange(pool.aisles) & 1).astype(bool)
        fits = ~(visited & ~inside).any(axis=1)
        last = aisles.bit_length() - 1
        depths = np.unique(pool.reach[fits, last]) if fits.any() else ()
        for depth in depths if inside.sum() % 2 else depths[-1:]:
            within = fits & (pool.reach[:, last] <= depth)
            if (visited[within].any(axis=0) == inside).all():
                rows.append(within)
    lengths = pool.lengths(np.array([pool.reach[within].max(axis=0) for within in rows]))
    return np.array(rows), lengths


def worth(pool: Pool, fits_KN: Flags, prices: Floats) -> tuple[Floats, Flags]:
    """Solve the knapsack of every kind.

    Args:
        pool: the orders.
        fits_KN: the orders of every kind.
        prices: by order, >= 0.

    Returns:
        the most that a trip can be worth by kind, (K,), and by order whether it is part of that,
        given the articles that it and those before it may have: (N, K, capacity + 1).
    """
    best = np.zeros((len(fits_KN), pool.capacity + 1))
    taken = np.zeros((len(prices), *best.shape), dtype=bool)
    for order, price in enumerate(prices):
        units = pool.units[order]
        with_it = np.full_like(best, -1.0)
        with_it[:, units:] = best[:, : pool.capacity + 1 - units] + price
        taken[order] = fits_KN[:, order, None] & (with_it > best)
        best = np.where(taken[order], with_it, best)
    return best[:, -1], taken


def _batches(pool: Pool, taken: Flags) -> set[tuple[int, ...]]:
    """Read the batches of a knapsack back, one a kind."""
    found = set()
    for kind in range(taken.shape[1]):
        room, batch = pool.capacity, []
        for order in reversed(range(len(taken))):
            if taken[order, kind, room]:
                batch.append(order)
                room -= pool.units[order]
        found.add(tuple(reversed(batch)))
    return found


def best_batches(pool: Pool) -> tuple[float, heuristics.Batches]:
    """Return a length that no batches fall below, and the shortest batches found."""
    everything = range(len(pool.orders))
    starts = [rule(pool, everything) for rule in (heuristics.fcfs, heuristics.improved_savings)]
    found = {tuple(sorted(batch)) for start in starts for batch in start}
    fits_KN, length_K = kinds(pool)
    least = np.ones(1 + len(pool.orders))
    least[0] = -(-pool.units.sum() // pool.capacity)
    bound, rounds = 0.0, 0
    while True:
        rounds += 1
        columns = sorted(found)
        lengths = np.array([pool.length(batch) for batch in columns])
        covers = np.ones((len(least), len(columns)))
        covers[1:] = [[order in batch for batch in columns] for order in everything]
        program = linprog(lengths, A_ub=-covers, b_ub=-least, method="highs")
        prices = np.maximum(-program.ineqlin.marginals, _LEAST_PRICE)
        worth_K, taken = worth(pool, fits_KN, prices[1:])
        worth_K += prices[0]
        bound = max(bound, float(prices @ least / max(1.0, (worth_K / length_K).max())))
        gains_K = worth_K - length_K
        best = np.argsort(-gains_K, kind="stable")[:_ADDED]
        new = _batches(pool, taken[:, best[gains_K[best] > 1e-6]]) - found
        if not new or rounds == _MOST_ROUNDS:
            break
        found |= new
    chosen = milp(
        lengths,
        constraints=LinearConstraint(covers, lb=least),
        integrality=np.ones(len(columns), dtype=np.int64),
        bounds=Bounds(0, 1),
        options={"node_limit": _NODES},
    )
    if chosen.x is not None:
        left, batches = set(everything), []
        for number in np.flatnonzero(chosen.x > 0.5):
            batches.append([order for order in columns[number] if order in left])
            left -= {*batches[-1]}
        starts.append(heuristics.local_search(pool, [batch for batch in batches if batch]))
    return bound, min(starts, key=pool.total)


def solve(instance: Mapping[str, Any], _rng: np.random.Generator, _outcomes: Any) -> dict[str, Any]:
    """Return the bound, the best batches known, and what first come, first served walks."""
    pool = Pool.of(instance)
    bound, plan = best_batches(pool)
    return {
        "optimum": -bound,
        "reference": -pool.total(heuristics.fcfs(pool, range(len(pool.orders)))),
        "plan": [sorted(batch) for batch in plan],
    }
