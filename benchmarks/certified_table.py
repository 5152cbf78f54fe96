"""The public table: what `tokengym certify` found in environments of several packages.

    tokengym certify --targets targets.txt --out certificates --resume --tasks 8 --strategies 30 \\
        --replies 600 --drawn 40 --patience 300 --seconds 60
    python -m benchmarks.certified_table certificates --markdown docs/certified.md

The first command can be interrupted and typed again. The second writes the tables of the page, and
beside it the findings in full, `certified.jsonl`, a row for each environment: rows of environments
that have a certificate are replaced, the others stay. Given that file instead of the folder, it
writes the tables alone. `--draw 30` prints that many findings of the two upper classes, drawn at
random, with the commands that repeat them.
"""

import argparse
import json
import random
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.pages import write_block
from tokengym.agents.certify.bench import CertifySettings
from tokengym.agents.certify.certificate import Certificate, read_certificate
from tokengym.agents.certify.checks import CHECKS
from tokengym.agents.certify.finding import Severity, Status
from tokengym.agents.reports.markdown import markdown_table
from tokengym.agents.settings import typed_words
from tokengym.rewards.estimates import Estimate

SUMMARY, TEACHES, EACH, COMMON = (
    f"certified_table.py, {part}" for part in ("summary", "teaches", "each", "common")
)
TAUGHT = ("teaches.wrong_replies", "statistical.training_signal")
"""Checks whose estimate is the share of groups without an advantage."""

_OF_REPLIES = ("reference", "best", "declared", "reply_template")
"""Options that say what a right reply is and earns."""

UNTOLD = str(Status.UNTOLD)

Row = Mapping[str, Any]
"""A row of the data file, see `row_of`."""


def row_of(certificate: Certificate) -> dict[str, Any]:
    """Return what the data file holds of an environment: all of the certificate but what passed."""
    data = json.loads(certificate.to_json())
    failed = [found for found in data["findings"] if found["status"] == Status.FAILED]
    shown = ("check", "severity", "found", "estimate", "example")
    statuses = defaultdict(list)
    for found in data["findings"]:
        statuses[found["status"]].append(found["check"])
    return {
        **{name: data[name] for name in ("target", "options", "package", "tokengym", "date")},
        **{name: data[name] for name in ("network", "turns")},
        "patience": data["settings"]["patience"],
        "failed": [{name: found[name] for name in shown} for found in failed],
        "without advantage": {check: found.value for check, found in without(certificate).items()},
        **{str(status): statuses[status] for status in Status if status != Status.FAILED},
    }


def of_known_checks(row: Row) -> Row:
    """Return a row without checks that certify has no longer."""
    ended = [str(status) for status in Status if status is not Status.FAILED]
    kept = {name: [check for check in row[name] if check in CHECKS] for name in ended}
    return {**row, "failed": [one for one in row["failed"] if one["check"] in CHECKS], **kept}


def without(certificate: Certificate) -> dict[str, Estimate]:
    """Return the shares of groups without an advantage, by the check that could tell them."""
    found = {
        finding.check: finding.estimate
        for finding in certificate.findings
        if finding.check in TAUGHT
    }
    return {check: share for check, share in found.items() if share is not None}


def command(target: str, options: Mapping[str, Any]) -> str:
    """Return the words that name an environment."""
    said = [target]
    for name, value in options.items():
        text = value if isinstance(value, str) else json.dumps(value)
        said += ["--option", shlex.quote(f"{name}={text}")]
    return " ".join(said)


def renewed(old: Iterable[Row], new: Iterable[Row]) -> list[Row]:
    """Return rows in order of their names, of those of the same environment the new one."""
    return [row for _, row in sorted({_whole(row): row for row in (*old, *new)}.items())]


def _whole(row: Row) -> str:
    return command(row["target"], row["options"])


def finished(row: Row) -> tuple[int, int]:
    """Return how many checks gave a result, and how many apply."""
    told = len(row["failed"]) + len(row["passed"])
    return told, told + len(row[UNTOLD])


def _span(counts: Iterable[int]) -> str:
    """Return the least and the greatest of some numbers, or the only one."""
    return " to ".join(map(str, dict.fromkeys(f(counts) for f in (min, max))))


def summary(rows: Iterable[Row]) -> str:
    """Return a row for each package: how it was certified, and how many have which findings."""
    header = (
        *("package", "by Tokengym", "date", "patience, s", "environments", "of several turns"),
        *(f"with {s.plural}" for s in Severity),
        "checks finished",
    )
    by_package = defaultdict(list)
    for row in rows:
        by_package[row["package"]].append(row)
    cells, totals = [], Counter[str]()
    for package, several in sorted(by_package.items()):
        counts = {
            "environments": len(several),
            "of several turns": sum(row["turns"] > 1 for row in several),
            **{f"with {s.plural}": sum(bool(_failed(row, s)) for row in several) for s in Severity},
        }
        told, apply = (sum(column) for column in zip(*map(finished, several), strict=True))
        totals.update({**counts, "told": told, "apply": apply})
        dates = {row["date"][:10] for row in several}
        made = " to ".join(sorted({min(dates), max(dates)}))
        by = ", ".join(sorted({row["tokengym"] for row in several}))
        patience = _span([round(row["patience"]) for row in several])
        whole = f"{told:,} of {apply:,}"
        cells.append((package, by, made, patience, *map(str, counts.values()), whole))
    told, apply = totals.pop("told"), totals.pop("apply")
    total = ("all", "", "", "", *map(str, totals.values()), f"{told:,} of {apply:,}")
    return markdown_table(header, [*cells, total])


