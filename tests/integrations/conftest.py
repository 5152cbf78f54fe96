"""What a test shows goes into its JUnit report, from which `matrix.py` makes the table of docs."""

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution, version
from typing import Any

import pytest

PACKAGES = (
    *("openenv", "verifiers", "trl", "inspect-ai", "skyrl-gym", "verl", "nemo-gym", "gymnasium"),
    "pettingzoo",
)


@pytest.fixture
def shows(record_property: Callable[[str, Any], None]) -> Callable[[str, str], None]:
    """Record what holds for a world: `plays`, `group`, `tokens`, `trains`, `own command`.

    It is called last. The value is the world's name; of `own command` it is `COMMAND: WORLD`.
    """
    return record_property


@pytest.fixture(scope="session", autouse=True)
def _versions(record_testsuite_property: Callable[[str, object], None]) -> None:
    for package in PACKAGES:
        try:
            record_testsuite_property(package, version(package))
        except PackageNotFoundError:
            continue
    # Of an editable install it says so; a wheel has its files listed below its own folder.
    said = distribution("tokengym").read_text("direct_url.json") or ""
    record_testsuite_property("tokengym", "editable" if '"editable"' in said else "wheel")
