"""One table for all worlds: what people and models really type, and how each form is read."""

from collections.abc import Callable
from typing import NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.every import every
from tokengym.envs.disruption.grammar import read_answer
from tokengym.envs.energy.grammar import read_commands
from tokengym.envs.forecasting.grammar import read_forecast
from tokengym.envs.warehouse.grammar import read_pick, read_quote, read_reorder


class Reader(NamedTuple):
    """How a world reads a command.

    Attributes:
        word: the word that its commands begin with.
        value: what follows the word in the answer.
        other: what follows it in another answer.
        read: from a reply to what it answers; `None` if nothing.
    """

    word: str
    value: str
    other: str
    read: Callable[[str], object]


def read_reports(text: str) -> object:
    # A label before and after: thinking may swallow one of them.
    answer = read_answer(f"LABEL neutral\n{text}\nLABEL neutral", ("disruption",)).value
    return answer and answer.reports


READERS = {
    "forecast": Reader("Probability", "0.4", "0.7", lambda text: read_forecast(text, 0).value),
    "forecast-several": Reader(
        "Probabilities",
        *("A 0.2, B 0.3, C 0.5", "A 0.1, B 0.2, C 0.7"),
        lambda text: read_forecast(text, 3).value,
    ),
    "energy": Reader(
        "BATTERY", "4", "7", lambda text: read_commands(text, ("BATTERY",), now="10").value
    ),
    "warehouse-pick": Reader("TRIP", "O4", "O7", lambda text: read_pick(text).value),
    "warehouse-stock": Reader("REORDER", "S1 4", "S1 7", lambda text: read_reorder(text).value),
    "warehouse-lease": Reader("QUOTE", "40", "70", lambda text: read_quote(text).value),
    "disruption": Reader("P", "0.2 0.3 0.5", "0.1 0.2 0.7", read_reports),
}

