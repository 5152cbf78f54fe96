"""A RolloutLog: the one writer and reader of a folder of rollouts; what of training is kept in it.

The folder holds one JSONL file a segment, which is a training step (`train_000012.jsonl`) or an
evaluation (`evaluation_before.jsonl`), with one record a line. Records are appended as rollouts
end, so a kill loses at most the one being written. A segment that is complete is sealed: put in the
order of its Tasks, whichever ended first, so that equal runs have equal files.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from tokengym.agents.rollouts.record import RolloutOrigin, RolloutRecord
from tokengym.atomic_write import replacing
from tokengym.envs.core.errors import DataError

_SUFFIX = ".jsonl"
_TRAIN = re.compile(r"train_(\d{6,})")


def train_segment(step: int) -> str:
    """Return the name of a training step's segment."""
    return f"train_{step:06d}"


def evaluation_segment(name: str) -> str:
    """Return the name of an evaluation's segment, such as `before`."""
    return f"evaluation_{name}"


_FEWEST_GROUPS = 2
"""Groups of a step that are kept as long as there is room: replies to one Task may agree."""


class Segment(NamedTuple):
    """One file of rollouts.

    Attributes:
        name: its name without the suffix.
        path: the file.
        size: its bytes.
        changed: when it was last written, seconds since 1970; a sealed file is a new one.
    """

    name: str
    path: Path
    size: int
    changed: float

    @property
    def step(self) -> int | None:
        """The training step it is of; `None` for evaluations."""
        match = _TRAIN.fullmatch(self.name)
        return None if match is None else int(match[1])


