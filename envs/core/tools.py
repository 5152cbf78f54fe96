"""Tools of a world, and the line in which a reply calls one: `open(note=3)`.

A call is always played as that line, so that worlds, records and replays stay text. Whoever speaks
to a model that calls tools natively translates the call to the line with `native_line`.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.grammar import (
    NUMBER,
    Grammar,
    Reading,
    complaint,
    last_command,
    number,
    unbracketed,
)

NOT_PLAYED = "Not played: one call a reply."
"""The result of every call of a reply but the first one."""

_NAME = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
_TYPES: Mapping[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "boolean": (bool,),
}
_RESERVED = frozenset({"reset", "step", "state", "close", "get_reward"})
_KEY = re.compile(r"\s*+,?\s*+(?:[\"']?([A-Za-z]\w*+)[\"']?\s*+[=:])?+\s*+", re.ASCII)
_BARE = re.compile(rf"{NUMBER}(?=\s*+(?:,|$))")
_MARKUP = re.compile(r"[_*`<{}$%]")
_ARGUMENTS = r'(?:"(?:[^"\\\n]|\\.)*+"|[^()"\n])*+'


class Tool(NamedTuple):
    """One tool that a policy can call.

    Attributes:
        name: what it is called by, in lower case.
        description: one sentence.
        properties: the JSON schema of each argument; all of them are required. A schema has a
            `type`, one of `integer`, `number`, `string` and `boolean`, and may have `description`,
            `minimum`, `maximum` and `enum`.
    """

    name: str
    description: str
    properties: Mapping[str, Mapping[str, Any]]

    @property
    def parameters(self) -> dict[str, Any]:
        """The flat JSON schema of its arguments."""
        return {
            "type": "object",
            "properties": {name: dict(schema) for name, schema in self.properties.items()},
            "required": list(self.properties),
            "additionalProperties": False,
        }

    @property
    def function(self) -> dict[str, Any]:
        """Description of the tool for chat models: name, description and parameters."""
        return {"name": self.name, "description": self.description, "parameters": self.parameters}


class Call(NamedTuple):
    """One call of a tool, with its arguments by name."""

    name: str
    arguments: Mapping[str, Any]


def check_tools(tools: Iterable[Tool]) -> tuple[Tool, ...]:
    """Return the tools of a world as a tuple.

    Raises:
        OptionError: if two tools have one name, a name is no word in lower case or is one that a
            client keeps for itself, or a schema is not flat.
    """
    checked = tuple(tools)
    names = [tool.name for tool in checked]
    if len(set(names)) < len(names):
        raise OptionError(f"tools must have different names, got {names}")
    for tool in checked:
        for name in (tool.name, *tool.properties):
            if _NAME.fullmatch(name) is None or name in _RESERVED:
                raise OptionError(f"a tool and its arguments are words in lower case, got {name!r}")
        for name, schema in tool.properties.items():
            if schema.get("type") not in _TYPES:
                raise OptionError(
                    f"{tool.name}: the type of {name} must be one of {list(_TYPES)}, "
                    f"got {schema.get('type')!r}"
                )
    return checked


def openai_tools(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Return the tools as the value of `tools=` in a request of OpenAI's chat API."""
    return [{"type": "function", "function": tool.function} for tool in tools]


def call_line(call: Call) -> str:
    """Return the line of a call, which `read_call` reads back.

    It is ASCII, and what could be taken for markup of a chat format is escaped as in JSON.
    """
    arguments = (f"{name}={_written(value)}" for name, value in call.arguments.items())
    return f"{call.name}({', '.join(arguments)})"


def native_line(name: str, arguments: str | Mapping[str, Any]) -> str:
    """Return the line of a native call; a malformed line if its arguments are no JSON object.

    Args:
        name: of the tool that was called, known or not.
        arguments: an object, or its JSON, as chat models write it.
    """
    parsed: Any = arguments
    for _ in range(2):  # some models write the JSON of a JSON
        if isinstance(parsed, str):
            try:
                parsed = json.loads(parsed or "{}")
            except ValueError:
                break
    if not isinstance(parsed, Mapping):
        return f"{name}(unreadable arguments)"
    return call_line(Call(name, {str(key): value for key, value in parsed.items()}))


