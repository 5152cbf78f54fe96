"""What a test shows goes into its JUnit report, from which `matrix.py` makes the table of docs."""

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import pytest

PACKAGES = ("openenv", "verifiers", "retrain", "trl", "inspect-ai", "skyrl-gym", "verl", "nemo-gym")


@pytest.fixture
def shows(record_property: Callable[[str, Any], None]) -> Callable[[str, str], None]:
    """Record what holds for a world: `plays`, `group`, `tokens` or `trains`. Called last."""
    return record_property


@pytest.fixture(scope="session", autouse=True)
def _versions(record_testsuite_property: Callable[[str, object], None]) -> None:
    for package in PACKAGES:
        try:
            record_testsuite_property(package, version(package))
        except PackageNotFoundError:
            continue
