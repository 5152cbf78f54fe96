"""Prompts as Jinja templates: each file holds the macros of one."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, UndefinedError


class MissingError(UndefinedError, LookupError):
    """A field that a template words and a damaged Task lacks."""


class _Missing(StrictUndefined):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"exc": MissingError, **kwargs})


def figure(value: float) -> str:
    """Write a number with all its digits: `0.5`, `3`, and `0` for -0.0 too."""
    return f"{value + 0.0:.12g}"


def counted(count: int, noun: str) -> str:
    """Write a number of things: `1 hour`, `3 hours`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def templates(folder: Path, **names: Any) -> Callable[[str], Any]:
    """Return the function from the name of a template, without `.jinja`, to its macros.

    `prompt_direct` is `prompt_full` with the constant `direct`: its closing sentences ask for the
    answer alone.

    Args:
        folder: where the templates are, which have the filters `figure` and `counted`.
        **names: further functions and constants that they use.
    """

    @cache
    def environment(direct: bool) -> Environment:
        made = Environment(
            loader=FileSystemLoader(folder),
            undefined=_Missing,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        made.filters |= {"figure": figure, "counted": counted}
        made.globals |= {**names, "direct": direct}
        return made

    @cache
    def macros(name: str) -> Any:
        template = name.replace("prompt_direct", "prompt_full")
        return environment(template != name).get_template(f"{template}.jinja").module

    return macros
