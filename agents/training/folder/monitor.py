"""Reading a run's steps from its folder as it grows: rates, ties and statistics of replies."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tokengym.agents.rollouts import RolloutLog, RolloutRecord, train_segment

_ONE_REPLY = 0.9
"""Share of the commonest reply from which a policy says one thing to everything."""

_LOSSES = ("train/nll", "dpo/loss")
"""Metrics of steps without rollouts; each step logs one."""

_SHOWN_CHARACTERS = 60
"""Of the commonest reply."""

_ALL = "env/all/"
TIE_RATES = (
    "reward_tie_group_rate",
    "reward_uniform_group_rate",
    "reward_tie_pair_rate",
    "reward_unique_fraction_mean",
)
NAMED: Mapping[str, str] = {
    "mean_reward": f"{_ALL}reward/total",
    **{name: f"{_ALL}{name}" for name in ("correct_rate", *TIE_RATES)},
}
"""Figures of a step by the names they have by themselves, and where the loops log them;
docs/results.md defines them."""
_TOKENS = (f"{_ALL}total_ob_tokens", f"{_ALL}total_ac_tokens", "train/tokens")


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
    shortened = commonest[:_SHOWN_CHARACTERS]
    return ReplyStatistics(total, len(replies), shortened, count / total, len(groups))


class StepRow(NamedTuple):
    """One completed step.

    Attributes:
        step: the trainer's iteration, from 0.
        reward: mean return of the step's rollouts.
        uniform_rate: share of groups whose returns all tie.
        tie_pair_rate: share of pairs within groups that tie.
        malformed_share: share of malformed replies.
        cut_off_share: share of replies cut off by the token limit.
        repeating_share: share of replies that repeat themselves until they are cut off.
        copied_share: share of replies that copy a line of the prompt.
        entropy: minus the mean log-probability of a sampled token, in nats; `None` if not logged.
        replies: what the replies have in common; `None` where rollouts were not kept.
        tokens: tokens read and sampled by the rollouts.
        seconds: how long the step took.
        metrics: everything the trainer logged.
    """

    step: int
    reward: float
    uniform_rate: float
    tie_pair_rate: float
    malformed_share: float
    cut_off_share: float
    repeating_share: float
    copied_share: float
    entropy: float | None
    replies: ReplyStatistics | None
    tokens: float
    seconds: float
    metrics: Mapping[str, Any]

    @property
    def loss(self) -> float | None:
        """The loss of a step without rollouts; `None` for steps with rollouts.

        Of demonstrations it is the mean negative log-likelihood of a token, of preferences DPO's.
        """
        losses = [self.metrics[name] for name in _LOSSES if name in self.metrics]
        return float(losses[0]) if losses else None

    @property
    def dead_share(self) -> float:
        """Share of groups without a signal.

        Our own loop counts how many groups were live, which depends on what is compared: turns may
        differ where returns tie.
        """
        live, drawn = self.metrics.get("groups/live"), self.metrics.get("groups/drawn")
        return self.uniform_rate if live is None or not drawn else 1.0 - live / drawn

    @property
    def commonest(self) -> str:
        """The reply given most often, shortened."""
        return "" if self.replies is None else self.replies.commonest

    @property
    def commonest_share(self) -> float | None:
        """Share of the commonest reply, over Tasks that differ; `None` if that is not known."""
        replies = self.replies
        return None if replies is None or replies.tasks < 2 else replies.commonest_share

    @property
    def one_reply(self) -> bool:
        """Whether the policy gave one reply to nearly everything."""
        return (self.commonest_share or 0.0) >= _ONE_REPLY


class StepLog:
    """The completed steps in a run's `metrics.jsonl`, read as the file grows.

    A step done again after a resume counts once, the last time. A line that a killed process left
    half written is passed over.

    Args:
        path: the file; it need not exist yet.
        rollouts: the run's rollouts; `None` to leave the replies out.
    """

    def __init__(self, path: Path, rollouts: RolloutLog | None) -> None:
        self._path = path
        self._rollouts = rollouts
        self._position = 0
        self._rows: dict[int, StepRow] = {}

    @property
    def rows(self) -> list[StepRow]:
        """Completed steps read so far, in order."""
        return [self._rows[step] for step in sorted(self._rows)]

    def current(self) -> list[StepRow]:
        """Read what is new and return all completed steps, in order."""
        self.poll()
        return self.rows

    def poll(self) -> list[StepRow]:
        """Read what is new and return its steps."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._position)
            new = file.read()
        complete = new.rpartition(b"\n")[0]
        if not complete:
            return []
        self._position += len(complete) + 1
        lines = complete.split(b"\n")
        rows = [row for line in lines if (row := _row(line, self._rollouts)) is not None]
        self._rows.update((row.step, row) for row in rows)
        return rows


def _row(line: bytes, rollouts: RolloutLog | None) -> StepRow | None:
    """Read one line; `None` if it is no completed step of the trainer."""
    try:
        metrics = json.loads(line)
    except ValueError:
        return None
    if not isinstance(metrics, dict) or "step" not in metrics:
        return None
    if not {"env/all/reward/total", *_LOSSES} & set(metrics):
        return None
    step, read = int(metrics["step"]), _number(metrics, "env/all/total_ob_tokens")
    played = () if rollouts is None else rollouts.read(train_segment(step))
    return StepRow(
        step=step,
        reward=_number(metrics, "env/all/reward/total"),
        uniform_rate=_number(metrics, "env/all/reward_uniform_group_rate"),
        tie_pair_rate=_number(metrics, "env/all/reward_tie_pair_rate"),
        malformed_share=_number(metrics, "env/all/malformed"),
        cut_off_share=_number(metrics, "env/all/cut_off"),
        repeating_share=_number(metrics, "env/all/repeating"),
        copied_share=_number(metrics, "env/all/copied"),
        entropy=_number(metrics, "optim/entropy") if "optim/entropy" in metrics else None,
        replies=reply_statistics(played),
        tokens=read
        + _number(metrics, "env/all/total_ac_tokens")
        + _number(metrics, "train/tokens"),
        seconds=_number(metrics, "time/total"),
        metrics=metrics,
    )


def named(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Return the named figures of a step, as far as it has them.

    `tokens_per_second` counts the tokens that its rollouts read and sampled, or those of its
    demonstrations, over the whole step: sampling, training and saving.
    """
    found = {name: metrics[key] for name, key in NAMED.items() if key in metrics}
    tokens, seconds = sum(metrics.get(key, 0) for key in _TOKENS), metrics.get("time/total", 0.0)
    return {**found, **({"tokens_per_second": tokens / seconds} if tokens and seconds else {})}


def _number(metrics: Mapping[str, Any], name: str) -> float:
    value = metrics.get(name, 0.0)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0
