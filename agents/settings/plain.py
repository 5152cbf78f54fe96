"""JSON values of dataclasses, and dataclasses of JSON values."""

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, cast

from tokengym.envs.core.errors import OptionError

T = TypeVar("T")


def read_plain(kind: type[T], data: Mapping[str, Any]) -> T:
    """Return a dataclass from the plain JSON values that `dataclasses.asdict` made of it.

    Raises:
        OptionError: if a field is missing, of a wrong type or not allowed, or of settings unknown.
    """
    from pydantic import ValidationError

    try:
        found: T = _adapter(cast("Any", kind)).validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        # Of an error that a class raised, without pydantic's words before it.
        reason = str(first.get("ctx", {}).get("error", first["msg"]))
        raise OptionError(f"{where}: {reason}" if where else reason) from error
    return found


@cache  # to make one takes longer than to read a folder with it
def _adapter(kind: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def plain(value: Any) -> Any:
    """Return the JSON values of dataclasses and named tuples, also inside of others.

    Numbers that are not finite become `None`, as JSON has none.
    """
    if hasattr(value, "_asdict"):
        value = value._asdict()
    elif is_dataclass(value):
        value = {item.name: getattr(value, item.name) for item in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
