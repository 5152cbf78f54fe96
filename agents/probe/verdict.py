"""Verdicts: what a trainer was found to do, in a sentence, with the size of the harm."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from tokengym.envs.core.errors import OptionError


class VerdictKind(StrEnum):
    """Possible verdicts, the one that deserves most attention first."""

    WRONG = "wrong"
    SUSPECT = "suspect"
    UNKNOWN = "cannot say"
    CHOICE = "biased by choice"
    FOLLOWS = "follows"


@dataclass(frozen=True)
class ProbeVerdict:
    """Verdict on one update, or on several.

    Attributes:
        kind: the kind.
        sentence: what the trainer does.
        name: the fault's or the hypothesis's short name; empty where none was found.
        off: share of the update that is not as it should be.
        notes: what else is worth knowing.
        biases: short names of what was chosen, for `--accept`; only of `CHOICE`.
    """

    kind: VerdictKind
    sentence: str
    name: str = ""
    off: float = 0.0
    notes: tuple[str, ...] = ()
    biases: tuple[str, ...] = ()

    @property
    def accepted_as(self) -> set[str]:
        """Names that an acceptance must list: the biases, or the fault."""
        return {*self.biases} or {self.name}

    def __str__(self) -> str:
        """The verdict as a sentence."""
        chosen = f"{', '.join(self.biases)}: " if self.biases else ""
        return "; ".join((f"{self.kind}: {chosen}{self.sentence}", *self.notes))


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
        text = f"seeds differ: {first.sentence} / {second.sentence}"
        return ProbeVerdict(VerdictKind.UNKNOWN, text)
    notes = (*first.notes, f"two seeds agree; to see it again: {command}")
    return replace(first, off=max(first.off, second.off), notes=notes)


def worst(verdicts: Sequence[ProbeVerdict]) -> ProbeVerdict:
    """Return the verdict of several updates that deserves most attention."""
    order = list(VerdictKind)
    return min(verdicts, key=lambda verdict: (order.index(verdict.kind), -verdict.off))


def exit_status(verdicts: Iterable[ProbeVerdict], accept: Sequence[str] = ()) -> int:
    """Return 0 if all follow or are accepted, 1 if one is wrong, 3 if one is none of these.

    Args:
        verdicts: of one command.
        accept: each a kind and the names that it may have, as `biased by choice: length`.

    Raises:
        OptionError: if one of `accept` names nothing.
    """
    allowed: dict[str, set[str]] = {VerdictKind.CHOICE: set(), VerdictKind.WRONG: set()}
    for text in accept:
        kind, _, names = text.partition(": ")
        if kind not in allowed or not names.strip():
            takes = "'biased by choice: NAME' or 'wrong: NAME'"
            raise OptionError(f"--accept takes {takes}, got {text!r}")
        allowed[kind] |= {name.strip() for name in names.split(",")}
    several = (one for one in verdicts if one.kind is not VerdictKind.FOLLOWS)
    left = {one.kind for one in several if not one.accepted_as <= allowed.get(one.kind, set())}
    return 1 if VerdictKind.WRONG in left else 3 if left else 0
