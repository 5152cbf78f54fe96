"""Laws of reading replies: the last command counts, a reorder is all its lines, nothing raises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.every import every
from tokengym.envs.warehouse.grammar import (
    EndShift,
    Trip,
    Wait,
    read_pick,
    read_quote,
    read_reorder,
    write_pick,
    write_reorder,
)
from tokengym.testing import replies

ids = st.lists(st.integers(1, 99).map(lambda n: f"O{n}"), min_size=1, max_size=8)
slots = st.lists(
    st.tuples(st.integers(0, 99), st.integers(0, 99)).map(lambda p: f"A{p[0]}-{p[1]}"),
    min_size=1,
    max_size=8,
)
routes: st.SearchStrategy[list[str]] = st.one_of(st.just([]), slots)
commands = st.one_of(
    st.builds(Trip, ids.map(tuple), routes.map(tuple)),
    st.builds(Wait, st.integers(1, 999)),
    st.just(EndShift()),
)


@given(commands, st.text(max_size=60))
def test_a_command_written_reads_back_whatever_was_said_before(command: object, said: str) -> None:
    assert isinstance(command, Trip | Wait | EndShift)
    assert read_pick(f"{said}\n{write_pick(command)}").value == command
    assert read_pick(f"{said}\n{write_pick(command)}", complete=False).value != command
    cut = f"{said}\n{write_pick(command)}\nso"
    assert read_pick(cut, complete=False).value == command


def units(text: str) -> list[tuple[str, int]] | None:
    found = read_reorder(text).value
    return None if found is None else list(found)


def test_the_last_command_counts() -> None:
    assert read_pick("WAIT 3\nor rather\nTRIP O1: A0-1\nso be it").value == Trip(("O1",), ("A0-1",))


@pytest.mark.parametrize(
    "said", ["trip o1 , o2 :a0-03,A2-5", "  TRIP O1,O2: A0-3 , A2-05  ", "Trip O1,O2 : A00-3,A2-5"]
)
def test_blanks_zeros_and_case_do_not_matter(said: str) -> None:
    assert read_pick(said).value == Trip(("O1", "O2"), ("A0-3", "A2-5"))


@pytest.mark.parametrize(
    "said", [*("", "TRIP", "TRIP : A0-1", "WAIT", "WAIT 0", "WAIT 1000", "WAIT -3", "TRIP O1 A0-1")]
)
def test_what_is_no_command_is_none(said: str) -> None:
    assert read_pick(said).value is None


@given(st.text() | replies("warehouse"))
def test_no_text_raises(said: str) -> None:
    read_pick(said)
    units(said)


@given(
    st.dictionaries(st.integers(1, 9).map(lambda n: f"S{n}"), st.integers(1, 9999)),
    st.text(max_size=40).filter(lambda said: "REORDER" not in said.upper()),
)
def test_a_reorder_written_reads_back(lines: dict[str, int], said: str) -> None:
    text = f"{said}\n{write_reorder(list(lines.items()))}"
    assert units(text) == list(lines.items())
    assert read_reorder(text, items=len(lines), complete=False).value is None
    cut = read_reorder(f"{text}\n", items=len(lines), complete=False).value
    assert list(cut or ()) == list(lines.items())


def test_a_later_line_replaces_an_earlier_one() -> None:
    assert units("REORDER S1 3\nREORDER S2 4\nREORDER S1 5") == [("S1", 5), ("S2", 4)]
    assert units("REORDER S1 3\nREORDER NONE") == []
    assert units("nothing to say") is None
    assert units("REORDER S1 0") == [("S1", 0)]
    assert units("REORDER S1 3\nREORDER S2 4, S2 5") is None
    assert units("REORDER NONE, REORDER S2 5") is None


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("REORDER 5 units of S1", [("S1", 5)]),
        ("REORDER 5 of S1, S2 4 and 12 units of item S3", [("S1", 5), ("S2", 4), ("S3", 12)]),
        ("REORDER S1 is about 5 units", [("S1", 5)]),
        ("REORDER 5 units of S1 and S2", None),
        ("REORDER 5 of them", None),
    ],
)
def test_units_may_stand_before_their_item(said: str, read: list[tuple[str, int]] | None) -> None:
    assert units(said) == read


@pytest.mark.parametrize("line", ["REORDER S1 lots", "reorder about 4", "REORDER S1 4, S1 5"])
def test_unreadable_reorders_are_passed_over_at_the_beginning_alone(line: str) -> None:
    assert units(f"REORDER S1 3\n{line}") is None
    assert units(f"REORDER S1 3\n{line}\nREORDER S2 4") is None
    assert units(f"{line}\nREORDER S2 4\nREORDER S1 1") == [("S2", 4), ("S1", 1)]
    assert units(f"REORDER S1 3\n{line}\nREORDER NONE") == []


@pytest.mark.parametrize("last", ["QUOTE 12.50", "QUOTE 90\u2014120", "Quote later", "Refused?"])
def test_a_withdrawn_price_is_not_quoted(last: str) -> None:
    assert read_quote("QUOTE 90").value == 90
    assert read_quote(f"QUOTE 90\n{last}").value == (90 if last == "Refused?" else None)


@every(
    ("said", "command"),
    [
        ("**TRIP O1, O2**: `A0-3`, `A2-5`", Trip(("O1", "O2"), ("A0-3", "A2-5"))),
        ("Answer: TRIP O1 and O2: A0-3 -> A2-5", Trip(("O1", "O2"), ("A0-3", "A2-5"))),
        ("TRIP: O1 O2 (the most urgent)", Trip(("O1", "O2"), ())),
        ("TRIP 1: O1, O2", Trip(("O1", "O2"), ())),
        ("TRIP [O1, O2]", Trip(("O1", "O2"), ())),
        ("TRIP <O1, O2> (A0-3, A2-5)", Trip(("O1", "O2"), ("A0-3", "A2-5"))),
        ("Wait for 7 time units.", Wait(7)),
        ("- **done**", EndShift()),
        ("TRIP O1; TRIP O1", Trip(("O1",), ())),
        ("TRIP O1, then WAIT 5", None),
        ("TRIP O1\nTRIP O2 or TRIP O3", None),
        ("TRIP O1\nTRIP 2,3", None),
        ("TRIP O1\nWait, that is too early.", None),
        ("TRIP 1: O1, O2\nTRIP 2: O3\nTRIP 3: O4", Trip(("O1", "O2"), ())),
        ("1. TRIP 1: O3\nOr:\nTRIP 1: O1\nWAIT 5\nTRIP 2: O2", Trip(("O1",), ())),
        ("TRIP 1: O1\nTRIP 2: O2\nTRIP O3", Trip(("O3",), ())),
        ("TRIP 2: O3", Trip(("O3",), ())),
        ("TRIP O1-O3", None),
        ("TRIP O1 \u2013 O3", None),
        ("TRIP O1\u2014O3", None),
        ("WAIT 2\u20143", None),
        ("TRIP O1\nDone?", None),
        ("<think>\nTRIP O1", None),
    ],
)
def test_what_people_put_around_a_command_is_read(said: str, command: object) -> None:
    assert read_pick(said).value == command


@pytest.mark.parametrize(
    "said",
    [
        "REORDER S1 3, S2 14",
        "1. REORDER S1 = 3 units\n2. REORDER S2: 14 units",
        "reorder s1 3; REORDER S2 14.",
        *("**REORDER S1 3 and S2 14**", "REORDER S1: 3, S2: 14"),
    ],
)
def test_reorders_are_read_however_they_are_listed(said: str) -> None:
    assert units(said) == [("S1", 3), ("S2", 14)]
