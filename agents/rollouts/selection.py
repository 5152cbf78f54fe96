"""Selecting rollouts, and turning them into training data: demonstrations and preferences."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

from tokengym.agents.rollouts.record import RolloutRecord
from tokengym.agents.settings import Settings, option
from tokengym.envs.core.errors import OptionError

Message = Mapping[str, str]
"""One message of a chat: `role` and `content`."""


class Preference(NamedTuple):
    """Two rollouts of a group that diverge at one reply and earned differently.

    Attributes:
        better: the rollout of the larger return.
        worse: the other.
        reply: number of the role's reply in which they part, from 0; what was read and said before
            is the same in both.
    """

    better: RolloutRecord
    worse: RolloutRecord
    reply: int

    @property
    def margin(self) -> float:
        """Difference of the returns, above 0."""
        return self.better.total - self.worse.total


@dataclass(frozen=True, kw_only=True)
class RolloutSelection(Settings):
    """Selection of rollouts. Fields that are `None` or empty are ignored.

    Attributes:
        steps: first and last training step.
        least: least return.
        most: largest return.
    """

    kind: str | None = option(None, "train or evaluation")
    steps: tuple[int, int] | None = None
    role: str | None = option(None, "rollouts of this role")
    policy: str | None = option(None, "rollouts of this policy")
    least: float | None = option(None, "smallest return", flag="--min-return")
    most: float | None = option(None, "largest return", flag="--max-return")

    def holds(self, record: RolloutRecord) -> bool:
        """Return whether a rollout is wanted."""
        equal = (
            (self.kind, record.origin.kind),
            (self.role, record.role),
            (self.policy, record.origin.policy),
        )
        if any(asked is not None and asked != value for asked, value in equal):
            return False
        if self.steps is not None:
            step = record.origin.step
            if step is None or not self.steps[0] <= step <= self.steps[1]:
                return False
        if self.least is not None and record.total < self.least:
            return False
        return self.most is None or record.total <= self.most


def conversation(record: RolloutRecord) -> list[Message]:
    """Return what a rollout's role read and wrote, as a chat."""
    messages: list[Message] = []
    for turn in record.own_turns:
        messages.append({"role": "user", "content": turn.read})
        messages.append({"role": "assistant", "content": turn.said or ""})
    return messages


def best_of_groups(records: Iterable[RolloutRecord], least: float) -> Iterator[RolloutRecord]:
    """Yield the best rollout of every group, of those without a malformed reply or a cut-off one.

    Args:
        records: rollouts, those of a group after each other or not.
        least: least return of a rollout to yield.
    """
    for group in _groups(records):
        whole = [row for row in group if not row.malformed and not row.cut_off and row.own_turns]
        best = max(whole, key=lambda row: row.total, default=None)
        if best is not None and best.total >= least:
            yield best


def demonstrations(records: Iterable[RolloutRecord], least: float) -> Iterator[dict[str, Any]]:
    """Yield the best rollout of every group as a chat to imitate.

    Rollouts with a malformed reply or one that was cut off are left out.

    Args:
        records: rollouts, those of a group after each other or not.
        least: least return of a rollout to imitate.
    """
    for best in best_of_groups(records, least):
        yield {"messages": conversation(best), "return": best.total}


def preferred(records: Iterable[RolloutRecord], margin: float) -> Iterator[Preference]:
    """Yield the pairs of rollouts of a group that diverge at a reply and differ in return.

    Two rollouts of a group share their conversation up to the reply in which they part. Ties, and
    rollouts that say the same, make no pair.

    Args:
        records: rollouts, those of a group after each other or not.
        margin: least difference of the returns, above 0.

    Raises:
        OptionError: if the margin is not positive.
    """
    if not margin > 0.0:
        raise OptionError(f"margin must be positive, so that ties are left out, got {margin}")
    for group in _groups(records):
        for pair in combinations(group, 2):
            worse, better = sorted(pair, key=lambda row: row.total)
            if better.total - worse.total < margin:
                continue
            turns = zip(better.own_turns, worse.own_turns, strict=False)
            for reply, (good, bad) in enumerate(turns):
                # They part in what was read where another role replied differently.
                if good.read != bad.read:
                    break
                if good.said != bad.said:
                    yield Preference(better, worse, reply)
                    break


def preferences(records: Iterable[RolloutRecord], margin: float) -> Iterator[dict[str, Any]]:
    """Yield the pairs of `preferred` as chats: a prompt, and the two replies to it.

    Args:
        records: rollouts, those of a group after each other or not.
        margin: least difference of the returns, above 0.

    Raises:
        OptionError: if the margin is not positive.
    """
    for pair in preferred(records, margin):
        chosen, rejected = conversation(pair.better), conversation(pair.worse)
        place = 2 * pair.reply + 1
        yield {
            "prompt": chosen[:place],
            "chosen": [chosen[place]],
            "rejected": [rejected[place]],
            "margin": pair.margin,
        }


def _groups(records: Iterable[RolloutRecord]) -> Iterator[list[RolloutRecord]]:
    """Yield the rollouts of each Task in each step and role, in the order they appear."""
    groups: dict[tuple[object, ...], list[RolloutRecord]] = {}
    for record in records:
        origin = record.origin
        task = record.role, record.fingerprint, record.answer_fingerprint
        key = (origin.kind, origin.step, origin.policy, task)
        groups.setdefault(key, []).append(record)
    yield from groups.values()