# Forms of a whole reply. Names in braces stand for: `answer`, the word and its value; `rival`, the
# word and another value; `word`, `value` and `other`, the parts of both.
READ = (
    # What stands between a word and its value.
    *("{word} {value}", "{word}: {value}", "{word}:{value}", "{word} = {value}", "{word}={value}"),
    *("{word} : {value}", "{word}\t{value}", "{word}\u00a0{value}", "{word}\uff1a{value}"),
    *("{word}\uff1a {value}", "{word}\uff1d{value}", "{word}: {wide}", "{wide_word}\uff1a{wide}"),
    *("{lower}: {value}", "{upper} {value}", "{word}\u2002{value}", "**{word}:** {value}"),
    *("**{word}**: {value}", "`{word}`: `{value}`", "_{word}_ {value}"),
    # Decoration.
    *(" {answer} ", "\t{answer}", "{answer}\r\n", "{answer}.", "{answer}!", "{answer} ."),
    *("{answer}\u3002", "{answer}\uff0e", "{answer};", "{answer},", "**{answer}**", "*{answer}*"),
    *("_{answer}_", "__{answer}__", "***{answer}.***", "`{answer}`", "~~{answer}~~", "- {answer}"),
    *("* {answer}", "+ {answer}", "\u2022 {answer}", "\u2023 {answer}", "\u2014 {answer}"),
    *("1. {answer}", "2) {answer}", "(3) {answer}", "> {answer}", ">> {answer}"),
    "> - **{answer}**",
    *("# {answer}", "### {answer}", "| {answer} |", "\u2192 {answer}", "=> {answer}"),
    *("--> {answer}", "\u2705 {answer}", "{answer} \u2705", "\u25b6\ufe0f {answer}"),
    *("{answer}. \U0001f44d", '"{answer}"', "'{answer}'", "\u201c{answer}\u201d"),
    *("\u00ab{answer}\u00bb", "\ufeff{answer}", "\u2018{answer}\u2019", "\u200b{answer}"),
    *("Answer: {answer}", "**Answer:** {answer}", "Answer\uff1a{answer}", "Final answer: {answer}"),
    *("My answer is: {answer}", "Output: {answer}", "The final answer is: {answer}"),
    *("Revised answer: {answer}", "New answer: {answer}", "Correction: {answer}"),
    *("So my final answer is: {answer}", "Final decision: {answer}", "<answer>{answer}</answer>"),
    *("<answer>\n{answer}\n</answer>", "<b>{answer}</b>", "<final_answer>{answer}</final_answer>"),
    *("<strong>{answer}</strong>", "{answer}<br/>", "<code>{answer}</code>"),
    *("<response>{answer}</response>", r"\boxed{{answer}}", r"$\boxed{\text{{answer}}}$"),
    *(r"\textbf{{answer}}", r"$\mathbf{{answer}}$", "```\n{answer}\n```", "```text\n{answer}\n```"),
    *("~~~\n{answer}\n~~~", "hm\r{answer}\rso be it", "Let me see.\n\n{answer}\n\nThat is all."),
    *("Is 3 enough?\n{answer}", "{answer}\u2028Yes.", "{answer}\nI am sure, 9 of 10."),
    *("{answer}\n\n\n", "\n\n{answer}"),
    # Comments.
    *("{answer} # price 3", "{answer} # why not", "{answer} // it is cheap", "{answer} (low)"),
    *("{answer} [as before]", "{answer} (4 of 10)", "{answer} (see (a))"),
    *("{answer} (low) # price 3", "{answer} (low), as it is cheap", "{answer} (it is cheap)."),
    *("{answer} (to save money)", "{answer}, because it is cheap", "{answer}, as usual"),
    *("{answer}; that is all", "{answer}. That is my answer.", "{answer} because it is cheap"),
    *("{answer} since it is cheap", "{answer} as it is cheap", "{answer} so that it lasts"),
    *("{answer}...", "{answer}\u2026", "{answer} \u2014 it is cheap", "{answer} - it is cheap"),
    *("{answer} -- it is cheap", "{answer}, to save money", "{answer}. No rain today."),
    *("{answer}\u3002It is cheap", "{answer}\uff0c as usual", "{answer} (because prices are low)"),
    "{answer}: that is all",
    # The last of several.
    *("{rival}\n{answer}", "{rival}\nNo.\n{answer}", "{word} unclear\n{answer}"),
    *("{rival}\r{answer}", "{answer}, {answer}", "{answer}\n{answer}"),
    "{rival}, {rival}\nFinal answer: {answer}",
    # Thinking.
    *("<think>\n{rival}\n</think>\n\n{answer}", "{rival}\n</think>\n{answer}"),
    *("<think></think>{answer}", "{answer}\n<think>\n{rival}", "{answer}\n<think>{rival}</think>"),
    *("<think>\n\n</think>\n\n{answer}", "<thinking>{rival}</thinking>\n{answer}"),
    *("{answer}\n<think>\n{word}\n</think>", "{answer}<think>", "<think>a<think>b</think>{answer}"),
    "{answer} if x < 3\n{answer}",
    # Prose that leads to it, and hedges that change nothing.
    *("The {word}: {value}", "I choose {word} {value}", "{word} is {value}", "{word}: {{value}"),
    *("{word} about {value}", "{word}: approximately {value}", "{answer} or so", "{answer}, or so"),
    *("{answer} (or so)", "{answer}, roughly", "{answer} (approximately)"),
    *("{answer}\n{word} is {value}", "{rival}\n{answer} or so", "I will go with {answer}."),
    *("So my final answer is {answer}", "Therefore, {answer}.", "\u200e{answer}\u202c"),
    *("{rival} or so\n{answer}", "Thus the best {word} is {value}.", "Let's go with {answer}"),
    *("| {word} | {value} |", "10h: {answer}", r"So the answer is $\boxed{{answer}}$."),
    *("{answer}\nSo {answer} or {rival}", "So {rival} or {answer}\n{answer}"),
)
REFUSED = (
    *("", "{value}", "{word}", "{word} {arabic}", "I never choose {answer}", "If {answer}"),
    *("<!-- {answer} -->", "Is it {answer}?", "Not {answer}", "Either {answer} or {rival}"),
    # Tails that qualify.
    "{answer} or less",
    *("{answer}, or more", "{answer} or {other}", "{answer} (or {other})", "{answer} at most"),
    *("{answer}, at most", "{answer} (at least)"),
    *("{answer}, maybe", "{answer} (perhaps)", "{answer} if it rains", "{answer}, if it rains"),
    *("{answer} (if it rains)", "{answer}, unless it rains", "{answer}, but only then"),
    *("{answer}, but not now", "{answer}?"),
    *("{answer} (percent)", "{answer}, percent", "{answer} thousand", "{answer} (million)"),
    *("{answer} (W)", "{answer} (kWh)", "{answer} (%)", "{answer}, no", "{answer}, no, wait"),
    *("{answer} \u2014 no, wait", "{answer}, scratch that", "{answer} (ignore this)"),
    *("{answer} (sorry)", "{answer} - or not", "{answer}, not sure", "{answer} # or {other}"),
    *("{answer} // 10", "{answer}, then {other}", "{answer}, as of {other}", "{answer}\u00bd"),
    *("{answer}\u2030", "{answer}\u00b2", "{answer} \u00b1 1", "{answer} ^ 2"),
    # Ranges and ratios.
    *("{answer}\u2014{other}", "{answer} \u2014 {other}", "{answer}\u2013{other}"),
    *("{answer}-{other}", "{answer} - {other}", "{answer}~{other}", "{answer}...{other}"),
    *("{answer}\u2026{other}", "{answer} to {other}", "{answer} (to {other})", "{answer} to ten"),
    *("{answer} (- {other})", "{answer} (in 10)", "{answer} (out of 10)", "{answer} of 10"),
    *("{answer} in ten", "{answer}/10", "{answer} (in ten)", "{answer} (/ 10)"),
    *("{answer} (low) or {other}", "{answer} : {other}"),
    # Two answers, or one and a withdrawn one.
    *("{answer}, {rival}", "{answer} | {rival}", "{answer} ({rival})", "{answer} or {rival}"),
    *("{answer} and {word}", "{answer}, {word}", "{answer}; {word} unclear", "{answer} {word}"),
    *("{answer}\n{word}", "{answer}\n{word}:", "{answer}\n{word}: nothing"),
    "{answer}\n{word} unclear",
    *("{answer}\n{word}?", "{answer}\n**{word}** unclear", "{answer}\n- {word}: as above"),
    *("{answer}\n> {word} = ?", "{answer}\nAnswer: {word} unclear"),
    *("{answer}\n{word}\uff1a\u4e0d\u660e", "{answer}\r{word}"),
    *("{answer}\n{rival} {word}", "{answer}\n{word} {arabic}", "{answer}\n\u2705 {word}"),
    *("{answer}\u2028{word} unclear", "{answer}\nRevised answer: {word}"),
    # Thinking.
    *("<think>\n{answer}", "<think>{answer}</think>", "{answer}\n</think>\n"),
    *("<thinking>\n{answer}", "<THINK>\n{answer}", "{answer}</think><think>{answer}"),
    "<think>\n</think><think>\n{answer}",
)
WIDE = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
ARABIC = {ord("0") + k: 0x660 + k for k in range(10)}


