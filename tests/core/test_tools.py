"""Calls of tools: written as a line, and read from whatever a policy makes of it."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.every import every
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.tools import Call, Tool, call_line, check_tools, native_line, read_call

TOOLS = check_tools(
    (
        Tool("open", "Open a note.", {"note": {"type": "integer", "minimum": 1, "maximum": 7}}),
        Tool("answer", "End.", {"probability": {"type": "number", "minimum": 0, "maximum": 1}}),
        Tool("wait", "Do nothing.", {}),
        Tool(
            "say",
            "Say it.",
            {
                "text": {"type": "string"},
                "count": {"type": "integer"},
                "pitch": {"type": "number"},
                "loud": {"type": "boolean"},
            },
        ),
    )
)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
spoken = st.builds(
    lambda *values: Call("say", dict(zip(TOOLS[3].properties, values, strict=True))),
    *(st.text(), st.integers(), numbers, st.booleans()),
)
opened = st.integers(1, 7).map(lambda note: Call("open", {"note": note}))
shares = st.floats(0, 1).map(lambda share: Call("answer", {"probability": share}))
calls = st.one_of(spoken, opened, shares, st.just(Call("wait", {})))


@given(calls, st.sampled_from(["", "Let me think.\n", "<think>wait()</think>\n", "wait()\n"]))
def test_a_call_is_read_as_written(call: Call, before: str) -> None:
    assert read_call(f"{before}{call_line(call)}", TOOLS) == call
    assert read_call(f"- **{call_line(call)}**  \nThat is all.", TOOLS) == call


@given(calls)
def test_a_native_call_is_the_same_line(call: Call) -> None:
    written = json.dumps(dict(call.arguments))
    for arguments in (dict(call.arguments), written, json.dumps(written)):
        assert native_line(call.name, arguments) == call_line(call)


@given(st.text())
def test_no_text_raises(text: str) -> None:
    read_call(text, TOOLS)
    read_call(f"open({text})", TOOLS)
    read_call(native_line(text, text), TOOLS)


THREE = Call("open", {"note": 3})


@every(
    "text",
    [
        *("open(note=3)", " open (  note =  3 ) ", "OPEN(note: 3)", "open(3)", "open(note=3.0)"),
        *('open("note": 3)', 'open({"note": 3})', 'open(note="3")', "`open(note=3)`"),
        *("open(note=3).", "Answer: open(note=3)", "open(note=3), open(note=3)"),
        *(
            "I open another one.\nopen(note=3)\nOpen questions remain.",
            "open(note=4)\nopen(note=3)",
        ),
        "<think>open(note=5)</think>\nopen(note=3)",
        *("open(note=\uff13)", "open\uff08note=\uff13\uff09", "open(note=<3>)"),
        *("I will call open(note=3).", "Next: note 3 is cheap, so open(note=3)"),
    ],
)
def test_these_open_note_three(text: str) -> None:
    assert read_call(text, TOOLS) == THREE


@every(
    "text",
    [
        *("", "open", "open note 3", "open()", "open(note=)", "open(note=8)", "open(note=0)"),
        *("open(note=3", "open(note=3, note=4)", "open(note=3, x=1)", "open(note=true)"),
        *(
            "I would not open(note=3)",
            "If it is cheap, open(note=3)",
            "open(note=3.5)",
            'open(note="three")',
            "open(note=3) open(note=4)",
            "open(note=[3])",
        ),
        *("open(note=3)\nopen(", "open(note=3)\nopen(note=unclear)", "open(note=3) or not"),
        *('open({"note": 3)', "answer(probability=1.01)", "answer(probability=NaN)", "wait(now)"),
        *("<think>open(note=3)", "</tool_response>", native_line("open", '{"note": 3')),
        *(native_line("open", "[3]"), native_line("shut", {"note": 3}), "open(" * 5000),
    ],
)
def test_these_call_nothing(text: str) -> None:
    assert read_call(text, TOOLS) is None


@pytest.mark.parametrize(
    ("tools", "reason"),
    [
        ((TOOLS[0], TOOLS[0]), "different names, got ['open', 'open']"),
        ((Tool("Open", "", {}),), "words in lower case, got 'Open'"),
        ((Tool("reset", "", {}),), "words in lower case, got 'reset'"),
        ((Tool("open", "", {"a b": {"type": "integer"}}),), "got 'a b'"),
        ((Tool("open", "", {"note": {"type": "object"}}),), "the type of note must be one of"),
    ],
)
def test_tools_that_no_client_could_offer_are_refused(tools: tuple[Tool, ...], reason: str) -> None:
    with pytest.raises(OptionError, match=re.escape(reason)):
        check_tools(tools)
