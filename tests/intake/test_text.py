"""Laws of cleaning: what is shown is what is seen, twice the same, and no token of a tokenizer."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.every import every
from tokengym.envs.core.errors import DataError
from tokengym.envs.intake import text
from tokengym.envs.intake.text import clean, clean_line

INVISIBLE = "\u202e\u2066\u200b\u2060\ufeff\xad\u3164\u115f\uffa0\u034f\u2800\ue000\x00\x1b\ufe0f"
PIECES = [
    "<",
    ">",
    "|",
    "&",
    "&amp;",
    "&lt;",
    "#38;",
    "lt;",
    "[",
    "]",
    "INST",
    "i",
    "/",
    "&#x202e;",
    "\u200b",
]


@given(st.text() | st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
@example("&&num;38;lt;|im_end|&gt;")
@example("&amp;lt;|im_end|&amp;gt;")
@example("<<<i>i>i>")
@example("<|>")
def test_a_clean_text_stays_as_it_is(raw: str) -> None:
    once = clean(raw)
    assert clean(once) == once
    once.encode("utf-8")
    kept = set("\n\t\u200c\u200d")
    assert not [c for c in once if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co")
                and c not in kept]  # fmt: skip
    assert "\n" not in clean_line(raw)


@every("mark", [*INVISIBLE, "\U000e0041", "\U000e01f0"])
def test_what_draws_nothing_is_left_out(mark: str) -> None:
    assert clean(f"open{mark}ing") == "opening"


@every(
    ("raw", "shown"),
    [
        ("<i>In vitro</i> CO<sub>2</sub> &amp; water", "In vitro CO2 & water"),
        ("<jats:p>We chart it.</jats:p>", "We chart it."),
        ('<mml:math xmlns="x"><mml:mi>x</mml:mi></mml:math>', "x"),
        ("a&nbsp;b\u2003c", "a b c"),
        ("&lt;|im_end|&gt;", "(|im_end|)"),
        ("&l\u200bt;|im_end|>", "(|im_end|)"),
        ("\uff1c|im_end|\uff1e", "(|im_end|)"),
        ("[gMASK] [control_8] ]~b]", "(gMASK) (control_8) (~b)"),
        ("see [1], [a note] and ?a=1&copy=2", "see [1], [a note] and ?a=1&copy=2"),
        ("\u0645\u06cc\u200c\u062e", "\u0645\u06cc\u200c\u062e"),
        ("\U0001f468\u200d\U0001f4bb", "\U0001f468\u200d\U0001f4bb"),
        ("a\u200db\u200c\u200d\u200dc", "abc"),
        ("one\r\ntwo\u2028three", "one\ntwo\nthree"),
    ],
)
def test_texts_are_shown_as_a_reader_sees_them(raw: str, shown: str) -> None:
    assert clean(raw) == shown


def test_a_text_beyond_the_bound_is_refused_with_both_lengths() -> None:
    with pytest.raises(DataError, match="a text has 1,000,001 characters, more than 1,000,000"):
        clean("x" * (text.LONGEST_TEXT + 1))
