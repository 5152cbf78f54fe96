"""Laws of routes: exact ones are shortest, and both rules visit every stop once."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.envs.warehouse.games.picking.routing import (
    MOST_STOPS,
    s_shape,
    shortest_tour,
    shortest_tours,
)
from tokengym.envs.warehouse.layout import AisleLayout, Walks, walks

LAYOUT = AisleLayout(4, 7)
stops = st.lists(
    st.sampled_from([cell.name for cell in LAYOUT.slots()]), min_size=1, max_size=6, unique=True
)


def length(walks: Walks, route: tuple[str, ...]) -> int:
    places = [0, *(walks.number[stop] for stop in route), 0]
    return sum(walks.steps[p][q] for p, q in itertools.pairwise(places))


@given(stops)
def test_an_exact_tour_is_as_short_as_the_best_permutation(chosen: list[str]) -> None:
    floor = walks(LAYOUT)
    best = min(length(floor, route) for route in itertools.permutations(chosen))
    assert length(floor, shortest_tour(floor, chosen)) == best


@given(st.integers(1, 5), st.integers(1, 6), st.integers(0, 10**6))
def test_many_tours_at_once_are_exact_on_any_distances(size: int, trips: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    steps = rng.integers(1, 50, size=(trips, size + 1, size + 1))
    steps = steps + steps.transpose(0, 2, 1)
    lengths, sequences = shortest_tours(steps)
    for matrix, found, sequence in zip(steps, lengths, sequences, strict=True):

        def tour(order: tuple[int, ...], matrix: np.ndarray = matrix) -> int:
            places = [0, *(stop + 1 for stop in order), 0]
            return int(sum(matrix[p, q] for p, q in itertools.pairwise(places)))

        assert found == min(map(tour, itertools.permutations(range(size))))
        assert found == tour(tuple(sequence))


def test_large_batches_are_solved_in_parts_alike() -> None:
    rng = np.random.default_rng(3)
    steps = rng.integers(1, 50, size=(700, 10, 10))
    steps = steps + steps.transpose(0, 2, 1)
    lengths, _ = shortest_tours(steps)
    assert lengths[-3:].tolist() == shortest_tours(steps[-3:])[0].tolist()


def test_too_many_stops_are_refused() -> None:
    size = MOST_STOPS + 2
    with pytest.raises(ValueError, match=str(MOST_STOPS)):
        shortest_tours(np.ones((1, size, size), dtype=np.int64))


@given(stops)
def test_s_shape_visits_every_stop_once_and_is_never_shorter(chosen: list[str]) -> None:
    floor = walks(LAYOUT)
    route = s_shape(chosen)
    assert sorted(route) == sorted(chosen)
    assert length(floor, route) >= length(floor, shortest_tour(floor, chosen))


def test_s_shape_goes_up_one_aisle_and_down_the_next() -> None:
    assert s_shape(["A2-1", "A0-5", "A2-6", "A0-2"]) == ("A0-2", "A0-5", "A2-6", "A2-1")
