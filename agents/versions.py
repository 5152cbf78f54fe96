"""Versions of installed packages."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache  # a job records them in each of its evaluations
def installed_version(name: str) -> str | None:
    """Return the version of a distribution; `None` if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None
