"""The data of one run for pages: report, settings, curves and rollouts, as plain JSON."""

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from tokengym.agents.evaluation.folder import EvaluationFolder, SavedEvaluation
from tokengym.agents.evaluation.plan import AFTER, BEFORE
from tokengym.agents.rollouts import RolloutLog, RolloutRecord
from tokengym.agents.rollouts.log import Segment
from tokengym.agents.scale.level_scale import Scale, ladder_of
from tokengym.agents.settings import plain
from tokengym.agents.training.folder.monitor import StepRow
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.viewer.reports import read_report, report_file
from tokengym.agents.viewer.table import Texts, groups_of, table_of
from tokengym.envs.core.errors import DataError
from tokengym.envs.registry import import_object, spec
from tokengym.rewards.estimates import Estimate

_SERIES: Mapping[str, Callable[[StepRow], float | None]] = {
    "return": lambda row: None if row.loss is not None else row.reward,
    "dead groups": lambda row: None if row.loss is not None else row.dead_share,
    "tied pairs": lambda row: None if row.loss is not None else row.tie_pair_rate,
    "malformed": lambda row: None if row.loss is not None else row.malformed_share,
    "cut off": lambda row: None if row.loss is not None else row.cut_off_share,
    "copied": lambda row: None if row.loss is not None else row.copied_share,
    "entropy": lambda row: row.entropy,
    "loss": lambda row: row.loss,
}
"""Series over steps that pages show, by name."""


_QUIET_SECONDS = 120
"""An unfinished run whose rollouts have not changed for this long counts as stopped."""


class _Indexed(NamedTuple):
    """The contents of a segment when it was last read."""

    stamp: str
    table: dict[str, Any]
    texts: Texts


