"""Verdicts: what a trainer was found to do, in a sentence, with the size of the harm."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum


class VerdictKind(StrEnum):
    """What a verdict says."""

    FOLLOWS = "follows"
    CHOICE = "biased by choice"
    WRONG = "wrong"
    SUSPECT = "suspect"
    UNKNOWN = "cannot say"


@dataclass(frozen=True)
class ProbeVerdict:
    """What was found on one update, or on several of them.

    Attributes:
        kind: the kind.
        sentence: what the trainer does.
        name: the fault's or the hypothesis's short name; empty where none was found.
        off: share of the update that is not as it should be.
        notes: what else is worth knowing.
    """

    kind: VerdictKind
    sentence: str
    name: str = ""
    off: float = 0.0
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The verdict as a sentence."""
        return "; ".join((f"{self.kind}: {self.sentence}", *self.notes))


def percent(share: float) -> str:
    """Return a share in percent, with two significant digits; what is less than rounding is not."""
    if share < 1e-4:
        return "under 0.01 %"
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"


def confirmed(first: ProbeVerdict, second: ProbeVerdict | None, command: str) -> ProbeVerdict:
    """Return a verdict that a second seed has confirmed, or could not.

    Args:
        first: of one seed.
        second: of another one; `None` if there is none.
        command: reproduces it.
    """
    if first.kind is not VerdictKind.WRONG:
        return first
    if second is None:
        advice = f"one seed only; to confirm it: {command}"
        return replace(first, kind=VerdictKind.SUSPECT, notes=(*first.notes, advice))
    if second.kind is not VerdictKind.WRONG:
        return ProbeVerdict(
            VerdictKind.UNKNOWN, f"seeds differ: {first.sentence} / {second.sentence}"
        )
    notes = (*first.notes, f"two seeds agree; to see it again: {command}")
    return replace(first, off=max(first.off, second.off), notes=notes)


def worst(verdicts: Sequence[ProbeVerdict]) -> ProbeVerdict:
    """Return the verdict of several updates that deserves most attention."""
    order = (
        VerdictKind.WRONG,
        VerdictKind.SUSPECT,
        VerdictKind.UNKNOWN,
        VerdictKind.CHOICE,
        VerdictKind.FOLLOWS,
    )
    return min(verdicts, key=lambda verdict: (order.index(verdict.kind), -verdict.off))
