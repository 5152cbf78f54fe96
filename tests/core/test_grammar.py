"""Laws of the grammar that all worlds share: what surrounds a command never changes it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.envs.core.grammar import (
    MOST_CHARACTERS,
    MOST_LINES,
    NUMBER,
    SEVERAL,
    Grammar,
    complaint,
    last_command,
    last_lines,
    last_match,
    lines_of,
    number,
    share,
    statements,
)

COMMAND = Grammar("BATTERY|EV", rf"(BATTERY|EV)\s*+[:=]?\s*+({NUMBER})(?:[ \t]*+kW)?")


@pytest.mark.parametrize(
    "line", ["BATTERY 1, BATTERY 2", "BATTERY 1 (or BATTERY 2)", "BATTERY 1 or BATTERY 2"]
)
def test_two_different_answers_hide_earlier_ones(line: str) -> None:
    assert last_match(COMMAND, f"BATTERY 3\n{line}") is None
    assert last_match(COMMAND, f"{line}\nBATTERY 3") is not None
    same = line.replace("2", "1")
    assert last_match(COMMAND, same) is not None


@pytest.mark.parametrize("separator", [", ", "; ", " ", " | ", " and ", " then ", " & "])
def test_several_commands_share_a_line(separator: str) -> None:
    ((_, _, found),) = statements(COMMAND, f"- **BATTERY 1.5{separator}EV 2**.")
    assert [(match[1], number(match[2])) for match in found] == [("BATTERY", 1.5), ("EV", 2.0)]


@given(st.text(), st.floats(-99, 99).map(lambda value: f"{value:.2f}"))
def test_thinking_before_a_command_changes_nothing(thinking: str, power: str) -> None:
    match = last_match(COMMAND, f"{thinking}\nBATTERY {power}")
    assert match is not None
    assert match[2] == power


@pytest.mark.parametrize("line", ["The battery is full.", "BATTERYS 3", "xEV 3", "No BATTERY."])
def test_a_line_that_begins_with_another_word_is_no_statement(line: str) -> None:
    assert list(statements(COMMAND, line)) == []


@pytest.mark.parametrize("line", ["so\n", "<think></think>\n", "Is it?\r"])
def test_thinking_that_began_long_before_still_holds_no_answer(line: str) -> None:
    long = line * (3 * MOST_CHARACTERS // len(line))
    assert last_match(COMMAND, f"{long}\nBATTERY 1") is not None
    assert last_match(COMMAND, f"<think>\n{long}\n</think>\nBATTERY 1") is not None
    opened = last_match(COMMAND, f"<think>\n{long.replace('</think>', '')}\nBATTERY 1")
    assert opened is None


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


def test_a_complaint_names_the_line_at_fault_and_the_form() -> None:
    hint = " Expected: BATTERY <power>"
    cases = {
        "": f"Malformed reply: it was empty.{hint}",
        "<think>\nBATTERY 1": f"Malformed reply: its thinking holds no answer.{hint}",
        "so\nit\n\n": f"Malformed reply: no line matched; line 2 reads 'it'.{hint}",
        "a\tb": f"Malformed reply: no line matched; line 1 reads 'a?b'.{hint}",
        "<think>\na\n</think>\nso\n<think>\nb": (
            f"Malformed reply: no line matched; line 4 reads 'so'.{hint}"
        ),
        "é'": f'Malformed reply: no line matched; line 1 reads "\\\\xe9\'".{hint}',
        "x" * 61: f"Malformed reply: no line matched; line 1 reads '{'x' * 60}'.{hint}",
    }
    for text, said in cases.items():
        assert complaint(text, "BATTERY <power>") == said
    at_fault = {
        "BATTERY two\nSo be it.": (1, "BATTERY two"),
        "so\n\n- BATTERY?\nThat is all.": (3, "- BATTERY?"),
        "BATTERY 1\nBATTERY 1 or 2\nEV 1\nwell": (2, "BATTERY 1 or 2"),
        "EV 1\nBATTERY 1, BATTERY 2\nwell": (2, "BATTERY 1, BATTERY 2"),
        "hm\nMaybe BATTERY 1.\nwell": (2, "Maybe BATTERY 1."),
        "<think>\nx\n</think>\nBATTERY two\n": (4, "BATTERY two"),
    }
    for text, (line, quoted) in at_fault.items():
        said = complaint(text, "BATTERY <power>", COMMAND)
        fault = f"its answer cannot be read; line {line} reads {quoted!r}.{hint}"
        assert said == f"Malformed reply: {fault}"
    for text in ("BATTERY 1", "It is\nBATTERY 1"):
        cut = complaint(text, "BATTERY <power>", COMMAND, complete=False)
        assert cut == f"Malformed reply: it was cut off before its answer ended.{hint}"


@given(st.text(), st.text())
def test_lines_that_ended_before_a_cut_are_read(before: str, unfinished: str) -> None:
    rest = "".join(unfinished.split()).replace("<", "")
    cut = last_match(COMMAND, f"{before}\nBATTERY 2\n{rest}", complete=False)
    assert cut is not None
    assert cut[2] == "2"
    assert last_match(COMMAND, f"BATTERY 2{rest}", complete=False) is None


@pytest.mark.parametrize(
    ("text", "several"),
    [
        *(("BATTERY 1\nBATTERY 2", True), ("BATTERY 1\nso\nBATTERY 1", False)),
        *(("BATTERY 1 or 2\nBATTERY 2", False), ("<think>\nBATTERY 1\n</think>\nBATTERY 2", False)),
        *(("I would say BATTERY 1\nBATTERY 2", True), ("BATTERY 1, BATTERY 1", False)),
    ],
)
def test_the_last_of_several_answers_counts_with_a_remark(text: str, several: bool) -> None:
    command, said = last_command(COMMAND, text)
    assert command is not None
    assert said == (SEVERAL if several else "")


@given(st.text("a \n\r\u2028"), st.integers(1, 3000), st.text("a \n"), st.integers(1, 9))
def test_the_last_lines_are_those_of_the_whole(text: str, times: int, end: str, count: int) -> None:
    whole = text * times + end
    assert last_lines(whole, count) == lines_of(whole)[-count:]
