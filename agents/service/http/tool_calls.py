"""Calls of tools in a chat, read in the form in which the model's template writes them.

The forms are JSON between `<tool_call>` tags (Qwen3, Hermes), function and parameter tags between
them (Qwen3-Coder, Qwen3.5), and JSON alone (Llama 3). A template has the form that reads back the
call that it was made to write.
"""

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

_TAGGED = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)
_ALONE = re.compile(r"\A\s*(\{.*\})\s*\Z", re.DOTALL)
_FUNCTION = re.compile(r"<function=([^>\n]+)>(.*)</function>", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>\n]+)>\n?(.*?)\n?</parameter>", re.DOTALL)
_ASKED: dict[str, Any] = {"role": "user", "content": "Begin."}
_ARGUMENTS: dict[str, Any] = {"count": 3, "why": "so it is"}
_PROBE = {"name": "probe", "arguments": _ARGUMENTS}
_CALLED = {
    **{"role": "assistant", "content": ""},
    "tool_calls": [{"id": "call_0", "type": "function", "function": _PROBE}],
}


class FunctionCall(NamedTuple):
    """A call: the function's name, and its arguments as JSON."""

    name: str
    arguments: str


Said = tuple[str, list[FunctionCall]]
"""The words of a reply, and its calls."""


def split(text: str, block: re.Pattern[str], tools: Sequence[Spec]) -> Said:
    """Return the words of a reply and its calls; if one is unreadable, all of it as words.

    Args:
        text: the reply.
        block: see `form_of`.
        tools: as declared.
    """
    calls = [_read(match[1], tools) for match in block.finditer(text)]
    readable = [call for call in calls if call is not None]
    if not calls or len(readable) < len(calls):
        return text, []
    return block.sub("", text).strip(), readable


def _read(body: str, tools: Sequence[Spec]) -> FunctionCall | None:
    if tags := _FUNCTION.fullmatch(body):
        return _read_tags(tags[1].strip(), tags[2], tools)
    call = value_of(body)
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return None
    arguments = call.get("arguments", call.get("parameters", {}))
    written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return FunctionCall(call["name"], written)


def _read_tags(name: str, body: str, tools: Sequence[Spec]) -> FunctionCall:
    """Values are text; those of other types than strings are read as JSON, if they are any."""
    functions = {tool["function"]["name"]: tool["function"] for tool in tools}
    schemas = functions.get(name, {}).get("parameters", {}).get("properties", {})
    arguments = {
        key: value if schemas.get(key, {}).get("type") == "string" else value_of(value)
        for key, value in _PARAMETER.findall(body)
    }
    return FunctionCall(name, json.dumps(arguments, ensure_ascii=False))


def value_of(text: str) -> Any:
    """Return the value of JSON; of what is none, the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def form_of(render: Render, tools: Sequence[Spec]) -> re.Pattern[str]:
    """Return what matches one call in replies that are written as the template writes them.

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
    for block in (_TAGGED, _ALONE):
        if split(reply, block, [])[1] == [FunctionCall("probe", json.dumps(_ARGUMENTS))]:
            return block
    raise ValueError("it has calls in a form that is not read")
