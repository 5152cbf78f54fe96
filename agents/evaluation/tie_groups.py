"""Groups of rewards by Task, and the table of them: one tidy row a group."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tokengym.envs.core.table_files import open_table
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


def write_table(path: Path, groups: Sequence[RewardGroup], tolerance: float) -> None:
    """Write a row of each group, at least one, as Parquet or CSV; see `RewardGroup.row`."""
    rows = [group.row(tolerance) for group in groups]
    with open_table(path, {name: type(value) for name, value in rows[0].items()}) as write:
        write([*zip(*map(dict.values, rows), strict=True)])
