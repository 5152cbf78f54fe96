"""Shortest tours through the stops of a trip: exact, many trips at once; and the S-shape rule."""

import itertools
from collections.abc import Sequence

import numpy as np

from tokengym.envs.warehouse.layout import Walks, slot_name
from tokengym.rewards.arrays import Ints

MOST_STOPS = 12
"""The dynamic program holds 2^k sets of k stops; beyond this it is no longer cheap."""

_FAR = 1 << 40
_CELLS_AT_ONCE = 1 << 21


def shortest_tours(steps: Ints) -> tuple[Ints, Ints]:
    """Find the shortest closed tour of every trip by dynamic programming over sets of stops.

    Args:
        steps: shape (B, k + 1, k + 1), walks of B trips between the depot (0) and k stops (1..k),
            1 <= k <= 12, symmetric.

    Returns:
        lengths of shape (B,) and sequences of shape (B, k): the stops 0..k-1 in walking order.

    Source: Held and Karp, J. SIAM 10 (1962); Bellman, J. ACM 9 (1962).
    """
    trips, places, _ = steps.shape
    stops = places - 1
    if not 1 <= stops <= MOST_STOPS:
        raise ValueError(f"an exact tour has 1 to {MOST_STOPS} stops, got {stops}")
    at_once = max(1, _CELLS_AT_ONCE // (stops << stops))
    if trips > at_once:
        parts = [shortest_tours(steps[i : i + at_once]) for i in range(0, trips, at_once)]
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
    between = steps[:, 1:, 1:]
    best = np.full((1 << stops, trips, stops), _FAR, dtype=np.int64)
    for stop in range(stops):
        best[1 << stop, :, stop] = steps[:, 0, stop + 1]
    for chosen in range(1, 1 << stops):
        if chosen & (chosen - 1) == 0:
            continue
        for last in range(stops):
            if chosen >> last & 1:
                before = best[chosen ^ (1 << last)]
                best[chosen, :, last] = (before + between[:, :, last]).min(axis=1)
    home = best[-1] + steps[:, 1:, 0]
    sequence = np.empty((trips, stops), dtype=np.int64)
    rows = np.arange(trips)
    here = home.argmin(axis=1)
    left = np.full(trips, (1 << stops) - 1)
    for position in range(stops - 1, -1, -1):
        sequence[:, position] = here
        left ^= 1 << here
        here = (best[left, rows] + between[rows, :, here]).argmin(axis=1)
    return home.min(axis=1), sequence


def shortest_tour(walks: Walks, stops: Sequence[str]) -> tuple[str, ...]:
    """Return the slots `stops` in the order of a shortest tour."""
    places = [0, *(walks.number[stop] for stop in stops)]
    steps = np.array([[[walks.steps[p][q] for q in places] for p in places]], dtype=np.int64)
    _, sequence = shortest_tours(steps)
    order: list[int] = sequence[0].tolist()
    return tuple([stops[i] for i in order])


def s_shape(stops: Sequence[str]) -> tuple[str, ...]:
    """Return the slots `stops` in S-shape: aisle by aisle, up the first and down the next."""
    cells = sorted(tuple(map(int, slot_name(stop)[1:].split("-"))) for stop in stops)
    route: list[str] = []
    by_aisle = itertools.groupby(cells, key=lambda cell: cell[0])
    for number, (aisle, group) in enumerate(by_aisle):
        rows = [row for _, row in group]
        route += [f"A{aisle}-{row}" for row in (rows if number % 2 == 0 else reversed(rows))]
    return tuple(route)
