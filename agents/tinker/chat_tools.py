"""Native tool calls of chat messages: read as lines, and answered call by call.

Messages may be mappings or objects, in OpenAI's form or with name and arguments in the call itself.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tokengym.envs.core.tools import NOT_PLAYED, native_line


class NativeCall(NamedTuple):
    """A call as a message has it; the arguments are an object or its JSON."""

    id: str
    name: str
    arguments: Any


def native_calls(message: Any) -> list[NativeCall]:
    """Return the calls of a message of a model, none if there are none."""
    calls = _field(message, "tool_calls")
    return [_native(call) for call in calls] if isinstance(calls, list | tuple) else []


def with_call(text: str, message: Any) -> str:
    """Return a reply as a world reads it: its text, then the line of the first native call."""
    calls = native_calls(message)
    line = native_line(calls[0].name, calls[0].arguments) if calls else ""
    return f"{text}\n{line}".strip() if calls else text


def next_messages(text: str, message: Any = None) -> list[dict[str, str]]:
    """Return what a world says next as messages: as the result of the first call, if it was native.

    Every call is answered, since clients and servers insist; the others, that they were not played.

    Args:
        text: what is new to read.
        message: the model's message that it answers; `None` before the first.
    """
    calls = native_calls(message)
    if not calls:
        return [{"role": "user", "content": text}]
    texts = (text, *[NOT_PLAYED] * (len(calls) - 1))
    return [
        {"role": "tool", "tool_call_id": call.id, "content": content}
        for call, content in zip(calls, texts, strict=True)
    ]


def _native(call: Any) -> NativeCall:
    function = _field(call, "function") or call
    arguments = _field(function, "arguments")
    return NativeCall(
        str(_field(call, "id") or ""),
        str(_field(function, "name") or ""),
        arguments if isinstance(arguments, str | Mapping) else "",
    )


def _field(holder: Any, name: str) -> Any:
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)
