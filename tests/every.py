"""Many cases in one test, and many items of which one is quick."""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pytest


def every(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[..., Callable[..., None]]:
    """Run a test for each case in turn; where one fails, the report names it.

    Args:
        names: the parameter that a case is the value of, or several, of which it has the values.
        cases: one at least; of a mapping, its keys. Each has a folder `tmp_path` of its own.
    """
    taken = (names,) if isinstance(names, str) else names
    listed = [(case,) if isinstance(names, str) else tuple(case) for case in cases]
    assert listed

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def run(**fixtures: Any) -> None:
            for number, case in enumerate(listed):
                values = dict(zip(taken, case, strict=True))
                own = {}
                if "tmp_path" in fixtures:
                    own["tmp_path"] = fixtures["tmp_path"] / str(number)
                    own["tmp_path"].mkdir()
                try:
                    test(**fixtures | own | values)
                except Exception as error:
                    error.add_note(f"with {values}")
                    raise

        whole = inspect.signature(test)
        left = [one for name, one in whole.parameters.items() if name not in taken]
        run.__signature__ = whole.replace(parameters=left)  # type: ignore[attr-defined]
        return run

    return decorate


def quick_first(names: str | tuple[str, ...], cases: Iterable[Any]) -> pytest.MarkDecorator:
    """Make an item of each case, as `parametrize` does: all but the first are for the night."""
    listed = [(case,) if isinstance(names, str) else case for case in cases]
    rest = [pytest.param(*case, marks=pytest.mark.nightly) for case in listed[1:]]
    return pytest.mark.parametrize(names, [pytest.param(*listed[0]), *rest])
