"""Recorded rollouts of any trainer, for the checks that records alone allow."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tokengym.agents.certify.source import (
    Facts,
    Recorded,
    Source,
    SourceEpisode,
    TaskPlace,
    plain_reward,
)
from tokengym.agents.certify.sources import message_text
from tokengym.agents.rollouts import RolloutLog, RolloutRecord
from tokengym.envs.core.errors import DataError, OptionError
from tokengym.envs.intake.rows import rows_of


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


class RecordedRollouts(Source):
    """Rollouts in a file or folder: ours, or lines with `prompt`, `reply`, `reward` and `group`.

    They are JSON or Parquet. Without `group`, rollouts of equal prompts are a group; `split` and
    `task`, by default the prompt, are optional. The files of verifiers, `results.jsonl` before 0.4
    and `traces.jsonl` since, are read too, and the folder of a run of tinker-cookbook, whose logs
    have no texts.

    Args:
        path: the file, or a folder of rollouts in our format, verifiers' or the cookbook's.

    Raises:
        DataError: if a line lacks a field, or there are none.
    """

    def __init__(self, path: Path) -> None:
        files = [file for pattern in _FILES for file in sorted(path.rglob(pattern))]
        if path.is_dir() and not files:
            self.rollouts = tuple(map(_recorded, RolloutLog(path).read()))
        else:
            self.rollouts = tuple(row for file in files or [path] for row in _rows(file))
        if not self.rollouts:
            raise DataError(f"{path} has no rollouts")
        splits = tuple(dict.fromkeys(rollout.split for rollout in self.rollouts))
        self.facts = Facts(package=path.name, splits=splits if len(splits) > 1 else ())

    def start(self, place: TaskPlace) -> SourceEpisode:
        """Refuse: what was recorded cannot be played."""
        raise OptionError(f"recorded rollouts cannot be played, got {place}")


def _recorded(record: RolloutRecord) -> Recorded:
    own, origin = record.own_turns, record.origin
    prompt = own[0].read if own else ""
    replies = "\n".join(turn.said or "" for turn in own)
    place = f"{record.world} {record.level} {record.role}"
    group = f"{place} {origin.kind} {origin.policy} {origin.step} {origin.group}"
    task = f"{place} {record.fingerprint}"
    return Recorded(prompt, replies, record.total, group, record.split, len(replies), task)


def reward_groups(rollouts: Sequence[Recorded]) -> list[RewardGroup]:
    """Return the groups of rollouts by their names, without rewards that are no finite number."""
    groups: dict[str, RewardGroup] = {}
    for one in rollouts:
        if isinstance(one.reward, int | float) and math.isfinite(one.reward):
            new = RewardGroup(one.group, one.task or one.group, [])
            groups.setdefault(one.group, new).rewards.append(float(one.reward))
    return list(groups.values())


def _rows(path: Path) -> Iterator[Recorded]:
    for where, row in rows_of(path):
        read = next((how for field, how in _FORMATS.items() if field in row), _plain)
        try:
            yield from read(row)
        except KeyError as missing:
            raise DataError(f"{where}: there is no {missing}") from missing


def _plain(row: dict[str, Any]) -> Iterator[Recorded]:
    prompt, reward = message_text(row["prompt"]), plain_reward(row["reward"])
    reply = message_text(row["completion"] if "completion" in row else row["reply"])
    group, split = row.get("group", row.get("example_id", prompt)), str(row.get("split") or "")
    group, task = str(group), str(row.get("task", prompt))
    yield Recorded(prompt, reply, reward, group, split, len(reply), task)


def _traces(row: dict[str, Any]) -> Iterator[Recorded]:
    """Read an episode of verifiers since 0.4: a trace for each agent."""
    for trace in row["traces"]:
        said = [node["message"] for node in trace["nodes"] if node.get("sampled")]
        seen = [node["message"] for node in trace["nodes"] if not node.get("sampled")]
        paid = [reward for reward in trace["rewards"].values() if reward is not None]
        total = sum(reward["score"] * reward.get("weight", 1.0) for reward in paid)
        group = row["task"].get("key") or row["task"]["data"]
        reply = message_text(said)
        who = f"{group} {trace['agent'].get('name', '')}"
        asked, earned = message_text(seen[:1]), plain_reward(total)
        yield Recorded(asked, reply, earned, who, "", len(reply), str(group))


def _summary(row: dict[str, Any]) -> Iterator[Recorded]:
    """Read a rollout that tinker-cookbook summed up: numbers of tokens for its texts."""
    length = sum(step["ac_len"] for step in row["steps"])
    group = f"{row['split']} {row['iteration']} {row['group_idx']}"
    yield Recorded("", "", plain_reward(row["total_reward"]), group, row["split"], length)


_FORMATS: Mapping[str, Callable[[dict[str, Any]], Iterator[Recorded]]] = {
    "turns": lambda row: iter([_recorded(RolloutRecord.from_dict(row))]),
    "traces": _traces,
    "group_idx": _summary,
}
"""Formats by a field that only they have."""
_FILES = ("*rollout_summaries.jsonl", "traces.jsonl", "results.jsonl")
"""Files of a run's folder that have its rollouts."""
