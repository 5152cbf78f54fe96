"""Rules of order batching. Each makes batches of the orders left, by number in ascending order.

Source: the survey of de Koster, van der Poort and Wolters, International Journal of Production
Research 37 (1999); local search: Henn, Koch, Doerner, Strauss and Wäscher, BuR 3 (2010).
"""

from collections.abc import Callable, Sequence
from itertools import permutations, product

import numpy as np

from tokengym.envs.warehouse.games.batching.rules import Pool

Batches = list[list[int]]
Rule = Callable[[Pool, Sequence[int]], Batches]


def fcfs(pool: Pool, left: Sequence[int]) -> Batches:
    """First come, first served: as many orders as fit, then the next trip."""
    batches: Batches = [[]]
    for order in left:
        if not pool.fits([*batches[-1], order]):
            batches.append([])
        batches[-1].append(order)
    return batches


def seed(pool: Pool, left: Sequence[int]) -> Batches:
    """Begin each trip with the order of the longest tour; add those that lengthen it least."""
    batches: Batches = []
    waiting = set(left)
    while waiting:
        batch = [max(sorted(waiting), key=lambda order: pool.length([order]))]
        waiting -= {*batch}
        while fitting := [order for order in sorted(waiting) if pool.fits([*batch, order])]:
            costs = [pool.length([*batch, order]) for order in fitting]
            batch.append(fitting[int(np.argmin(costs))])
            waiting -= {*batch}
        batches.append(batch)
    return batches


def savings(pool: Pool, left: Sequence[int]) -> Batches:
    """Join the two batches that save the most steps, until none that fit save any.

    Source: Clarke and Wright, Operations Research 12 (1964).
    """
    batches = [[order] for order in left]
    while True:
        reach = np.array([pool.reach[batch].max(axis=0) for batch in batches])
        units = np.array([pool.units[batch].sum() for batch in batches])
        alone = pool.lengths(reach)
        saved = alone[:, None] + alone - pool.lengths(np.maximum(reach[:, None], reach))
        saved[units[:, None] + units > pool.capacity] = 0.0
        one, other = np.unravel_index(np.triu(saved, 1).argmax(), saved.shape)
        if one >= other or saved[one, other] <= 0.0:
            return batches
        batches[one] += batches.pop(int(other))


def local_search(pool: Pool, batches: Sequence[Sequence[int]]) -> Batches:
    """Shift orders to other batches and swap two of them while that saves steps."""
    current = [list(batch) for batch in batches]
    improved = True
    while improved:
        improved = False
        for one, other in permutations(range(len(current)), 2):
            before = pool.total([batch for batch in (current[one], current[other]) if batch])
            for moved, back in product(current[one], [None, *current[other]]):
                giver = [order for order in current[one] if order != moved]
                taker = [moved, *(order for order in current[other] if order != back)]
                if back is not None:
                    giver.append(back)
                changed = [giver, taker] if giver else [taker]
                if all(map(pool.fits, changed)) and pool.total(changed) < before - 1e-6:
                    current[one], current[other] = giver, taker
                    improved = True
                    break
    return [batch for batch in current if batch]


def improved_savings(pool: Pool, left: Sequence[int]) -> Batches:
    """Improve what `savings` makes by local search."""
    return local_search(pool, savings(pool, left))