class RolloutLog:
    """Rollouts in a folder.

    Args:
        folder: where the files lie; made when the first record is written.

    Attributes:
        folder: where the files lie.
        notes: what readers passed over, for people: a torn last line, repeated rollouts.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.notes: list[str] = []
        self._whole: set[str] = set()  # segments that end with a whole line of this writer

    def segments(self) -> list[Segment]:
        """Return the files there are, by name: evaluations first, then the steps in order."""
        files = []
        for path in sorted(self.folder.glob(f"*{_SUFFIX}")):
            status = path.stat()
            files.append(Segment(path.stem, path, status.st_size, status.st_mtime))
        return sorted(files, key=lambda file: (-1 if file.step is None else file.step, file.name))

    def path(self, segment: str) -> Path:
        """Return the file of a segment."""
        return self.folder / f"{segment}{_SUFFIX}"

    def append(
        self, segment: str, records: Iterable[RolloutRecord], room: int | None = None
    ) -> None:
        """Append records to a segment; a line that a killed process left incomplete is cut off.

        Args:
            segment: its name.
            records: what to add.
            room: most bytes that may be added: records that need more are left out, all of them.
        """
        lines = "".join(f"{record.to_json()}\n" for record in records).encode("utf-8", "replace")
        if not lines or (room is not None and len(lines) > room):
            return
        path = self.path(segment)
        if segment not in self._whole:
            self.folder.mkdir(parents=True, exist_ok=True)
            if path.exists():
                _cut_torn_line(path)
        self._whole.discard(segment)
        with path.open("ab") as file:
            file.write(lines)
        self._whole.add(segment)

    def read(self, segment: str | None = None) -> Iterator[RolloutRecord]:
        """Yield the records of one segment, or of all.

        Args:
            segment: its name; all segments in order if `None`. One that is missing has no records.

        Raises:
            DataError: if a line other than a torn last one is damaged, or of another schema.
        """
        names = [file.name for file in self.segments()] if segment is None else [segment]
        for name in names:
            path = self.path(name)
            lines = self._lines(path) if path.is_file() else ()
            for number, (_, data) in enumerate(lines, 1):
                try:
                    yield RolloutRecord.from_dict(data)
                except DataError as error:
                    raise DataError(f"{path}, line {number}: {error}") from error

    def seal(self, segment: str) -> None:
        """Put a segment in the order of its Tasks; of equal places the last stays."""
        path, at = self.path(segment), 0
        places, order = dict[tuple[Any, ...], tuple[int, int]](), list[tuple[Any, ...]]()
        for line, data in self._lines(path) if path.is_file() else ():
            order.append(_place(data))
            places[order[-1]] = at, len(line)
            at += len(line)
        if not order or (at == path.stat().st_size and order == sorted(places)):
            return
        # A segment may be larger than the memory: its lines are copied one by one.
        with replacing(path) as whole, path.open("rb") as old, whole.open("wb") as new:
            for place in sorted(places):
                start, length = places[place]
                old.seek(start)
                new.write(old.read(length))

    def _lines(self, path: Path) -> Iterator[tuple[bytes, dict[str, Any]]]:
        """Yield the lines of a file, each verbatim and as the object that it holds."""
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    self.notes.append(f"{path}: the last line was incomplete and is skipped")
                    return
                try:
                    data = json.loads(line, parse_constant=_refuse_constant)
                except ValueError as error:
                    raise DataError(f"{path}, line {number}: {error}") from error
                if not isinstance(data, dict):
                    raise DataError(f"{path}, line {number}: expected an object")
                yield line, data


def _refuse_constant(name: str) -> float:
    raise ValueError(f"a rollout holds finite numbers only, got {name}")


@dataclass(frozen=True)
class TrainRollouts:
    """Saves the rollouts of a run's training steps.

    It keeps all groups of a step, or the stated share: fewer where the bytes that are left would
    not last to the run's end, and no group once the bytes are used up.

    Attributes:
        folder: of the rollouts.
        share: share of each step's groups to keep, in [0, 1].
        most_bytes: bound of all training segments together.
        steps: steps of the run.
        origin: what all its rollouts have in common.
    """

    folder: str
    share: float
    most_bytes: int
    steps: int
    origin: RolloutOrigin

    def origins(self, step: int, groups: int) -> list[RolloutOrigin]:
        """Return the origins of those of a step's groups that are kept: the first ones.

        Args:
            step: the step.
            groups: how many groups it has.
        """
        count = self._kept_groups(step, groups)
        return [
            replace(self.origin, step=step, group=group, kept=count / groups)
            for group in range(count)
        ]

    def _kept_groups(self, step: int, groups: int) -> int:
        earlier = [
            file for file in self._log.segments() if file.step is not None and file.step < step
        ]
        share = self.share
        if earlier:
            left = self.most_bytes - sum(file.size for file in earlier)
            whole = earlier[-1].size / _share_in(earlier[-1].path)
            share = min(share, left / max(self.steps - step, 1) / whole)
            if left < whole / groups:
                return 0
        return min(groups, max(_FEWEST_GROUPS, int(share * groups + 0.5))) if self.share else 0

    def write(self, step: int, records: Sequence[RolloutRecord]) -> None:
        """Append records of a step while there is room for them."""
        used = sum(file.size for file in self._log.segments() if file.step is not None)
        self._log.append(train_segment(step), records, room=self.most_bytes - used)

    def seal(self, step: int) -> None:
        """Put the rollouts of a completed step in order."""
        self._log.seal(train_segment(step))

    def discard_from(self, step: int) -> None:
        """Delete the rollouts of steps that will be repeated."""
        for segment in self._log.segments():
            if segment.step is not None and segment.step >= step:
                segment.path.unlink()

    @property
    def _log(self) -> RolloutLog:
        return RolloutLog(Path(self.folder))


def _share_in(path: Path) -> float:
    """Return the share of a step's groups that its segment holds."""
    with path.open("rb") as file:
        return float(json.loads(file.readline())["kept"])


def _place(data: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the place of a record among the rollouts of its segment."""
    numbers = tuple(data.get(name) or 0 for name in ("step", "group", "member"))
    return numbers, *(str(data.get(name)) for name in ("role", "world", "level"))


def _cut_torn_line(path: Path) -> None:
    with path.open("r+b") as file:
        data = file.seek(0, 2)
        if data == 0:
            return
        file.seek(-1, 2)
        if file.read(1) != b"\n":
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)
