"""Recorded rollouts of anybody: what records alone can tell is told."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tokengym.agents.certify.source import (
    Episode,
    Facts,
    Place,
    Recorded,
    Source,
    plain_reward,
)
from tokengym.agents.certify.sources import rows_of
from tokengym.agents.rollouts import RolloutLog, RolloutRecord
from tokengym.envs.core.errors import DataError, OptionError


class Records(Source):
    """Rollouts in a file or folder: ours, or rows with `prompt`, `reply`, `reward` and `group`.

    Rows are JSON or Parquet. Without `group`, rollouts of equal prompts are a group; `split`
    is optional. The results of verifiers, with `completion` and `example_id`, are read too.

    Args:
        path: the file, or a folder of rollouts in our format.

    Raises:
        DataError: if a row lacks a field, or there are no rows.
    """

    def __init__(self, path: Path) -> None:
        read = map(_recorded, RolloutLog(path).read()) if path.is_dir() else _rows(path)
        self.rollouts = tuple(read)
        if not self.rollouts:
            raise DataError(f"{path} has no rollouts")
        splits = tuple(dict.fromkeys(rollout.split for rollout in self.rollouts))
        self.facts = Facts(package=path.name, splits=splits if len(splits) > 1 else ())

    def start(self, place: Place) -> Episode:
        """Refuse: what was recorded cannot be played."""
        raise OptionError(f"recorded rollouts cannot be played, got {place}")


def _recorded(record: RolloutRecord) -> Recorded:
    own = record.own_turns
    group = record.origin.kind, record.origin.step, record.origin.group
    prompt = own[0].read if own else ""
    replies = "\n".join(turn.said or "" for turn in own)
    return Recorded(prompt, replies, record.total, repr(group), record.split)


def _rows(path: Path) -> Iterator[Recorded]:
    for where, row in rows_of(path):
        if "turns" in row:
            yield _recorded(RolloutRecord.from_dict(row))
            continue
        said = row.get("reply", row.get("completion"))
        missing = [name for name in ("prompt", "reward") if name not in row]
        if missing or said is None:
            raise DataError(f"{where}: there is no {(*missing, 'reply')[0]!r}")
        prompt = _text(row["prompt"])
        group = row.get("group", row.get("example_id", prompt))
        split = str(row.get("split") or "")
        yield Recorded(prompt, _text(said), plain_reward(row["reward"]), str(group), split)


def _text(said: Any) -> str:
    """Return a text, or the contents of a list of messages."""
    if isinstance(said, list):
        return "\n".join(str(message.get("content") or "") for message in said)
    return str(said)
