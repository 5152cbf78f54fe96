"""Calls of tools in a chat, read in the form in which the model's template writes them.

The forms are JSON between `<tool_call>` tags (Qwen3, Hermes), function and parameter tags between
them (Qwen3-Coder, Qwen3.5), and JSON alone (Llama 3). A template has the form that reads back the
call that it was made to write.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import dropwhile, zip_longest
from typing import Any, NamedTuple

Spec = Mapping[str, Any]
"""A tool as requests declare it: `{"type": "function", "function": {"name": …}}`."""
Render = Callable[[list[dict[str, Any]], Sequence[Spec]], str]
"""Renders messages after declared tools, as text without special tokens; after a message of the
user up to where the reply begins."""

_PARAMETER = re.compile(r"<parameter=([^>\n]+)>\n?(.*?)\n?</parameter>", re.DOTALL)
_ASKED: dict[str, Any] = {"role": "user", "content": "Begin."}
_ARGUMENTS: dict[str, Any] = {"count": 3, "why": "so it is"}
_FUNCTION = {"name": "probe", "arguments": _ARGUMENTS}
_CALLED = {
    **{"role": "assistant", "content": ""},
    "tool_calls": [{"id": "call_0", "type": "function", "function": _FUNCTION}],
}


class FunctionCall(NamedTuple):
    """A call: the function's name, and its arguments as JSON."""

    name: str
    arguments: str


class CallForm(NamedTuple):
    """A form of calls.

    Attributes:
        block: matches one call in a reply.
        read: returns the call of a match, `None` if it is none; takes the declared tools too.
    """

    block: re.Pattern[str]
    read: Callable[[re.Match[str], Sequence[Spec]], FunctionCall | None]

    def split(self, text: str, tools: Sequence[Spec]) -> tuple[str, list[FunctionCall]]:
        """Return the words of a reply and its calls; of one unreadable call, all of it as words."""
        calls = [self.read(match, tools) for match in self.block.finditer(text)]
        readable = [call for call in calls if call is not None]
        if len(readable) < len(calls):
            return text, []
        return (self.block.sub("", text).strip() if calls else text), readable


def _read_json(match: re.Match[str], _tools: Sequence[Spec]) -> FunctionCall | None:
    call = value_of(match[1])
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return None
    arguments = call.get("arguments", call.get("parameters", {}))
    written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return FunctionCall(call["name"], written)


def _read_tags(match: re.Match[str], tools: Sequence[Spec]) -> FunctionCall:
    """Values are text; those of other types than strings are read as JSON, if they are any."""
    name = match[1].strip()
    functions = {tool["function"]["name"]: tool["function"] for tool in tools}
    schemas = functions.get(name, {}).get("parameters", {}).get("properties", {})
    arguments = {
        key: value if schemas.get(key, {}).get("type") == "string" else value_of(value)
        for key, value in _PARAMETER.findall(match[2])
    }
    return FunctionCall(name, json.dumps(arguments, ensure_ascii=False))


def value_of(text: str) -> Any:
    """Return the value of JSON; of what is none, the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


_FORMS = (
    CallForm(
        re.compile(r"<tool_call>\s*<function=([^>\n]+)>(.*?)</function>\s*</tool_call>", re.DOTALL),
        _read_tags,
    ),
    CallForm(re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL), _read_json),
    CallForm(re.compile(r"\A\s*(\{.*\})\s*\Z", re.DOTALL), _read_json),
)


def form_of(render: Render, tools: Sequence[Spec]) -> CallForm:
    """Return the form of a template's calls.

    Raises:
        ValueError: if it declares no tools, or has calls in another form.
        Exception: whatever the template does.
    """
    before, after = (render(said, tools) for said in ([_ASKED], [_ASKED, _CALLED]))
    if before == render([_ASKED], []):
        raise ValueError("it declares none")
    # The prompt may end in a tag that a call does not begin with: whole lines are compared.
    lines = zip_longest(*(text.splitlines(keepends=True) for text in (after, before)))
    reply = "".join(line or "" for line, _ in dropwhile(lambda pair: pair[0] == pair[1], lines))
    for form in _FORMS:
        if form.split(reply, [])[1] == [FunctionCall("probe", json.dumps(_ARGUMENTS))]:
            return form
    raise ValueError("it has calls in a form that is not read")
