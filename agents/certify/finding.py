"""A Check, and the Finding that it ends in."""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np

from tokengym.agents.certify.bench import Bench, Inapplicable, Untold, unlikely
from tokengym.agents.certify.source import SourceFailure
from tokengym.rewards.estimates import Estimate

ROOTS = (
    *("runtime.seed_control", "semantic.verifier_determinism"),
    *("runtime.episode_determinism", "runtime.episode_isolation"),
)
"""Checks on which all rest that compare what was played with a reference or with a repetition."""
CHANCE = ("semantic.verifier_determinism", "runtime.episode_isolation")
"""Checks that show rewards to depend on more than the reply, on which all rest that judge them."""
SCORED = ("fair", "not gamed", "teaches")
RESTS = " failed, on which this rests"
GROUPS = ("sound", "fair", "not gamed", "not leaked", "teaches")
"""Groups of checks, in the order in which they run."""


class Severity(StrEnum):
    """Consequence of a failed check."""

    DEFECT = "defect"
    """Something is wrong: training on it goes astray or stops."""
    RISK = "risk"
    """Reward can be had without solving the Task, or held-out Tasks are not held out."""
    FRAGILE = "fragile"
    """It breaks, but only on replies that a model hardly gives."""
    PROPERTY = "property"
    """Worth knowing; whether it matters depends on what the environment is for."""

    @property
    def plural(self) -> str:
        """Several of them, as `--require` names the class."""
        return {"property": "properties", "fragile": "fragile"}.get(self, f"{self}s")


class Status(StrEnum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "failed"
    INAPPLICABLE = "not applicable"
    UNTOLD = "could not be told"


@dataclass(frozen=True)
class CheckVerdict:
    """Result of one check.

    Attributes:
        passed: whether the rule holds.
        found: what came out.
        estimate: the rate or mean that was measured, if one was.
        example: a Task and a reply that show a failure.
        severity: of this failure, if it is not that of the check.
        played_by: the check that played the example, if another one did.
    """

    passed: bool
    found: str
    estimate: Estimate | None = None
    example: str = ""
    severity: Severity | None = None
    played_by: str = ""


@dataclass(frozen=True)
class Finding:
    """The result of one check of one source, as the certificate holds it.

    Attributes:
        check: id of the check.
        group: one of `GROUPS`.
        rule: what should be true.
        severity: what it means if it is not.
        status: how the check ended.
        found: what came out, or why nothing did.
        estimate: the rate or mean with its interval, if one was measured.
        example: a Task and a reply that show it.
        reproduce: the command that runs this check alone.
        waived: why a failure is accepted; empty if it is not.
        episodes: how many it played.
        seconds: of processor time that it took, and of waiting.
    """

    check: str
    group: str
    rule: str
    severity: Severity
    status: Status
    found: str = ""
    estimate: Estimate | None = None
    example: str = ""
    reproduce: str = ""
    waived: str = ""
    episodes: int = 0
    seconds: tuple[float, float] = field(default=(0.0, 0.0), compare=False)

    @property
    def counts(self) -> bool:
        """Whether the check failed and nobody accepted that."""
        return self.status is Status.FAILED and not self.waived


@dataclass(frozen=True)
class Check:
    """One check of every source.

    Attributes:
        name: its id: OpenEnv's where that has one.
        group: see `Finding`.
        severity: what a failure means.
        needs: names of `Bench.lacks` without which it is not applicable.
        rule: what should be true, a sentence.
        run: does it.
        last: whether it judges what all others have played.
        after: checks whose failure is the cause of this one's: it is not judged then.
    """

    name: str
    group: str
    severity: Severity
    needs: tuple[str, ...]
    rule: str
    run: Callable[[Bench], CheckVerdict]
    last: bool = False
    after: tuple[str, ...] = ()

    def cause(self, bench: Bench) -> str:
        """Return the failed checks that may have caused a failure of this one."""
        if {"references", "claims", "repeats"} & {*self.needs}:
            roots: tuple[str, ...] = ROOTS
        else:
            roots = CHANCE if self.group in SCORED or self.name == "sound.global_random" else ()
        found = dict.fromkeys(name for name in (*roots, *self.after) if name in bench.broken)
        return "" if self.name in found else " and ".join(found)

    def unbegun(self, bench: Bench) -> Finding:
        """Return the finding that nothing was done yet."""
        said = self.name, self.group, self.rule, self.severity, Status.UNTOLD
        again = bench.command(self.name)
        return Finding(*said, found="the run was stopped before", reproduce=again)

    def find(self, bench: Bench) -> Finding:
        """Run the check; whatever the environment does, it ends in a finding."""
        bench.begin(self.name)
        found = self._found(bench)
        return replace(found, episodes=bench.played, seconds=bench.taken())

    def _found(self, bench: Bench) -> Finding:
        found = replace(self.unbegun(bench), found="")
        try:
            if cause := self.cause(bench):
                raise Untold(cause + RESTS)
            for missing in filter(None, map(bench.lacks, self.needs)):
                raise Inapplicable(missing)
            with np.errstate(over="ignore", invalid="ignore"):
                verdict = self.run(bench)
            if not all(map(math.isfinite, verdict.estimate or ())):
                raise OverflowError
        except Inapplicable as reason:
            return replace(found, status=Status.INAPPLICABLE, found=str(reason))
        except Untold as reason:
            return replace(found, found=str(reason))
        except OverflowError:
            return replace(found, found="returns are too large for their mean and its interval")
        except SourceFailure as failure:
            known, words = bench.failures, str(failure)
            if words in known:  # one defect, not one of every check
                return replace(found, found=words)
            known.add(words)
            severity = Severity.FRAGILE if unlikely(failure.reply) else Severity.DEFECT
            return replace(found, severity=severity, status=Status.FAILED, found=words)
        if not verdict.passed and self.name != "runtime.episode_isolation":
            bench.broken.append(self.name)
        return replace(
            found,
            severity=self.severity if verdict.passed else verdict.severity or self.severity,
            reproduce=bench.command(self.name, verdict.played_by),
            status=Status.PASSED if verdict.passed else Status.FAILED,
            found=verdict.found,
            estimate=verdict.estimate,
            example="" if verdict.passed else verdict.example,
        )


CHECKS: dict[str, Check] = {}
"""All checks by id, once `tokengym.agents.certify.checks` was imported."""


def check(
    name: str,
    group: str,
    severity: Severity,
    *needs: str,
    last: bool = False,
    after: tuple[str, ...] = (),
) -> Callable[[Callable[[Bench], CheckVerdict]], Check]:
    """Make a Check of a function; the first line of its docstring is the rule. See `Check`."""

    def made(run: Callable[[Bench], CheckVerdict]) -> Check:
        rule = (inspect.getdoc(run) or "").partition("\n")[0]
        return CHECKS.setdefault(name, Check(name, group, severity, needs, rule, run, last, after))

    return made
