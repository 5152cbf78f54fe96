"""Reading the plain forms of a Task's two parts."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any


def scalars(kind: type, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers, texts and flags of a dataclass that a plain form has, by field."""
    read: dict[str, Any] = {field.name: field.type for field in fields(kind)}
    scalar = {name: made for name, made in read.items() if made in (int, float, str, bool)}
    return {name: made(data[name]) for name, made in scalar.items() if name in data}
