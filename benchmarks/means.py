"""Means that are published: each says of how many rows it is, and none leaves a row out."""

import sys
from collections.abc import Mapping
from statistics import fmean


def mean_of_all(values: Mapping[str, float | None], rows: int) -> str:
    """Return a mean with the number of its rows: `0.12 (34 of 37)`; empty if it is of none.

    Args:
        values: the values by row; `None` where a row has one that was not measured.
        rows: of how many rows there are in all, with those that have no such value by their nature.

    Raises:
        SystemExit: if a value is missing, by the rows that miss it.
    """
    known = [value for value in values.values() if value is not None]
    if missing := [name for name, value in values.items() if value is None]:
        sys.exit(f"no mean of {len(known)} of {rows} rows: missing are {', '.join(missing)}")
    return f"{fmean(known):.2f} ({len(known)} of {rows})" if known else ""
