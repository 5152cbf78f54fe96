"""Attributes of a package that are imported when they are first used."""

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from linecache import getlines
from typing import Any


def lazy_attributes(package: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package whose names live in modules that are slow to import.

    The names are those that the package imports for type checkers, under `if TYPE_CHECKING:`.

    Args:
        package: the package's `__name__`.
    """

    def get(name: str) -> Any:
        modules = _imported_for_types(package)
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return get


@cache
def _imported_for_types(package: str) -> dict[str, str]:
    """Return the module of each name that stands in the package's guarded imports."""
    module = sys.modules[package]
    # As tracebacks do, which find the lines of a module in an archive, too.
    tree = ast.parse("".join(getlines(str(module.__file__), vars(module))))
    guards = (node for node in tree.body if isinstance(node, ast.If))
    imports = (each for guard in guards for each in guard.body if isinstance(each, ast.ImportFrom))
    return {each.name: str(line.module) for line in imports for each in line.names}
