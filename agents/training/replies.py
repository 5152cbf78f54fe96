"""What a step's replies have in common: how many differ, and which is the commonest.

They are read from the summaries of rollouts that the cookbook's loop exports and ours writes alike:
`iteration_NNNNNN/train_rollout_summaries.jsonl` in the run folder.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROLLOUTS = "train"
"""Name of the training rollouts' summaries."""

_SHOWN_CHARACTERS = 60


@dataclass(frozen=True)
class ReplyStatistics:
    """Replies of one step.

    Attributes:
        replies: number of replies.
        distinct: number of different ones.
        commonest: the reply that was given most often, shortened.
        commonest_share: its share of all replies.
        tasks: number of groups; of a single one, equal replies may be right.
    """

    replies: int
    distinct: int
    commonest: str
    commonest_share: float
    tasks: int


def reply_statistics(rollouts: Iterable[Mapping[str, Any]]) -> ReplyStatistics | None:
    """Return the statistics of a step's rollouts; `None` if they hold no reply.

    Args:
        rollouts: records as the cookbook serialises them.
    """
    replies: Counter[str] = Counter()
    groups = set()
    for rollout in rollouts:
        groups.add(rollout["group_idx"])
        replies.update(
            step["logs"]["reply"].strip() for step in rollout["steps"] if "reply" in step["logs"]
        )
    if not replies:
        return None
    commonest, count = replies.most_common(1)[0]
    total = replies.total()
    shown = commonest[:_SHOWN_CHARACTERS]
    return ReplyStatistics(total, len(replies), shown, count / total, len(groups))


def read_reply_statistics(folder: Path, step: int) -> ReplyStatistics | None:
    """Return the statistics of a step of the run in `folder`; `None` if its rollouts are missing.

    Lines that a killed process left half written are passed over.
    """
    path = folder / f"iteration_{step:06d}" / f"{ROLLOUTS}_rollout_summaries.jsonl"
    if not path.is_file():
        return None
    return reply_statistics(_records(path.read_text(encoding="utf-8").splitlines()))


def _records(lines: Iterable[str]) -> Iterable[dict[str, Any]]:
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:
            continue
