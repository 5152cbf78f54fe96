"""Requirements on a certificate: checks, accepted findings, changes since a version."""

import math
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from tokengym.agents.certify.certificate import Certificate
from tokengym.agents.certify.finding import CHECKS, Finding, Severity, Status
from tokengym.agents.settings import read_plain
from tokengym.envs.core.errors import DataError, OptionError

_CLASSES = {severity.plural: severity for severity in Severity}
_BOUNDS = {">=": "least", "<=": "most"}
_REQUIREMENT = re.compile(r"([a-z_.]+)(?:(<=|>=)(-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)))?", re.ASCII)


@dataclass(frozen=True)
class Waiver:
    """A failure that is accepted.

    Attributes:
        check: id of the check.
        reason: why it is accepted.
        target: pattern of the targets that it holds for, as in file names.
    """

    check: str
    reason: str
    target: str = "*"


def read_waivers(path: Path) -> list[Waiver]:
    """Read a TOML file of `[[waiver]]` tables with `check`, `reason` and perhaps `target`.

    Raises:
        DataError: if it is damaged, or a waiver has no reason or names no check.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8-sig")).get("waiver", [])
        waivers = [read_plain(Waiver, table) for table in tables]
    except (ValueError, OptionError) as error:
        raise DataError(f"{path}: {error}") from error
    for waiver in waivers:
        if waiver.check not in CHECKS or not waiver.reason.strip():
            raise DataError(f"{path}: a waiver names a check and a reason, got {waiver}")
    return waivers


def waive(certificate: Certificate, waivers: Iterable[Waiver]) -> Certificate:
    """Return the certificate with the reasons of accepted failures."""
    named = [waiver for waiver in waivers if fnmatchcase(certificate.target, waiver.target)]
    reasons = {waiver.check: waiver.reason for waiver in named}
    findings = (
        replace(one, waived=reasons.get(one.check, "")) if one.status is Status.FAILED else one
        for one in certificate.findings
    )
    return replace(certificate, findings=tuple(findings))


@dataclass(frozen=True)
class Requirement:
    """Condition for an exit status of 0.

    Attributes:
        text: as it was typed: `defects`, `risks`, `properties`, the id of a check, or an id with a
            bound of what it measures, `statistical.training_signal<=0.2`.
        name: a class of severity or the id of a check.
        least: smallest estimate.
        most: largest estimate.
    """

    text: str
    name: str
    least: float = -math.inf
    most: float = math.inf

    @classmethod
    def parse(cls, text: str) -> "Requirement":
        """Read a requirement.

        Raises:
            OptionError: if it is none.
        """
        match = _REQUIREMENT.fullmatch(text)
        if match is None or not (match[1] in CHECKS or (match[1] in _CLASSES and not match[2])):
            takes = f"{list(_CLASSES)}, a check's id, or an id with <= or >= and a number"
            raise OptionError(f"--require takes {takes}, got {text!r}")
        name, sign, bound = match.groups()
        return cls(text, name, **({_BOUNDS[sign]: float(bound)} if sign else {}))

    def unmet(self, certificate: Certificate) -> list[Finding]:
        """Return the findings that break it: failures, and of a named check what was not told.

        Accepted failures do not break it, nor what is not applicable.

        Raises:
            OptionError: if the check that it names was not run.
        """
        if self.name in _CLASSES:
            return certificate.failed(_CLASSES[self.name])
        found = [finding for finding in certificate.findings if finding.check == self.name]
        if not found:
            raise OptionError(f"--require {self.text}: {self.name} was not run (--only)")
        return [finding for finding in found if not finding.waived and self._breaks(finding)]

    def _breaks(self, finding: Finding) -> bool:
        if finding.status in (Status.INAPPLICABLE, Status.UNTOLD):
            return finding.status is Status.UNTOLD
        if math.inf == self.most == -self.least:
            return finding.counts
        value = math.nan if finding.estimate is None else finding.estimate.value
        return not self.least <= value <= self.most


def changes(old: Certificate, new: Certificate) -> Sequence[tuple[str, str, str, str]]:
    """Return what differs between two certificates of a target.

    Estimates count as different where their intervals do not overlap.

    Returns:
        rows of check, old result, new result, and what was found now.
    """
    earlier = {finding.check: finding for finding in old.findings}
    later = {finding.check: finding for finding in new.findings}
    rows = []
    for name in {**earlier, **later}:
        before, after = earlier.get(name), later.get(name)
        if before is None or after is None or _differ(before, after):
            rows.append((name, _result(before), _result(after), after.found if after else ""))
    return rows


def _differ(before: Finding, after: Finding) -> bool:
    if before.status is not after.status or before.severity is not after.severity:
        return True
    a, b = before.estimate, after.estimate
    return a is not None and b is not None and (a.high < b.low or b.high < a.low)


def _result(finding: Finding | None) -> str:
    if finding is None:
        return "not run"
    estimate = "" if finding.estimate is None else f" ({finding.estimate.value:.3f})"
    return f"{finding.status}{estimate}"
