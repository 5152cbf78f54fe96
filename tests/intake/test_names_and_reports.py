"""Names, near texts and reports: what was meant, what says the same, and what was left out."""

from collections.abc import Iterator
from typing import Any

import pytest

from tokengym.envs.intake.names import Watched, name_unknown, repeated
from tokengym.envs.intake.near import content_words, group_near, hash_words
from tokengym.envs.intake.numbers import read_identifier
from tokengym.envs.intake.quoting import quoted
from tokengym.envs.intake.report import Dropped, Guard, IntakeReport, group_dropped, note_empty


def test_errors_quote_the_beginning_of_a_value() -> None:
    assert quoted("x" * 58) == repr("x" * 58)  # 60 characters with its marks
    assert quoted("x" * 59) == "'" + "x" * 59 + "..."
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    assert quoted(nested) == "a list nested too deep"
    while nested:  # or taking it apart would go as deep
        nested = nested[0]


def test_unknown_names_are_listed_with_likely_meanings() -> None:
    assert name_unknown(["load", "Prcie", "", "zzz"], ["price", "load"]) == (
        "Prcie (did you mean 'price'?), zzz"
    )
    assert name_unknown(["load"], ["load", "price"]) == ""
    # A name that is there as well was not meant.
    assert name_unknown(["prcie", "price"], ["price"]) == "prcie"
    twenty = [f"field {n}!" for n in range(20)]
    assert name_unknown(twenty, []) == ", ".join(twenty)
    assert name_unknown([*twenty, "x", "y"], []) == ", ".join([*twenty, "and 2 more"])
    assert name_unknown(["n" * 61], []) == "n" * 60
    assert (repeated(["a", "", "", "b", "a", "b"]), repeated(["a", "b", ""])) == ("a", None)


def test_a_row_remembers_what_was_asked_for() -> None:
    row = Watched({"a": 1, "b": 2})
    assert (list(row), len(row), row.asked) == (["a", "b"], 2, set())
    assert row["a"] == 1
    assert row.get("c") is None
    assert row.asked == {"a", "c"}


@pytest.mark.parametrize(
    ("text", "read"),
    [("12.0", "12"), (" 7.0 ", "7"), ("7.00", "7.00"), ("1.05", "1.05"), ("W1.0", "W1.0")],
)
def test_identifiers_lose_fractions_that_tools_added(text: str, read: str) -> None:
    assert read_identifier(text) == read


def test_texts_are_near_by_words_and_not_numbers() -> None:
    base = "Which team wins the champions league final match tonight"
    near = [
        "which Team won't",
        "Champions League final match: which teams win tonight?",
        "Which team wins the champions league final match",
        "Which team wins the champoins league final match tonight",
        "Which team wins the champion league final match tonight",
    ]
    assert [group_near([base, other])[1] == 0 for other in near] == [
        *(False, True, True, True, True)
    ]
    # One letter more, less or other, in words of at least six; two letters are another word.
    for other, same in (("champxions", True), ("chmpions", True), ("chaxpions", True)):
        assert (group_near([base, base.replace("champions", other)])[1] == 0) == same
    assert group_near([base, base.replace("champions", "chaxxions")]) == [0, 1]
    assert group_near([base, base.replace("match", "mitch")]) == [0, 1]
    numbered = "Will product 17 sell more units than product 25 next month"
    assert group_near([numbered, numbered.replace("17", "18")]) == [0, 1]
    # Four words or fewer must be the same.
    assert group_near(
        ["alpha beta gamma delta", "alpha beta gamma deltas", "alpha beta gamma"]
    ) == [*(0, 0, 2)]
    assert group_near(["alpha beta gamma delta omega", "alpha beta gamma delta"]) == [0, 0]
    assert group_near(["", "!", ""]) == [0, 1, 2]
    assert group_near(["the of", "of the", "the"]) == [0, 0, 2]


def test_words_are_compared_by_their_stems() -> None:
    alike = ({"close", "closes", "closed"}, {"win", "wins", "winner", "winning"})
    for words in alike:
        assert len({content_words(word) for word in words}) == 1
    apart = {"win", "wine", "close", "clause", "red", "re"}
    assert len({content_words(word) for word in apart}) == len(apart) - 1  # win and wine are one
    assert hash_words("") == hash_words([]) == 0
    assert hash_words(["b", "a"]) == hash_words("a b") != hash_words("b a")
    assert 0 < hash_words("a") < 2**64
    assert hash_words("price") == 14028459523106168241


def test_what_was_left_out_is_grouped_counted_and_placed() -> None:
    refused: Iterator[tuple[int, str, str]] = iter(
        [(1, "late", "f:1"), (2, "dark", "f:2"), (1, "late", "f:3"), (0, "gap", "f:4")]
    )
    found = group_dropped([*refused, (1, "late", "f:5")])
    assert found == (
        Dropped(3, "late", ("f:1", "f:3", "f:5")),
        Dropped(2, "dark", ("f:2",)),
        Dropped(0, "gap", ("f:4",)),
    )
    assert [str(one) for one in found] == [
        "3 rows left out: late (f:1, f:3 and 1 more)",
        "2 rows left out: dark (f:2)",
        "cut: gap (f:4)",
    ]
    assert str(Dropped(1, "x", ("f:1", "f:2"))) == "1 row left out: x (f:1, f:2)"
    report = IntakeReport(
        rows={"f": 1234, "g": 1},
        dropped=found,
        guards={"a": Guard(2, "twins", "joined"), "b": Guard(0, "none", "nothing")},
        notes=("first",),
    )
    assert report.refused == 5
    assert str(report).splitlines() == [
        "first",
        "rows: f 1,234, g 1; 5 refused",
        *map(str, found),
        "2 twins: joined",
    ]
    assert str(IntakeReport({"f": 1})) == "rows: f 1; 0 refused"
    assert note_empty({"train": 1, "test": 2}) == ()
    assert note_empty({"train": 0, "validation": 1, "test": 0}) == (
        "nothing is left for train and test",
    )