def spelled(form: str, reader: Reader) -> str:
    word, value, other = reader.word, reader.value, reader.other
    names = {"word": word, "value": value, "other": other}
    names |= {"lower": word.lower(), "upper": word.upper(), "wide_word": word.translate(WIDE)}
    names |= {"wide": value.translate(WIDE), "arabic": value.translate(ARABIC)}
    for name, text in {**names, "answer": f"{word} {value}", "rival": f"{word} {other}"}.items():
        form = form.replace(f"{{{name}}}", text)
    return form


@pytest.mark.parametrize("world", READERS)
def test_every_form_is_read_as_in_the_table(world: str) -> None:
    reader = READERS[world]
    answer = reader.read(f"{reader.word} {reader.value}")
    assert answer is not None
    assert [form for form in READ if reader.read(spelled(form, reader)) != answer] == []


@pytest.mark.parametrize("world", READERS)
def test_every_form_is_refused_as_in_the_table(world: str) -> None:
    reader = READERS[world]
    assert [form for form in REFUSED if reader.read(spelled(form, reader)) is not None] == []


def test_the_table_is_large_and_has_no_row_twice() -> None:
    rows = READ + REFUSED
    assert len(set(rows)) == len(rows) >= 150


@pytest.mark.parametrize("world", ["forecast-several", "disruption"])
@every("between", [" ", ",", ", ", "; ", " / ", " | ", " and ", ", and ", "\uff0c"])
@pytest.mark.parametrize("around", ["{}", "({})", "[{}]"])
def test_lists_of_probabilities_are_read_alike(world: str, between: str, around: str) -> None:
    reader = READERS[world]
    values = "A 0.2,B 0.3,C 0.5" if world == "forecast-several" else "0.2,0.3,0.5"
    said = f"{reader.word} {around.format(values.replace(',', between))}"
    assert reader.read(said) == reader.read(f"{reader.word} {reader.value}")


