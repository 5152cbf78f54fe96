"""Calls of tools in a reply, found by one linear scan in the form that the model's template writes.

The forms are JSON between `<tool_call>` tags (Qwen3, Hermes), function and parameter tags between
them (Qwen3-Coder, Qwen3.5), and JSON alone (Llama 3).
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

Form = Callable[[str], tuple[list[str], list[str]]]
"""Divides a reply into the words around its calls and the bodies of the calls."""
Kinds = Mapping[str, Mapping[str, Any]]
"""The type of each parameter of each function, where its schema has one."""

_FUNCTION, _FUNCTION_END, _PARAMETER = "<function=", "</function>", "<parameter="


class FunctionCall(NamedTuple):
    """A call: the function's name, and its arguments as JSON."""

    name: str
    arguments: str


Said = tuple[str, list[FunctionCall]]
"""The words of a reply, and its calls."""


def split(text: str, form: Form, kinds: Kinds) -> Said:
    """Return the words of a reply and its calls; if one is unreadable, all of it as words.

    Args:
        text: the reply.
        form: one of `FORMS`.
        kinds: see `kinds_of`.
    """
    words, bodies = form(text)
    try:
        calls = [_read(body.strip(), kinds) for body in bodies]
    except RecursionError:  # arguments too deep to be written again
        return text, []
    readable = [call for call in calls if call is not None]
    if not calls or len(readable) < len(calls):
        return text, []
    return "".join(words).strip(), readable


def kinds_of(tools: Sequence[Mapping[str, Any]]) -> Kinds:
    """Return the types of the parameters of tools whose schemas `check_parameters` accepts."""
    functions = [tool["function"] for tool in tools]
    return {
        function["name"]: {
            name: schema.get("type")
            for name, schema in function.get("parameters", {}).get("properties", {}).items()
            if isinstance(schema, dict)
        }
        for function in functions
    }


def check_parameters(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a function's parameters.

    Raises:
        ValueError: if its properties are no object that maps names to schemas.
    """
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        raise ValueError(f"properties must be an object, got {json.dumps(properties)[:99]}")
    for name, one in properties.items():
        # `true` allows any value, in JSON Schema.
        if not isinstance(one, dict | bool):
            raise ValueError(
                f"the schema of property {name[:99]!r} must be an object, true or false, got "
                f"{json.dumps(one)[:99]}"
            )
    return schema


def value_of(text: str) -> Any:
    """Return the value of JSON; of other text, the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _tagged(text: str) -> tuple[list[str], list[str]]:
    return _between(text, "<tool_call>", "</tool_call>")


def _alone(text: str) -> tuple[list[str], list[str]]:
    body = text.strip()
    return ([], [body]) if body.startswith("{") and body.endswith("}") else ([text], [])


FORMS: tuple[Form, ...] = (_tagged, _alone)


def _between(text: str, opening: str, closing: str) -> tuple[list[str], list[str]]:
    """Return what lies outside and what lies inside pairs of tags; each place is read once."""
    outside, inside, at = [], [], 0
    while (start := text.find(opening, at)) >= 0:
        if (end := text.find(closing, start + len(opening))) < 0:
            break
        outside.append(text[at:start])
        inside.append(text[start + len(opening) : end])
        at = end + len(closing)
    return [*outside, text[at:]], inside


def _read(body: str, kinds: Kinds) -> FunctionCall | None:
    if body.startswith(_FUNCTION) and body.endswith(_FUNCTION_END):
        return _read_tags(body.removeprefix(_FUNCTION).removesuffix(_FUNCTION_END), kinds)
    return call_of(value_of(body))


def call_of(call: Any) -> FunctionCall | None:
    """Return the call that a JSON value stands for, if any."""
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return None
    arguments = call.get("arguments", call.get("parameters", {}))
    written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return FunctionCall(call["name"], written)


def _read_tags(body: str, kinds: Kinds) -> FunctionCall | None:
    """Values are text; those of other types than strings are read as JSON, if they are any."""
    function, *_, written = head = body.partition(">")
    (*_, rest), inside = _between(written, _PARAMETER, "</parameter>")
    pairs = [one.partition(">") for one in inside]
    if _PARAMETER in rest or any(
        not name or "\n" in name or not end for name, end, _ in [head, *pairs]
    ):
        return None
    types = kinds.get(function.strip(), {})
    values = {name: value.removeprefix("\n").removesuffix("\n") for name, _, value in pairs}
    arguments = {
        name: value if types.get(name) == "string" else value_of(value)
        for name, value in values.items()
    }
    return FunctionCall(function.strip(), json.dumps(arguments, ensure_ascii=False))
