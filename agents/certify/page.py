"""The page of a certificate, on a terminal and as HTML, and the folder that holds it."""

from pathlib import Path

from tokengym.agents.analysis.report import Report, Table, Text
from tokengym.agents.certify.certificate import Certificate
from tokengym.agents.certify.finding import GROUPS, Finding, Severity, Status
from tokengym.atomic_write import write_whole
from tokengym.rewards.estimates import Estimate


def save(certificate: Certificate, folder: Path) -> None:
    """Write `certificate.json` and the page `certificate.html` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "certificate.json", certificate.to_json().encode())
    certificate_report(certificate).write(folder / "certificate.html")


def certificate_report(certificate: Certificate) -> Report:
    """Lay a certificate out."""
    counts = {severity: len(certificate.failed(severity)) for severity in Severity}
    counted = ", ".join(f"{count} {severity.plural}" for severity, count in counts.items())
    by_status = [
        f"{sum(found.status is status for found in certificate.findings)} {status}"
        for status in Status
    ]
    waived = [found for found in certificate.findings if found.waived]
    lines = [f"{counted} to look at; of {len(certificate.findings)} checks {', '.join(by_status)}."]
    lines += [
        f"{severity} {found.check}: {found.found}"
        for severity in Severity
        for found in certificate.failed(severity)
    ]
    if certificate.network:
        lines.append("The environment's process could reach the network.")
    lines += [f"Accepted: {found.check}, because {found.waived}" for found in waived]
    groups = (
        (group, [found for found in certificate.findings if found.group == group])
        for group in GROUPS
    )
    parts = [_table(group, findings) for group, findings in groups if findings]
    details = "\n\n".join(map(_details, certificate.findings))
    return Report(
        f"{certificate.target}: {certificate.package}",
        lines,
        (*parts, Text(details, "What was done, and how to repeat it")),
        facts=[(severity.plural, str(count)) for severity, count in counts.items()],
    )


def _table(group: str, findings: list[Finding]) -> Table:
    rows = [
        ((found.check, f"{found.rule} {found.found}"), _status(found), _shown(found.estimate))
        for found in findings
    ]
    return Table(("check", "result", "measured"), rows, title=group)


def _status(found: Finding) -> str:
    if found.status is not Status.FAILED:
        return str(found.status)
    return f"{found.severity} (accepted)" if found.waived else str(found.severity)


def _shown(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    if estimate.low == estimate.high:
        return f"{estimate.value:.3f}"
    return f"{estimate.value:.3f} ({estimate.low:.3f} to {estimate.high:.3f})"


def _details(found: Finding) -> str:
    said = {
        "rule": found.rule,
        "done": found.done,
        "found": found.found,
        "how sure": found.sure,
        "example": found.example,
        "accepted": found.waived,
        "again": found.reproduce,
    }
    lines = [f"  {name}: {text}" for name, text in said.items() if text]
    return "\n".join([f"{found.check}: {_status(found)}", *lines])
