"""Whether a model directory asks to run code: read from its configuration, before loading."""

import json
from pathlib import Path
from typing import Any

REFUSAL = "it is not run without --trust-remote-code"


def find_remote_code(directory: Path) -> str | None:
    """Return which configuration of a directory names code to run, and how; `None` if none does.

    `auto_map` names Python files next to the configuration; an attention implementation with a
    slash in its name is a kernel that is fetched from the hub.

    Raises:
        ValueError, RecursionError: if a configuration is damaged.
    """
    for path in sorted(directory.glob("*config.json")):
        entry = _code_entry(json.loads(path.read_bytes()))
        if entry is not None:
            return f"{entry} in {path.name}"
    return None


def _code_entry(value: Any) -> str | None:
    """Return the first entry that makes transformers run foreign code, at any depth."""
    if isinstance(value, list):
        return next((found for found in map(_code_entry, value) if found), None)
    if not isinstance(value, dict):
        return None
    for key, entry in value.items():
        if key == "auto_map" and entry:
            return "auto_map"
        if key.endswith("attn_implementation") and "/" in str(entry):
            return str(key)
        found = _code_entry(entry)
        if found is not None:
            return found
    return None
