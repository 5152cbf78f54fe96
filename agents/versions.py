"""Versions of installed packages."""

from importlib.metadata import PackageNotFoundError, version


def installed_version(name: str) -> str | None:
    """Return the version of a distribution; `None` if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None
