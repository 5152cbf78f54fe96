"""Laws of the grammar that all worlds share: what surrounds a command never changes it."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.envs.core.grammar import MOST_LINES, NUMBER, last_commands, last_match, number

COMMAND = re.compile(
    rf"(BATTERY|EV)\s*+[:=]?\s*+({NUMBER})(?:[ \t]*+kW)?", re.IGNORECASE | re.ASCII
)
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


@pytest.mark.parametrize("decoration", DECORATED)
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
    assert last_commands(COMMAND, line) == []


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
    found = last_commands(COMMAND, f"- **BATTERY 1.5{separator}EV 2**.")
    assert [(match[1], number(match[2])) for match in found] == [("BATTERY", 1.5), ("EV", 2.0)]


@given(st.text(), st.floats(-99, 99).map(lambda value: f"{value:.2f}"))
def test_thinking_before_a_command_changes_nothing(thinking: str, power: str) -> None:
    match = last_match(COMMAND, f"{thinking}\nBATTERY {power}")
    assert match is not None
    assert match[2] == power


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
    " and",
    "#",
]


@pytest.mark.parametrize("piece", PIECES)
def test_time_is_linear(piece: str) -> None:
    """One megabyte of anything takes less than a hundred times what ten kilobytes may take."""
    for head, tail in (("", ""), ("BATTERY", "x"), ("BATTERY 1", "x"), ("a", "BATTERY 1")):
        started = time.process_time()
        last_match(COMMAND, head + piece * (1_000_000 // len(piece)) + tail)
        assert time.process_time() - started < 5.0  # quadratic time would be minutes


def test_only_the_last_lines_of_a_reply_are_read() -> None:
    assert last_match(COMMAND, "BATTERY 1\n" + "so\n\n" * (MOST_LINES - 1)) is not None
    assert last_match(COMMAND, "BATTERY 1\n" + "so\n\n" * MOST_LINES) is None
