"""Reading the plain forms of a Task's two parts."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

_SCALARS: Mapping[Any, Callable[[Any], Any]] = MappingProxyType(
    {kind: kind for kind in (int, float, str, bool)}
)


def scalars(kind: type, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers, texts and flags of a dataclass that a plain form has, by field."""
    read = {field.name: _SCALARS.get(field.type) for field in fields(kind)}
    return {name: made(data[name]) for name, made in read.items() if made and name in data}
