"""Laws of nearness to the form: graded, bounded, and nothing to gain from repetition or length."""

from difflib import SequenceMatcher

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.every import every
from tokengym.envs.core.form import nearness

FORM = "Probability: 0.000"
BY_NEARNESS = [
    "",
    "I think that",
    "The probability of A winning",
    "Probability 0.65",
    "Probability: 0.65x",
]


def test_what_reads_nearer_is_graded_higher() -> None:
    grades = [nearness(reply, FORM) for reply in BY_NEARNESS]
    assert grades[0] == 0.0
    assert grades == sorted(set(grades))


def test_an_answer_that_goes_on_loses_by_what_it_adds() -> None:
    grades = [nearness("Probability: 0.650" + "\nBecause" * extra, FORM) for extra in range(5)]
    assert grades[0] == 1.0
    assert grades == sorted(set(grades), reverse=True)
    assert grades[1] > nearness("Because it is likely to be so.", FORM)


def test_an_answer_of_two_lines_is_graded_by_both() -> None:
    forms = ("LABEL neutral", "P 0.00 0.00 0.00")
    first, both = "LABEL neutral", "LABEL neutral\nP 0.20 0.30"
    assert 0.0 < nearness(first, *forms) < nearness(both, *forms) < 1.0


@given(st.text(max_size=300))
def test_a_grade_lies_between_nothing_and_the_form(reply: str) -> None:
    assert 0.0 <= nearness(reply, FORM) <= 1.0


@given(st.text(min_size=1, max_size=80), st.integers(2, 50))
def test_repetition_never_pays(reply: str, times: int) -> None:
    assert nearness("\n".join([reply] * times), FORM) <= nearness(reply, FORM)


@given(st.text("abcdefg \n", min_size=30, max_size=80))
def test_length_never_pays(reply: str) -> None:
    assert nearness(f"{reply}\n{'so ' * 400}\n{reply}", FORM) <= nearness(reply, FORM)


@given(st.lists(st.text("abcdefghij .", min_size=20, max_size=60), min_size=8, max_size=8))
def test_prose_seldom_ties(replies: list[str]) -> None:
    different = {reply.strip() for reply in replies}
    grades = {nearness(reply, FORM) for reply in different}
    assert len(grades) > 1 or len(different) <= 2


def test_a_megabyte_is_graded_at_once() -> None:
    for piece in ("a", " ", "\n", "Probability: ", "0"):
        assert nearness(piece * 1_000_000, FORM) < 0.01


@pytest.mark.parametrize("filler", [0, 1, 2, 9])
def test_the_last_lines_count_as_the_first_do(filler: int) -> None:
    forms = ("LABEL neutral", "P 0.00 0.00 0.00")
    answer, between = ["LABEL neutral", "P 0.20 0.30"], ["so it goes"] * filler
    first, last = (
        nearness("\n".join(lines), *forms) for lines in (answer + between, between + answer)
    )
    assert first == last
    # In the middle of a long reply nobody looks for it.
    hidden = nearness("\n".join(["so it goes"] * 9 + answer + ["so it goes"] * 9), *forms)
    assert hidden < nearness("\n".join(["so it goes"] * 18 + answer), *forms)


@every(
    "line",
    [
        "Probability: 0.6",
        "PROBABILITY:  0.65x",
        "Prob 0.5",
        "0.5",
        "Probability: 0.65 or so, I think",
    ],
)
@pytest.mark.parametrize("more", ["", "x" * 18, "x" * 100])
def test_a_grade_is_half_beginning_and_half_likeness(line: str, more: str) -> None:
    form = FORM.lower()
    read = " ".join("".join("0" if sign.isdigit() else sign for sign in line.lower()).split())
    begun = read[: 2 * len(form)]
    same = [length for length in range(len(form) + 1) if begun[:length] == form[:length]]
    alike = max(same) / len(form)
    ratio = SequenceMatcher(None, begun, form, autojunk=False).ratio()
    text = f"{line}\n{more}" if more else line
    superfluous = max(0, len(text) - len(form) - 1)
    wanted = (0.5 * alike + 0.5 * ratio) / (1.0 + superfluous / (4.0 * len(form)))
    assert nearness(text, FORM) == pytest.approx(wanted)
