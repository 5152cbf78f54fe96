"""Table of rollouts for results: a few numbers of each, read one by one."""

import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np

from tokengym.agents.evaluation.endpoint import REFUSALS
from tokengym.agents.rollouts import RolloutRecord
from tokengym.envs.core.turn import expected_return
from tokengym.rewards.arrays import Floats


class Returns(NamedTuple):
    """Returns of a policy's rollouts in one world; NaN for those that were lost.

    Attributes:
        realised_TK: as they were paid, shape (Tasks, rollouts).
        expected_TK: what the replies earn on average over outcomes; `None` where it is unknown.
    """

    realised_TK: Floats
    expected_TK: Floats | None

    def first(self, count: int) -> Self:
        """Return those of the first Tasks alone."""
        expected_TK = None if self.expected_TK is None else self.expected_TK[:count]
        return self._replace(realised_TK=self.realised_TK[:count], expected_TK=expected_TK)


@dataclass
class RolloutTable:
    """Numbers that results need of the rollouts of one policy in one world.

    Rollouts themselves are far larger: they are read one by one.

    Attributes:
        first: the first rollout.
        columns: by name, a number of each rollout; NaN where it is not known.
        ends: what the world reported at the end of each.
        terms: by name of a part of the reward, its sum over each rollout that reports it.
        stops: by reason, how many episodes ended for it.
        failures: by reason, how many rollouts the endpoint ended.
        other_models: by name, how many replies are of a model that was not asked for.
    """

    first: RolloutRecord
    columns: dict[str, "array[float]"] = field(default_factory=dict)
    ends: list[Mapping[str, float | None]] = field(default_factory=list)
    terms: dict[str, "array[float]"] = field(default_factory=dict)
    stops: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    other_models: Counter[str] = field(default_factory=Counter)

    @classmethod
    def read(cls, records: Iterable[RolloutRecord], violation: str) -> Self:
        """Read rollouts, by Task and number.

        Args:
            records: the rollouts, at least one.
            violation: the metric that is above 0 where a rule was broken.
        """
        table: Self | None = None
        for record in records:
            table = table or cls(record)
            table._add(record, violation)
        assert table is not None
        return table

    def _add(self, record: RolloutRecord, violation: str) -> None:
        own = record.own_turns
        metrics = {sys.intern(name): value for name, value in record.metrics.items()}
        expected = metrics.get(expected_return(record.role))
        replies = max(len(own), 1)
        row = {
            "realised": record.total,
            "expected": np.nan if expected is None else expected,
            "lost": float(record.lost),
            "malformed": record.malformed / replies,
            "cut_off": record.cut_off / replies,
            "repeating": record.repeating / replies,
            "refused": sum(turn.finish in REFUSALS for turn in own) / replies,
            "violations": float((metrics.get(violation) or 0.0) > 0.0),
            "prompt_tokens": _total([turn.prompt_tokens for turn in own]),
            "completion_tokens": _total([turn.completion_tokens for turn in own]),
        }
        for name, value in row.items():
            self.columns.setdefault(name, array("d")).append(value)
        self.ends.append(metrics)
        sums: Counter[str] = Counter()
        for turn in record.turns:
            sums.update(turn.terms)
        for name, value in sums.items():
            self.terms.setdefault(name, array("d")).append(value)
        self.stops[record.stop_reason] += 1
        self.other_models.update(turn.model for turn in own if turn.model is not None)
        if record.failure is not None:
            self.failures[record.failure.partition(":")[0]] += 1

    def column(self, name: str, rollouts: int) -> Floats:
        """Return a number of each rollout; NaN for those that were lost.

        Args:
            name: of the column.
            rollouts: of each Task.
        """
        values_TK, lost_TK = (
            np.array(self.columns[which], np.float64).reshape(-1, rollouts)
            for which in (name, "lost")
        )
        return np.where(lost_TK > 0.0, np.nan, values_TK)

    def returns(self, rollouts: int) -> Returns:
        """Return the returns, expected ones where each rollout that was not lost has one."""
        realised_TK, expected_TK = (
            self.column(name, rollouts) for name in ("realised", "expected")
        )
        unknown = np.isnan(expected_TK) & ~np.isnan(realised_TK)
        return Returns(realised_TK, None if unknown.any() else expected_TK)

    def count(self, name: str) -> int | None:
        """Return the sum of a column of counts; `None` where one is not known."""
        total = float(np.sum(self.columns[name]))
        return None if np.isnan(total) else int(total)


def _total(counts: Sequence[int | None]) -> float:
    """Return the sum of counts; NaN where there are none, or one is not known."""
    numbers = [count for count in counts if count is not None]
    return sum(numbers) if numbers and len(numbers) == len(counts) else np.nan
