"""Laws of the grammar that all worlds share: what surrounds a command never changes it."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.every import every
from tokengym.envs.core.grammar import (
    MOST_CHARACTERS,
    MOST_LINES,
    NUMBER,
    Grammar,
    complaint,
    last_match,
    number,
    share,
    statements,
)

COMMAND = Grammar("BATTERY|EV", rf"(BATTERY|EV)\s*+[:=]?\s*+({NUMBER})(?:[ \t]*+kW)?")
DECORATED = [
    "{}",
    "{}.",
    "**{}**",
    "*{}*",
    "_{}_",
    "***{}***",
    "`{}`",
    "```\n{}\n```",
    "```text\n{}\n```\n",
    "- {}",
    "* {}",
    "• {}",
    "1. {}",
    "2) {}",
    "> {}",
    "> - **{}**",
    "### {}",
    '"{}"',
    "'{}'",
    "“{}”",
    "Answer: {}",
    "**Answer:** {}",
    "Final answer: {}",
    "My answer is: {}",
    "<answer>{}</answer>",
    "<answer>\n{}\n</answer>",
    r"\boxed{{{}}}",
    r"$\boxed{{\text{{{}}}}}$",
    "thinking\n\n{}",
    "{}\nThat is all.",
    "{} # the price is 3",
    "{} // cheap",
    "{} (as prices are low)",
    "{}, because it is cheap",
    "{} since it is cheap",
    "\u00a0{}\u200b",
    "\ufeff{}\r\n",
]


@every("decoration", DECORATED)
@pytest.mark.parametrize(
    ("command", "value"),
    {
        "BATTERY 1.5": 1.5,
        "battery: -2": -2.0,
        "Battery = .5 kW": 0.5,
        "BATTERY \u22121.5": -1.5,
        "BATTERY - 1.5": -1.5,
        "BATTERY\u00a0+ 3": 3.0,
    }.items(),
)
def test_decoration_changes_nothing(decoration: str, command: str, value: float) -> None:
    match = last_match(COMMAND, decoration.format(command))
    assert match is not None
    assert number(match[2]) == value


@pytest.mark.parametrize(
    "line",
    [
        "",
        "BATTERY",
        "The BATTERY 1.5",
        "BATTERY 500 W",
        "BATTERY 1.5 or 2",
        "BATTERY 1 - 2",
        "BATTERY 1.5, then 2",
        "BATTERY 1.5 out of 3",
        "BATTERY ٣",
        "BATTERY 0x10",
        "BATTERY 1_0",
    ],
)
def test_what_could_mean_something_else_is_no_command(line: str) -> None:
    assert last_match(COMMAND, line) is None


@pytest.mark.parametrize(
    "line",
    ["BATTERY 1, BATTERY 2", "BATTERY 1 (or BATTERY 2)", "BATTERY 1 or BATTERY 2"],
)
def test_two_answers_that_differ_are_none_and_hide_what_came_before(line: str) -> None:
    assert last_match(COMMAND, f"BATTERY 3\n{line}") is None
    assert last_match(COMMAND, f"{line}\nBATTERY 3") is not None
    same = line.replace("2", "1")
    assert last_match(COMMAND, same) is not None


@pytest.mark.parametrize("separator", [", ", "; ", " ", " | ", " and ", " then ", " & "])
def test_several_commands_share_a_line(separator: str) -> None:
    ((_, found),) = statements(COMMAND, f"- **BATTERY 1.5{separator}EV 2**.")
    assert [(match[1], number(match[2])) for match in found] == [("BATTERY", 1.5), ("EV", 2.0)]


@given(st.text(), st.floats(-99, 99).map(lambda value: f"{value:.2f}"))
def test_thinking_before_a_command_changes_nothing(thinking: str, power: str) -> None:
    match = last_match(COMMAND, f"{thinking}\nBATTERY {power}")
    assert match is not None
    assert match[2] == power


UNREADABLE = [
    "BATTERY",
    "BATTERY: none",
    "battery about 1",
    "**BATTERY** 1,5",
    "- BATTERY is full",
    "Answer: BATTERY 1 or 2",
    "BATTERY 500 W",
    "BATTERY 500 (W)",
    "BATTERY 1 (in 10)",
    "BATTERY 1 [to 3]",
    "BATTERY 1 (or 3)",
    "BATTERY 1 (- 3)",
    "BATTERY 1 (low) or 3",
    "BATTERY 2\u20143",
    "BATTERY 2 \u2014 3",
    "BATTERY 2 - EV3",
    "BATTERY 2-EV",
    "BATTERY 2\u20133",
    "BATTERY 2//3",
    "BATTERY 1, EV off",
    "BATTERY 1 and EV as before",
]


@every("line", UNREADABLE)
def test_an_unreadable_statement_withdraws_what_came_before(line: str) -> None:
    assert last_match(COMMAND, line) is None
    assert last_match(COMMAND, f"BATTERY 3\n{line}\nThat is all.") is None
    assert last_match(COMMAND, f"{line}\nBATTERY 3\nThat is all.") is not None


@pytest.mark.parametrize("line", ["The battery is full.", "BATTERYS 3", "xEV 3", "No BATTERY."])
def test_a_line_that_begins_with_another_word_is_no_statement(line: str) -> None:
    assert list(statements(COMMAND, line)) == []


@pytest.mark.parametrize(
    ("reply", "power"),
    [
        ("<think>\nBATTERY 1", None),
        ("<think>BATTERY 1</think>", None),
        ("<Thinking>\nBATTERY 1\n", None),
        ("BATTERY 1\n</think>", None),
        ("<think>so</think>\n<think>\nBATTERY 1", None),
        ("<think>\nBATTERY 1\n</think>\n\nBATTERY 2", 2.0),
        ("BATTERY 1\n</think>\nBATTERY 2", 2.0),
        ("BATTERY 2\n<think>\nBATTERY 1", 2.0),
        ("BATTERY 2\n<think>\nBATTERY about 1\n</think>", 2.0),
        ("<think>a<think>b</think>BATTERY 2", 2.0),
        ("BATTERY 2 if x < 3\nBATTERY 2", 2.0),
    ],
)
def test_thinking_holds_no_answer(reply: str, power: float | None) -> None:
    match = last_match(COMMAND, reply)
    assert (match and number(match[2])) == power


@pytest.mark.parametrize("line", ["so\n", "<think></think>\n", "Is it?\r"])
def test_thinking_that_began_long_before_still_holds_no_answer(line: str) -> None:
    long = line * (3 * MOST_CHARACTERS // len(line))
    assert last_match(COMMAND, f"{long}\nBATTERY 1") is not None
    assert last_match(COMMAND, f"<think>\n{long}\n</think>\nBATTERY 1") is not None
    opened = last_match(COMMAND, f"<think>\n{long.replace('</think>', '')}\nBATTERY 1")
    assert opened is None


def test_a_complaint_quotes_what_stands_outside_the_thinking() -> None:
    assert "line 4 reads 'so'" in complaint("<think>\na\n</think>\nso\n<think>\nb", "x")
    assert "thinking holds no answer" in complaint("<think>\nBATTERY 1", "x")
    assert "empty" in complaint(" \n", "x")


PIECES = [" ", "\t", "-", "*", "_", "a", "9", ".", "BATTERY ", "BATTERY 1 ", "BATTERY 1,", "> "]
PIECES += [
    "1. ",
    "(",
    "answer: ",
    "<answer>",
    "\n",
    "- ",
    "\u2212",
    "}",
    "\\boxed{",
    '"',
    "(",
    "(a",
    "<think>",
    "</think>",
    "<think></think>",
    " and",
    "#",
]


@every("piece", PIECES)
def test_time_is_linear(piece: str) -> None:
    """One megabyte of anything takes less than a hundred times what ten kilobytes may take."""
    for head, tail in (("", ""), ("BATTERY", "x"), ("BATTERY 1", "x"), ("a", "BATTERY 1")):
        started = time.process_time()
        last_match(COMMAND, head + piece * (1_000_000 // len(piece)) + tail)
        assert time.process_time() - started < 5.0  # quadratic time would be minutes


def test_only_the_last_lines_of_a_reply_are_read() -> None:
    assert last_match(COMMAND, "BATTERY 1\n" + "so\n\n" * (MOST_LINES - 1)) is not None
    assert last_match(COMMAND, "BATTERY 1\n" + "so\n\n" * MOST_LINES) is None


@pytest.mark.parametrize(
    ("matched", "percent", "value"),
    [
        *(("42", "%", 0.42), ("250", " %", 2.5), ("0.42", "", 0.42), ("-3", "%", -0.03)),
        *(("+ 4", "", 4.0), ("- 4.5", "", -4.5), ("-\t.5", "%", -0.005), ("1e2", "%", 1.0)),
    ],
)
def test_a_share_is_a_number_or_so_many_hundredths(
    matched: str, percent: str, value: float
) -> None:
    assert share(matched, percent) == pytest.approx(value)
    if not percent:
        assert number(matched) == value


def test_a_complaint_names_the_last_line_its_place_and_the_form() -> None:
    hint = " Expected: BATTERY <power>"
    cases = {
        "": f"Malformed reply: it was empty.{hint}",
        "<think>\nBATTERY 1": f"Malformed reply: its thinking holds no answer.{hint}",
        "so\nit\n\n": f"Malformed reply: no line matched; line 2 reads 'it'.{hint}",
        "a\tb": f"Malformed reply: no line matched; line 1 reads 'a?b'.{hint}",
        "é'": f'Malformed reply: no line matched; line 1 reads "\\\\xe9\'".{hint}',
        "x" * 61: f"Malformed reply: no line matched; line 1 reads '{'x' * 60}'.{hint}",
    }
    for text, said in cases.items():
        assert complaint(text, "BATTERY <power>") == said
    cut = complaint("BATTERY 1", "BATTERY <power>", complete=False)
    assert cut == f"Malformed reply: it was cut off before it ended.{hint}"
