"""Laws of the floor: distances, and maps that cannot be walked."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.envs.core.errors import TaskError
from tokengym.envs.warehouse.layout import (
    AisleLayout,
    MapLayout,
    layout_of,
    plain_layout,
    slot_name,
    walks,
)

aisle_layouts = st.builds(AisleLayout, st.integers(1, 4), st.integers(1, 6))
maps = st.sampled_from(
    [
        MapLayout(("....", ".xx.", ".xx.", ".g..")),
        MapLayout((".......", "...x...", "..x.x..", ".x...x.", "..x.x..", "...x...", ".g...g.")),
        MapLayout(("gx",)),
    ]
)


@given(aisle_layouts)
def test_distances_of_aisles_follow_the_formula(layout: AisleLayout) -> None:
    places = [(0, 0), *((a, i) for a in range(layout.aisles) for i in range(1, layout.rows + 1))]
    steps = walks(layout).steps
    for (p, (a, i)), (q, (b, j)) in itertools.product(enumerate(places), repeat=2):
        across = 2 * abs(a - b) + min(i + j, 2 * (layout.rows + 1) - i - j)
        assert steps[p][q] == (abs(i - j) if a == b else across)


@given(st.one_of(aisle_layouts, maps))
def test_distances_are_symmetric_and_zero_only_at_home(layout: AisleLayout | MapLayout) -> None:
    steps = walks(layout).steps
    for p, q in itertools.product(range(len(steps)), repeat=2):
        assert steps[p][q] == steps[q][p]
        assert (steps[p][q] == 0) == (p == q)


def test_a_map_is_walked_around_its_shelves() -> None:
    layout = MapLayout(("g.x", ".x.", "..."))
    number, steps = walks(layout)
    assert steps[0][number["A2-0"]] == 2
    assert steps[0][number["A1-1"]] == 2
    assert steps[number["A2-0"]][number["A1-1"]] == 2
    walled = MapLayout(("gx.", ".x.", "..."))
    number, steps = walks(walled)
    assert steps[number["A1-0"]][number["A1-1"]] == 3


@given(st.one_of(aisle_layouts, maps))
def test_the_plain_form_reads_back(layout: AisleLayout | MapLayout) -> None:
    assert layout_of(plain_layout(layout)) == layout


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ((".x", "..."), "line 2: 3 cells, the first line has 2"),
        (("..", ".x"), "goal"),
        (("gx?",), "made of"),
        (("gxx",), "A2-0"),
        ((), "goal"),
    ],
)
def test_a_map_that_cannot_be_walked_is_refused(lines: tuple[str, ...], reason: str) -> None:
    with pytest.raises(TaskError, match=reason):
        MapLayout(lines)


def test_a_floor_without_slots_is_refused() -> None:
    with pytest.raises(TaskError, match="0 rows"):
        AisleLayout(3, 0)


@given(st.integers(0, 99), st.integers(0, 99))
def test_slots_are_named_alike_however_they_are_written(aisle: int, row: int) -> None:
    assert slot_name(f" a{aisle:02d}-{row:03d} ") == f"A{aisle}-{row}"


def test_what_is_no_slot_is_refused() -> None:
    with pytest.raises(ValueError, match="B2-7"):
        slot_name("B2-7")