@pytest.mark.parametrize("percent", ["%", " %", "\uff05", r"\%", " percent", " per cent"])
def test_percentages_are_read_alike(percent: str) -> None:
    one, several, debate = (READERS[n] for n in ("forecast", "forecast-several", "disruption"))
    assert one.read(f"Probability: 40{percent}") == one.read("Probability: 0.4")
    listed = f"Probabilities: A 20{percent}, B 30{percent}, C 50{percent}"
    assert several.read(listed) == several.read("Probabilities: A 0.2, B 0.3, C 0.5")
    reports = f"P 20{percent} 30{percent} 50{percent}"
    assert debate.read(reports) == debate.read("P 0.2 0.3 0.5")


worlds = st.sampled_from(sorted(READERS))
lines = st.text().map(lambda text: text.replace("<", "").replace("\\", ""))


@given(worlds, st.lists(lines, max_size=4))
def test_what_follows_the_last_statement_never_changes_the_answer(
    world: str, added: list[str]
) -> None:
    reader = READERS[world]
    after = "".join(f"\n. {line}" for text in added for line in text.splitlines())
    answer = f"{reader.word} {reader.value}"
    assert reader.read(answer + after) == reader.read(answer)
    unreadable = f"{answer}\n{reader.word} unclear"
    assert reader.read(unreadable + after) is None


@given(worlds, st.sampled_from(READ), st.sampled_from(READ))
def test_a_draft_in_thinking_never_changes_the_answer(world: str, draft: str, form: str) -> None:
    reader = READERS[world]
    answer = reader.read(f"{reader.word} {reader.value}")
    assume("think" not in draft + form)
    rival = reader._replace(value=reader.other, other=reader.value)
    for said in (f"{draft}\n</think>\n{form}", f"<think>\n{draft}\n</think>\n{form}"):
        thought, _, answered = said.partition("</think>")
        reply = f"{spelled(thought, rival)}</think>{spelled(answered, reader)}"
        assert reader.read(reply) == answer


@given(worlds, st.integers(1, 99), st.sampled_from(READ))
def test_no_leniency_changes_what_a_well_formed_reply_means(
    world: str, value: int, form: str
) -> None:
    reader = READERS[world]
    digits = {"warehouse-pick": f"O{value}", "warehouse-stock": f"S1 {value}"}
    share = f"{value / 100:.2f}"
    digits |= {"forecast": share, "disruption": f"{share} {1 - value / 100:.2f} 0"}
    digits |= {"forecast-several": f"A {share}, B {1 - value / 100:.2f}, C 0"}
    other = reader._replace(value=digits.get(world, str(value)))
    answer = other.read(f"{other.word} {other.value}")
    assert answer is not None
    assume(other.value != other.other)
    assert other.read(spelled(form, other)) == answer
