"""A certificate for people: on a terminal, on a page, in the summary of a CI's step."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tokengym.agents.certify.certificate import Certificate
from tokengym.agents.certify.finding import GROUPS, Finding, Severity, Status
from tokengym.agents.certify.policy import changes
from tokengym.agents.reports.markdown import markdown_table
from tokengym.agents.reports.report import Report, Table, Text
from tokengym.atomic_write import write_whole
from tokengym.envs.core.display import shorten


def save(certificate: Certificate, folder: Path) -> None:
    """Write `certificate.json` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "certificate.json", certificate.to_json().encode())


def certificate_report(certificate: Certificate) -> Report:
    """Lay a certificate out."""
    findings = certificate.findings
    failed = {severity: certificate.failed(severity) for severity in Severity}
    counted = ", ".join(f"{len(finding)} {severity.plural}" for severity, finding in failed.items())
    statuses = Counter(finding.status for finding in findings)
    ended = ", ".join(f"{statuses[status]} {status}" for status in Status)
    lines = [f"{counted} to look at; of {len(findings)} checks {ended}."]
    if not certificate.finished:
        lines.append("The run was stopped before all checks were done.")
    if certificate.kind:
        guessed = "" if certificate.settings.kind else ", as its rewards look"
        lines.append(f"Judged as {certificate.kind}{guessed} (--kind).")
    for severity, several in failed.items():
        lines += [f"{severity} {finding.check}: {finding.found}" for finding in several]
    if certificate.network:
        lines.append("The environment's process could reach the network.")
    accepted = (finding for finding in findings if finding.waived)
    lines += [f"Accepted: {finding.check}, because {finding.waived}" for finding in accepted]
    groups = [
        (group, [finding for finding in findings if finding.group == group]) for group in GROUPS
    ]
    details = Text("\n\n".join(map(_details, findings)), "Checks in detail")
    tables = (_table(group, several) for group, several in groups if several)
    return Report(f"{certificate.target}: {certificate.package}", lines, (*tables, details))


def step_summary(
    certificate: Certificate,
    required: Sequence[str],
    unmet: Sequence[Finding],
    old: Certificate | None = None,
) -> str:
    """Return Markdown for the summary of a CI's step.

    Args:
        certificate: the findings.
        required: what must hold.
        unmet: the findings that break it.
        old: an earlier certificate of the target, to show what changed.
    """
    findings = certificate.findings
    told = sum(finding.status in (Status.PASSED, Status.FAILED) for finding in findings)
    apply = sum(finding.status is not Status.INAPPLICABLE for finding in findings)
    rows = [
        (
            f"`{finding.check}`" + " **breaks**" * (finding in unmet),
            _status(finding) + f": {finding.waived}" * bool(finding.waived),
            shorten(finding.found, 300),
            f"`{finding.reproduce}`",
        )
        for finding in findings
        if finding.status is Status.FAILED or finding in unmet
    ]
    parts = [
        f"### {certificate.target}: {'fails' if unmet else 'passes'}",
        f"{certificate.package}; required: {', '.join(required)}; {told} of the {apply} checks "
        "that apply were finished.",
        *_markdown(("check", "result", "found", "again"), rows),
        *_markdown(("changed", "before", "now", "found"), changes(old, certificate) if old else ()),
    ]
    return "\n\n".join([*parts, ""])


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    cells = [[re.sub(r"([|<>])", r"\\\1", " ".join(cell.split())) for cell in row] for row in rows]
    return [markdown_table(header, cells)] if cells else []


def _table(group: str, findings: list[Finding]) -> Table:
    named = ((finding.check, f"{finding.rule} {finding.found}") for finding in findings)
    told = ((_status(finding), str(finding.estimate or "")) for finding in findings)
    rows = [(name, *cells) for name, cells in zip(named, told, strict=True)]
    return Table(("check", "result", "measured"), rows, title=group)


def _status(finding: Finding) -> str:
    if finding.status is not Status.FAILED:
        return str(finding.status)
    return f"{finding.severity} (accepted)" if finding.waived else str(finding.severity)


def _details(finding: Finding) -> str:
    work, waiting = finding.seconds
    took = f"{finding.episodes} episodes, {work:g} s of work, {waiting:g} s of waiting"
    facts = {"rule": finding.rule, "found": finding.found, "took": took}
    facts |= {"example": finding.example, "accepted": finding.waived, "again": finding.reproduce}
    lines = [f"  {name}: {text}" for name, text in facts.items() if text]
    return "\n".join([f"{finding.check}: {_status(finding)}", *lines])
