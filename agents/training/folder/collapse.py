"""Collapse: a run that has stopped learning, with its cause and what to try."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from tokengym.agents.training.folder.monitor import StepRow

_MOSTLY = 0.8
"""Share of groups that tie from which steps with a known cause, or a low return, teach nothing."""
_CAUSE = 0.5
"""Share of replies from which what ails them is the cause."""


@dataclass(frozen=True)
class Collapse:
    """A run that has lost its signal.

    Attributes:
        since: the first step without signal.
        reason: what was lost, with its figures.
        advice: what to try.
    """

    since: int
    reason: str
    advice: str


@dataclass(frozen=True)
class _Cause:
    """A fault of replies.

    Attributes:
        share: the share of a step's replies that it ails.
        reason: names it; the share takes the place of `{}`.
        advice: what to try.
    """

    share: Callable[[StepRow], float]
    reason: str
    advice: str


_CAUSES = (
    _Cause(
        lambda row: row.repeating_share,
        "{} of the replies repeat themselves until the token limit",
        "teach the form first with --warm-start; if it was known before, lower --learning-rate or "
        "stay near the start with --kl",
    ),
    _Cause(
        lambda row: row.cut_off_share,
        "{} of the replies were cut off by the token limit",
        "raise --max-tokens, or teach the form first with --warm-start",
    ),
    _Cause(
        lambda row: row.copied_share,
        "{} of the replies copy a line of the prompt",
        "teach the task first with --warm-start, stay near the start with --kl, or raise "
        "--temperature",
    ),
    _Cause(
        lambda row: row.malformed_share,
        "{} of the replies are malformed",
        "teach the form first with --warm-start; if it was known before, lower --learning-rate or "
        "stay near the start with --kl",
    ),
    _Cause(
        lambda row: 0.0 if row.commonest_share is None else row.commonest_share,
        "{} of the replies are the same, whatever the Task",
        "lower --learning-rate, stay near the start with --kl, or raise --temperature",
    ),
)


def find_collapse(
    rows: Sequence[StepRow], patience: int, blind: float | None = None
) -> Collapse | None:
    """Return the collapse that the last `patience` steps show, or `None`.

    A step is without signal if the returns of all its groups tie; if most do and most replies
    suffer from one known cause; or if the policy gives one reply to everything. It is a collapse
    as well if most groups of these steps tie and they earn less than a policy that ignores the
    Task: near the optimum groups tie too, but not there.

    Args:
        rows: completed steps, in order.
        patience: steps in a row; with 0 nothing is a collapse.
        blind: return of the best policy that ignores the Task; `None` if it cannot be compared.
    """
    last = rows[-patience:] if patience else []
    if len(last) < max(patience, 1):
        return None
    dead, earned = fmean(row.dead_share for row in last), fmean(row.reward for row in last)
    signal = not all(map(_without_signal, last))
    if signal and (blind is None or dead < _MOSTLY or earned >= blind):
        return None
    since = last[0].step
    for row in reversed(rows[:-patience]):
        if not _without_signal(row):
            break
        since = row.step
    newest = rows[-1]
    cause = _cause(newest)
    ties = f"{newest.dead_share:.0%} of the groups tie"
    if cause is not None:
        reason = cause.reason.format(f"{cause.share(newest):.0%}")
        reply = newest.commonest if cause is _CAUSES[-1] or newest.one_reply else ""
        quoted = f" ({reply!r})" if reply else ""
        return Collapse(since, f"{reason}{quoted}; {ties}", cause.advice)
    if not signal:
        return Collapse(
            since,
            f"{ties}: there is no gradient left",
            "if the return is not good yet: a larger --group-size, --filter resample, a lower "
            "--learning-rate or a higher --temperature",
        )
    return Collapse(
        since,
        f"{dead:.0%} of the groups tie, and their return ({earned:.3f}) is below that of the best "
        f"policy that ignores the Task ({blind:.3f})",
        "a lower --learning-rate, --kl to stay near the start, or a higher --temperature",
    )


def _without_signal(row: StepRow) -> bool:
    if row.dead_share >= 1.0 or row.one_reply:
        return True
    return row.dead_share >= _MOSTLY and _cause(row) is not None


def _cause(row: StepRow) -> _Cause | None:
    """Return the first fault, in order, that most replies of a step share."""
    return next((cause for cause in _CAUSES if cause.share(row) >= _CAUSE), None)
