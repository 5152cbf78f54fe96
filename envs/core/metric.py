"""The meaning of the numbers that a world reports at the end of an episode."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple


class Metric(NamedTuple):
    """One number of `Turn.metrics` at the end of an episode, for people.

    Attributes:
        title: what to call it.
        unit: unit of `scale` times the number; empty for a plain number.
        meaning: one line on what it says and which way is better.
        share: whether its mean is a share, namely of the episodes that report it.
        scale: what the number is multiplied by where it is shown.
    """

    title: str
    unit: str
    meaning: str
    share: bool = False
    scale: float = 1.0


def read_metrics(path: Path) -> Mapping[str, Metric]:
    """Read a TOML file with a table for each metric, which has the fields of `Metric`."""
    tables = tomllib.loads(path.read_text("utf-8"))
    return {name: Metric(**{"unit": "", **table}) for name, table in tables.items()}