class RunView:
    """One run, read as it grows. Every method may be called from any thread.

    Args:
        name: what to call it; pages ask for it by this name.
        folder: of a run, an evaluation or another result, or one that holds files of rollouts; or
            a file that holds a report.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self._run = RunFolder(folder)
        inner = folder / "rollouts"
        self._log = RolloutLog(inner if self._run.exists or inner.is_dir() else folder)
        self._steps = self._run.step_log(replies=False)
        self._stepping, self._indexing = threading.Lock(), threading.Lock()
        self._reporting = threading.Lock()
        self._evaluating = threading.Lock()
        self._saved: tuple[int, SavedEvaluation] | None = None
        self._report: tuple[int, dict[str, Any] | None] = (0, None)
        self._indexed: dict[str, _Indexed] = {}
        self._notes: list[str] = []

    def summary(self) -> dict[str, Any]:
        """Return what the run is, its progress, and its evaluations."""
        config = self._run.config if self._run.exists else None
        outcome = self._run.outcome
        before, after = (self._earned(name) for name in (BEFORE, AFTER))
        world = None if config is None else spec(config.world)
        summary: dict[str, Any] = plain(
            {
                "name": self.name,
                "state": self._state(config is not None),
                "collapse": None if outcome is None else outcome.collapse,
                "config": config,
                "before": before and list(before),
                "after": after and list(after),
                "metrics": import_object(world.metrics) if world and world.metrics else {},
                "picture": bool(world and world.render),
                "notes": list(dict.fromkeys(self._notes)),
            }
        )
        return summary

    def report(self) -> dict[str, Any] | None:
        """Return the report, as plain JSON; `None` if there is none yet.

        Raises:
            TokengymError: if what it is made from is damaged.
        """
        file = report_file(self.folder)
        if file is None:
            return None
        with self._reporting:
            changed = file.stat().st_mtime_ns
            if self._report[0] != changed:
                self._report = (changed, read_report(file))
            return self._report[1]

    def curves(self) -> dict[str, Any]:
        """Return the series over the completed steps; by series reference lines and held-out means.

        `points` holds of each evaluation the place among the steps, the mean and its 95 % interval.
        """
        with self._stepping:
            rows = self._steps.current()
        series = {name: [_number(read(row)) for row in rows] for name, read in _SERIES.items()}
        steps = [row.step for row in rows]
        lines, points = {}, {}
        for at, (name, shown) in enumerate(self._returns().items()):
            if shown != "return":
                key = f"env/all/{name}/reward"
                series[shown] = [_number(row.metrics.get(key)) for row in rows]
            if evaluation := self._evaluation():
                place = evaluation.plan.places[at]
                ladder = ladder_of(spec(place.world), place.level, place.role)
                lines[shown] = evaluation.scales[at].levels(ladder)
            points[shown] = self._held_out(at, steps)
        return {
            "steps": steps,
            "series": {name: values for name, values in series.items() if set(values) - {None}},
            "lines": lines,
            "points": points,
        }

    def stamps(self) -> dict[str, str]:
        """Return by segment a stamp that changes whenever its file does."""
        return {segment.name: _stamp(segment) for segment in self._log.segments()}

    def tables(self, segments: Iterable[str] | None = None) -> dict[str, dict[str, Any]]:
        """Return the rows of segments, by column, with the stamp they are of.

        Args:
            segments: names; all that there are if `None`. Others are left out.
        """
        index = self._index(None if segments is None else frozenset(segments))
        return {name: {"stamp": read.stamp, **read.table} for name, read in index.items()}

    def table(self, segment: str, records: Sequence[RolloutRecord]) -> dict[str, Any]:
        """Return some of a segment's rollouts by column, with what the oracle does there."""
        table = table_of(records)
        return {**table, **_oracle(segment, table, self._evaluation())}

    def records(self, segment: str) -> Iterator[RolloutRecord]:
        """Yield the rollouts of a segment as they are read; a damaged rest is noted."""
        log = RolloutLog(self._log.folder)
        try:
            yield from log.read(segment)
        except DataError as error:
            self._notes.append(str(error))
        finally:
            self._notes += log.notes

    def search(self, words: str) -> dict[str, list[int]]:
        """Return by segment the rows whose texts hold `words`, in any case."""
        return {name: read.texts.search(words) for name, read in self._index().items()}

    def group(self, segment: str, row: int) -> tuple[list[int], list[RolloutRecord]]:
        """Return the group that a row of a segment belongs to: its rows, and their rollouts.

        Raises:
            DataError: if there is no such segment or row, or the segment is damaged.
        """
        if segment not in self.stamps():
            raise DataError(f"{self.name} has no rollouts called {segment!r}")
        records = list(RolloutLog(self._log.folder).read(segment))
        for rows in groups_of(records).values():
            if row in rows:
                return rows, [records[row] for row in rows]
        raise DataError(f"{segment} of {self.name} has no row {row}")

    def _index(self, names: Collection[str] | None = None) -> dict[str, _Indexed]:
        """Return current segments, all or those named; damaged ones are noted."""
        index = {}
        for segment in self._log.segments():
            if names is None or segment.name in names:
                with self._indexing:
                    read = self._read(segment)
                if read is not None:
                    index[segment.name] = read
        return index

    def _read(self, segment: Segment) -> _Indexed | None:
        """Read a segment, unless it has not changed since it was last read; `None` if empty."""
        former, stamp = self._indexed.get(segment.name), _stamp(segment)
        if former is not None and former.stamp == stamp:
            return former
        records = list(self.records(segment.name))
        if not records:
            return None
        table = self.table(segment.name, records)
        read = self._indexed[segment.name] = _Indexed(stamp, table, Texts(records))
        return read

    def _state(self, is_run: bool) -> str:
        if not is_run:
            return ""
        outcome = self._run.outcome
        if outcome is not None:
            return "completed" if outcome.collapse is None else "collapsed"
        changed = [segment.changed for segment in self._log.segments()]
        return "running" if time.time() - max(changed, default=0.0) < _QUIET_SECONDS else "stopped"

    def _returns(self) -> dict[str, str]:
        """Return the series of returns of each trained role."""
        if not self._run.exists:
            return {}
        roles = self._run.config.trained_roles
        return {role: f"return of {role}" if len(roles) > 1 else "return" for role in roles}

    def _held_out(self, place: int, steps: Sequence[int]) -> list[tuple[float | None, ...]]:
        """Return where and what a policy earned on held-out Tasks, with intervals."""
        last = steps[-1] + 1 if steps else 1
        ends = [(0, self._earned(BEFORE, place)), (last, self._earned(AFTER, place))]
        return [(at, *map(_number, mean[:3])) for at, mean in ends if mean is not None]

    def _earned(self, policy: str, place: int = 0) -> Estimate | None:
        """Return what a policy earned in a place; `None` where it was not evaluated (yet)."""
        evaluation = self._evaluation()
        if evaluation is None or evaluation.results is None:
            return None
        rows = evaluation.results.of_policy(policy)
        return rows[place].earned if rows else None

    def _evaluation(self) -> SavedEvaluation | None:
        """Return what the folder says of its evaluation; `None` without one."""
        folder = EvaluationFolder(self.folder)
        if not folder.exists:
            return None
        with self._evaluating:
            changed = folder.file.stat().st_mtime_ns
            if self._saved is None or self._saved[0] != changed:
                self._saved = changed, folder.saved()
            return self._saved[1]


def _oracle(
    segment: str, table: Mapping[str, list[Any]], evaluation: SavedEvaluation | None
) -> dict[str, list[Any]]:
    """Return what the oracle says and earns on the Tasks of an evaluation, by column."""
    said, earned = [""] * len(table["group"]), list[float | None]([None] * len(table["group"]))
    known: dict[tuple[str, str, str], Scale] = {}
    if evaluation is not None and segment.startswith("evaluation"):
        for place, scale in zip(evaluation.plan.places, evaluation.scales, strict=True):
            known.setdefault((place.world, place.level, place.role), scale)
    columns = (table[name] for name in ("world", "level", "role", "group"))
    for row, (world, level, role, task) in enumerate(zip(*columns, strict=True)):
        found = known.get((world, level, role))
        if found is not None and task < len(found.used.oracle_T):
            earned[row] = found.used.oracle_T[task]
            said[row] = found.replies[task] if found.replies else ""
    return {"best": said, "best_return": earned}


def _stamp(segment: Segment) -> str:
    return f"{segment.changed}/{segment.size}"


def _number(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None
