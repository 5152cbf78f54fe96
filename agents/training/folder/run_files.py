"""The JSON files of a run folder: written atomically, read with clear errors for damage."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from tokengym.agents.models.files import read_object
from tokengym.agents.settings import plain, read_plain
from tokengym.atomic_write import write_whole
from tokengym.envs.core.errors import OptionError

T = TypeVar("T")


def read_result(path: Path, kind: type[T]) -> T | None:
    """Read a result from a JSON object; `None` if there is no file.

    Raises:
        OptionError: if the file cannot be read, or holds no such result.
    """
    if not path.exists():
        return None
    remedy = "delete it, and a resumed run makes it again"
    data = read_object(path, lambda wrong: OptionError(f"{wrong}; {remedy}"))
    try:
        return read_plain(kind, data)
    except OptionError as error:
        raise OptionError(f"{path} is damaged: {error}; {remedy}") from error


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write a JSON object, unless the file holds it already."""
    text = json.dumps(data, indent=2, sort_keys=True) + "\n"
    if not path.is_file() or path.read_bytes() != text.encode():
        write_whole(path, text.encode())


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read the JSON objects of a file, one per line; other lines are skipped.

    Raises:
        OptionError: if the file cannot be read.
    """
    return [row for _, row in _lines(path) if row is not None]


def add_line(path: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """Add a JSON object to a file that holds one per line, and return it.

    Args:
        path: the file; it is made, with its folder, if it is missing.
        values: of the object, scalars of arrays too; `step` is one more than that of the last line
            that has one, unless it is named.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    content = path.read_bytes() if path.exists() else b""
    rows = (_object(text) for text in reversed(content.split(b"\n")))
    steps = (row["step"] for row in rows if row and isinstance(row.get("step"), int))
    line = {"step": next(steps, -1) + 1}
    for name, value in values.items():
        line[name] = plain(value.item() if hasattr(value, "item") else value)
    # A process that is killed leaves half a line.
    ended = b"" if not content or content.endswith(b"\n") else b"\n"
    with path.open("ab") as file:
        file.write(ended + json.dumps(line, allow_nan=False).encode() + b"\n")
    return line


def keep_lines(path: Path, stays: Callable[[Mapping[str, Any]], bool] = lambda row: True) -> int:
    """Keep the lines of a file that hold a wanted JSON object; returns the number removed.

    A process that is killed leaves half a line, and the next one would append to it: the last line
    is ended, too.

    Args:
        path: the file, which need not exist.
        stays: whether an object is wanted; all of them if not given.

    Raises:
        OptionError: if the file cannot be read.
    """
    lines = _lines(path)
    staying = [line for line, row in lines if row is not None and stays(row)]
    content = b"".join(line + b"\n" for line in staying)
    if lines and content != path.read_bytes():
        write_whole(path, content)
    return len(lines) - len(staying)


def _lines(path: Path) -> list[tuple[bytes, dict[str, Any] | None]]:
    """Return the lines of a file that are not empty, each with the object it holds."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise OptionError(f"{path} cannot be read: {error.strerror}") from error
    return [(line, _object(line)) for line in content.split(b"\n") if line]


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None
