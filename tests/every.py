"""Many cases in one test: `parametrize` makes an item of each, with fixtures and a report."""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any


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
