"""Reading `name=value` from the command line."""

import json
from collections.abc import Sequence
from typing import Any

from tokengym.envs.core.errors import OptionError


def name_values(pairs: Sequence[str], flag: str) -> dict[str, Any]:
    """Read pairs such as `label=expected` or `flat_floor=true`; values that parse as JSON are JSON.

    Raises:
        OptionError: if a pair has no name or no `=`.
    """
    read: dict[str, Any] = {}
    for name, value in name_texts(pairs, flag).items():
        try:
            read[name] = json.loads(value)
        except ValueError:
            read[name] = value
    return read


def name_texts(pairs: Sequence[str], flag: str) -> dict[str, str]:
    """Read pairs such as `challenger=null` whose values are text.

    Raises:
        OptionError: if a pair has no name or no `=`.
    """
    read: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise OptionError(f"{flag} takes name=value, got {pair!r}")
        read[name] = value
    return read
