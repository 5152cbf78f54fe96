"""Statistics of a step's replies: how many differ, and the commonest."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tokengym.agents.rollouts import RolloutLog, RolloutRecord, train_segment

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


def reply_statistics(rollouts: Iterable[RolloutRecord]) -> ReplyStatistics | None:
    """Return the statistics of a step's rollouts; `None` if they hold no reply."""
    replies: Counter[str] = Counter()
    groups = set()
    for rollout in rollouts:
        groups.add(rollout.origin.group)
        replies.update((turn.said or "").strip() for turn in rollout.own_turns)
    if not replies:
        return None
    commonest, count = replies.most_common(1)[0]
    total = replies.total()
    shown = commonest[:_SHOWN_CHARACTERS]
    return ReplyStatistics(total, len(replies), shown, count / total, len(groups))


def read_reply_statistics(log: RolloutLog, step: int) -> ReplyStatistics | None:
    """Return the statistics of a step's saved rollouts; `None` if there are none."""
    return reply_statistics(log.read(train_segment(step)))
