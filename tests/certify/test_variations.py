"""Answers near right ones: what is wrong is wrong, and what is the same is the same."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.agents.certify import variations

NUMBERS = st.one_of(
    st.integers(-(10**6), 10**6).map(str),
    st.decimals(-1000, 1000, allow_nan=False, places=2).map(str),
)


@given(NUMBERS)
def test_wrong_numbers_are_other_numbers_and_right_ones_the_same(answer: str) -> None:
    for how, text in variations.wrong(answer).items():
        if "not evaluated" in how:
            assert eval(text.replace("--", "- -")) == pytest.approx(float(answer))
            assert not {answer, answer.lstrip("-")} & {*text.replace("*", "+").split("+")}
        else:
            assert Decimal(text) != Decimal(answer), how
    for how, text in variations.same(answer).items():
        plain = text.strip().strip("$").replace(",", "")
        if how != "words":
            assert Decimal(plain) == Decimal(answer), how


@given(NUMBERS, st.sampled_from([0.01, 0.06]))
def test_a_tolerance_leaves_out_what_it_allows(answer: str, tolerance: float) -> None:
    for how, text in variations.wrong(answer, tolerance).items():
        if "not evaluated" not in how:
            right = Decimal(answer)
            assert abs(Decimal(text) - right) > Decimal(tolerance) * abs(right)


def test_decimal_fractions_may_be_rounded_and_whole_numbers_not() -> None:
    fraction, whole = variations.wrong("91585693.041"), variations.wrong("91585693")
    digits = {"a digit more", "a digit less", "one more", "one less"}
    assert not digits & fraction.keys()
    assert digits <= whole.keys()
    assert variations.wrong("0.5")["a digit more"] == "0.57"


@pytest.mark.parametrize(
    ("answer", "how", "text"),
    [
        ("12 km", "another unit", "12 m"),
        ("[1, 2, 3]", "one item of several", "[1]"),
        ("[1, 2, 3]", variations.SWAPPED, "[2, 1, 3]"),
        ("1, 2", "all items but the last", "1"),
        ("Paris", "its first half", "Pa"),
        ("77", "a digit less", "7"),
        ("0.5", "ten times as much", "5.0"),
    ],
)
def test_wrong_answers_have_their_kind(answer: str, how: str, text: str) -> None:
    assert variations.wrong(answer)[how] == text


@pytest.mark.parametrize(
    ("answer", "text"),
    [("0.50", ".50"), ("1200", "1,200"), ("7", "seven"), ("Paris", "PARIS"), ("42", "$42$")],
)
def test_the_same_answer_is_written_otherwise(answer: str, text: str) -> None:
    assert text in variations.same(answer).values()


def test_commands_keep_their_letters() -> None:
    assert {"upper case", "lower case"}.isdisjoint(variations.same(r"\frac{1}{2}"))


def test_replies_of_several_lines_are_left_alone() -> None:
    assert variations.wrong("LABEL a\nP 0.1 0.9") == {}
