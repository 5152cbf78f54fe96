"""Groups of rewards by Task, and the table of them: one tidy row a group."""

import csv
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tokengym.envs.core.errors import OptionError
from tokengym.rewards.ties import tie_counts


class RewardGroup(NamedTuple):
    """The rewards of rollouts that are compared with each other.

    Attributes:
        name: of the group.
        task: what it was played on; groups of one Task are not independent.
        rewards: of its rollouts, finite.
    """

    name: str
    task: str
    rewards: list[float]

    def row(self, tolerance: float) -> dict[str, Any]:
        """Return the group as a row of a table; rewards within the tolerance tie."""
        size, counts = len(self.rewards), tie_counts([self.rewards], tolerance)
        # A reward alone is in no eligible group.
        distinct = int(counts.distinct_N.sum()) or 1
        return {
            "group": self.name,
            "task": self.task,
            "rollouts": size,
            "mean": float(np.mean(self.rewards)),
            "deviation": float(np.std(self.rewards)),
            "lowest": min(self.rewards),
            "highest": max(self.rewards),
            "distinct": distinct,
            "pairs": size * (size - 1) // 2,
            "tied_pairs": int(counts.rank_GN.sum()),
            "dead": size > 1 and distinct == 1,
        }


def require_table(path: Path) -> None:
    """Refuse a name that `write_table` cannot write.

    Raises:
        OptionError: if it ends in something else, or pyarrow is missing for Parquet.
    """
    if path.suffix not in (".csv", ".parquet"):
        raise OptionError(f"--table takes a name that ends in .parquet or .csv, got {path}")
    if path.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise OptionError(f"{path} needs pyarrow: pip install 'tokengym[data]', or write .csv")


def write_table(path: Path, groups: Sequence[RewardGroup], tolerance: float) -> None:
    """Write a row of each group, at least one, as Parquet or CSV; see `RewardGroup.row`."""
    rows = [group.row(tolerance) for group in groups]
    if path.suffix == ".parquet":
        import pyarrow as pa  # type: ignore[import-untyped]
        from pyarrow import parquet

        parquet.write_table(pa.Table.from_pylist(rows), path)
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