def _failed(row: Row, severity: Severity) -> list[str]:
    return [found["check"] for found in row["failed"] if found["severity"] == severity]


def teaches(rows: Iterable[Row]) -> str:
    """Return a row for each package: the mean share of groups that teach nothing, by who plays.

    There is no mean where a check was not finished on an environment that it applies to.
    """
    by_package = defaultdict(list)
    for row in rows:
        by_package[row["package"]].append(row)
    cells = [
        (package, *(_mean_share(several, check) for check in TAUGHT))
        for package, several in sorted(by_package.items())
    ]
    return markdown_table(("package", "four wrong replies", "eight noisy solutions"), cells)


def _mean_share(rows: Sequence[Row], check: str) -> str:
    """Return a check's mean share over some environments, or on how many it was not finished."""
    if missing := sum(check in row[UNTOLD] for row in rows):
        return f"not finished on {missing} of {len(rows)}"
    known = [row["without advantage"].get(check) for row in rows]
    shares = [share for share in known if share is not None]
    return f"{fmean(shares):.2f} ({len(shares)} of {len(rows)})" if shares else ""


def common(rows: Sequence[Row]) -> str:
    """Return how many environments fail each check, of those on which it gave a result."""
    failed = Counter(found["check"] for row in rows for found in row["failed"])
    told = failed + Counter(check for row in rows for check in row["passed"])
    untold = Counter(check for row in rows for check in row[UNTOLD])
    checks = sorted({**told, **untold}, key=lambda check: (-failed[check], -told[check], check))
    cells = [
        (f"`{check}`", str(failed[check]), str(told[check]), str(untold[check])) for check in checks
    ]
    return markdown_table(("check", "failed by", "of", "could not be told for"), cells)


def each(rows: Iterable[Row]) -> str:
    """Return a row for each set of findings, by class, with the environments that have it.

    Without any finding, environments share a row only if as many checks were finished on them.
    """
    by_findings: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        findings = tuple(
            ", ".join(f"`{check.rpartition('.')[2]}`" for check in _failed(row, severity))
            for severity in Severity
        )
        by_findings[findings, () if any(findings) else finished(row)].append(row)
    cells = []
    for (findings, _), several in by_findings.items():
        by_source: dict[str, list[str]] = defaultdict(list)
        for row in several:
            source, _, name = _named(row).partition(":")
            by_source[source].append(f"`{name}`")
        named = "; ".join(f"{source}: {', '.join(of)}" for source, of in by_source.items())
        counts = map(_span, zip(*map(finished, several), strict=True))
        cells.append((named, *findings, " of ".join(counts)))
    header = ("environments", *(severity.plural for severity in Severity), "checks finished")
    return markdown_table(header, cells)


def _named(row: Row) -> str:
    """Return the words that name an environment, without its right replies."""
    options = {k: v for k, v in row["options"].items() if k not in _OF_REPLIES}
    return command(row["target"], options)


def settings(certificates: Sequence[Certificate]) -> str:
    """Return the options of the command that all certificates were made with, but for patience."""
    usual = CertifySettings().patience
    (used,) = {replace(made.settings, patience=usual) for made in certificates}
    return " ".join(typed_words(used)).replace(".0", "")


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the page's tables and the data, or draw findings to judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("made", type=Path, help="the folder of certificates, or the data file")
    parser.add_argument("--markdown", type=Path, help="the page to write")
    parser.add_argument("--draw", type=int, default=0, help="findings to draw")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    chosen = parser.parse_args(arguments)
    made = sorted(
        [read_certificate(path.parent) for path in chosen.made.glob("*/certificate.json")],
        key=lambda one: command(one.target, one.options),
    )
    data = chosen.markdown and chosen.markdown.with_suffix(".jsonl")
    if chosen.made.is_dir():
        print(f"{len(made)} environments, certified with {settings(made)}")
    if chosen.markdown:
        file = data if chosen.made.is_dir() else chosen.made
        known = file.read_text().splitlines() if file.exists() else []
        old = map(of_known_checks, map(json.loads, known))
        rows = renewed(old, map(row_of, made))
        for name, table in (
            (SUMMARY, summary(rows)),
            (TEACHES, teaches(rows)),
            (COMMON, common(rows)),
            (EACH, each(rows)),
        ):
            write_block(chosen.markdown, name, table)
        lines = [json.dumps(row, allow_nan=False) for row in rows]
        data.write_text("".join(f"{line}\n" for line in lines))
    upper = [
        (command(one.target, one.options), found)
        for one in made
        for severity in (Severity.DEFECT, Severity.RISK)
        for found in one.failed(severity)
    ]
    for name, found in random.Random(chosen.seed).sample(upper, min(chosen.draw, len(upper))):
        print(f"\n{name}\n  {found.severity} {found.check}: {found.found}\n  {found.reproduce}")


if __name__ == "__main__":
    main()