def read_call(text: str, tools: tuple[Tool, ...], *, complete: bool = True) -> Call | None:
    """Return the call of a reply: its last statement, as in `tokengym.envs.core.grammar`.

    Arguments may stand in any order, in the form of JSON (`"note": 3`), as strings where the schema
    says otherwise, and without a name where the tool has one argument.

    Args:
        text: a whole reply, of any content.
        tools: the world's.
        complete: `False` if it was cut off: then the lines count that had ended.

    Returns:
        the call, with arguments of the types of its schema; `None` if there is no statement, or if
        the last one is unreadable, holds calls that differ or has an argument that is missing,
        unknown or not of its schema.
    """
    return call_reading(text, tools, "", complete=complete).value


def call_reading(
    text: str, tools: tuple[Tool, ...], expected: str, *, complete: bool
) -> Reading[Call]:
    """Return the call of a reply as `read_call` does, and what the next Turn says of it.

    Args:
        text: a whole reply, of any content.
        tools: the world's.
        expected: the expected form in words, for complaints.
        complete: `False` if it was cut off: then the lines count that had ended.
    """
    grammar = _grammar(tuple(tool.name for tool in tools))
    match, said = last_command(grammar, text, complete=complete)
    if match is not None:
        tool = next(tool for tool in tools if tool.name == match[1].lower())
        arguments = _read_arguments(match[2], tool)
        if arguments is None:
            arguments = _read_arguments(unbracketed(match[2]), tool)
        if arguments is not None:
            return Reading(Call(tool.name, arguments), said)
    return Reading(None, complaint(text, expected, grammar, complete=complete))


@lru_cache
def _grammar(names: tuple[str, ...]) -> Grammar:
    words = "|".join(names)
    # A sentence may begin with the name of a tool; only with a bracket it is meant as a call.
    call = rf"({words})[ \t]*+\(({_ARGUMENTS})\)"
    return Grammar(rf"(?:{words})(?=[ \t]*+\()", call, anywhere=True)


def _read_arguments(text: str, tool: Tool) -> dict[str, Any] | None:
    text = text.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1].strip()
    found: dict[str, Any] = {}
    at = 0
    for _ in islice(iter(int, 1), len(tool.properties) + 1):
        if at >= len(text):
            break
        key = _KEY.match(text, at)
        assert key is not None  # it matches the empty text
        name = key[1] or (next(iter(tool.properties), "") if len(tool.properties) == 1 else "")
        value = _value_at(text, key.end())
        if value is None or name not in tool.properties or name in found:
            return None
        found[name], at = value
    if at < len(text) or set(found) != set(tool.properties):
        return None
    values = {name: _fitted(found[name], schema) for name, schema in tool.properties.items()}
    return None if None in values.values() else values


def _value_at(text: str, start: int) -> tuple[Any, int] | None:
    """Return the value that begins at `start`, and where it ends."""
    if bare := _BARE.match(text, start):
        plain = re.fullmatch(r"-?[0-9]+", bare[0])
        return (int(bare[0]) if plain else number(bare[0])), bare.end()
    try:
        value, end = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    rest = text[end:].lstrip()
    return (value, end) if not rest or rest.startswith(",") else None


def _fitted(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return a value as its schema has it; `None` if it does not fit."""
    kind = schema["type"]
    if kind in ("integer", "number") and isinstance(value, str):
        value = number(value) if re.fullmatch(NUMBER, value) else None
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, _TYPES[kind]) or isinstance(value, bool) != (kind == "boolean"):
        return None
    if kind in ("integer", "number"):
        low, high = schema.get("minimum", value), schema.get("maximum", value)
        value = value if low <= value <= high else None
    return value if value in schema.get("enum", (value,)) else None


def _written(value: Any) -> str:
    written = json.dumps(value)
    if not isinstance(value, str):
        return written
    return _MARKUP.sub(lambda match: f"\\u{ord(match[0]):04x}", written)
