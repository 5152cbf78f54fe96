"""The public table: what `tokengym certify` found in environments of several packages.

    tokengym certify --targets benchmarks/certified_targets.txt --out certificates --resume \\
        --tasks 10 --strategies 60 --replies 1000 --drawn 100 --patience 20 --seconds 5
    python -m benchmarks.certified_table certificates --markdown docs/certified.md

The first command can be interrupted and typed again. The second writes the tables of the page, and
beside it the findings in full, `certified.jsonl`, a row for each environment. `--draw 30` prints
that many findings of the two upper classes, drawn at random, with the commands that repeat them.
"""

import argparse
import json
import random
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.means import mean_of_all
from tokengym.agents.analysis.markdown import markdown_table, write_block
from tokengym.agents.certify.certificate import Certificate, read_certificate
from tokengym.agents.certify.finding import Severity, Status
from tokengym.agents.settings import typed_words
from tokengym.rewards.estimates import Estimate

SUMMARY, TEACHES, EACH, COMMON = (
    f"certified_table.py, {part}" for part in ("summary", "teaches", "each", "common")
)
TAUGHT = ("teaches.wrong_replies", "statistical.training_signal")
"""Checks whose estimate is the share of groups without an advantage."""

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
        "failed": [{name: found[name] for name in shown} for found in failed],
        "without advantage": {check: found.value for check, found in without(certificate).items()},
        **{str(status): names for status, names in statuses.items() if status != Status.FAILED},
    }


def without(certificate: Certificate) -> dict[str, Estimate]:
    """Return the shares of groups without an advantage, by the check that could tell them."""
    found = {one.check: one.estimate for one in certificate.findings if one.check in TAUGHT}
    return {check: share for check, share in found.items() if share is not None}


def command(target: str, options: Mapping[str, Any]) -> str:
    """Return the words that name an environment."""
    said = [target]
    for name, value in options.items():
        text = value if isinstance(value, str) else json.dumps(value)
        said += ["--option", shlex.quote(f"{name}={text}")]
    return " ".join(said)


def summary(certificates: Iterable[Certificate]) -> str:
    """Return a row for each package: when it was certified, and how many have which findings."""
    by_package = defaultdict(list)
    for made in certificates:
        by_package[made.package].append(made)
    rows = [
        (
            package,
            " to ".join(sorted({min(dates), max(dates)})),
            str(len(all_of_it)),
            str(sum(made.turns > 1 for made in all_of_it)),
            *(str(sum(bool(made.failed(severity)) for made in all_of_it)) for severity in Severity),
        )
        for package, all_of_it in sorted(by_package.items())
        for dates in [{made.date[:10] for made in all_of_it}]
    ]
    total = [str(sum(int(row[column]) for row in rows)) for column in range(2, len(rows[0]))]
    header = (
        "package",
        "date",
        "environments",
        "of several turns",
        *(f"with {s.plural}" for s in Severity),
    )
    return markdown_table(header, [*rows, ("all", "", *total)])


def teaches(certificates: Iterable[Certificate]) -> str:
    """Return a row for each package: the mean share of groups that teach nothing, by who plays.

    Raises:
        SystemExit: if a check was not finished, by the environments.
    """
    by_package = defaultdict(list)
    for made in certificates:
        by_package[made.package].append(made)
    rows = [
        (package, *(mean_of_all(shares(of, check), len(of)) for check in TAUGHT))
        for package, of in sorted(by_package.items())
    ]
    return markdown_table(("package", "four wrong replies", "eight noisy solutions"), rows)


def shares(certificates: Sequence[Certificate], check: str) -> dict[str, float | None]:
    """Return a check's shares of groups by environment, `None` where it was not finished.

    Left out are environments where the check does not apply or can decide nothing.
    """
    found: dict[str, float | None] = {}
    for made in certificates:
        (one,) = (one for one in made.findings if one.check == check)
        if one.estimate is not None or "--patience" in one.found:
            name = command(made.target, made.options)
            found[name] = None if one.estimate is None else one.estimate.value
    return found


def common(rows: Sequence[Row]) -> str:
    """Return how many environments fail each check, of those on which it gave a result."""
    failed = Counter(found["check"] for row in rows for found in row["failed"])
    told = failed + Counter(check for row in rows for check in row["passed"])
    cells = [(f"`{check}`", str(count), str(told[check])) for check, count in failed.most_common()]
    never = [f"`{check}`" for check in told if check not in failed]
    least, *_, most = sorted(told[check.strip("`")] for check in never)
    cells.append((", ".join(never), "0", f"{least} to {most}"))
    return markdown_table(("check", "failed by", "of"), cells)


def each(rows: Iterable[Row]) -> str:
    """Return a row for each set of findings, by class, with the environments that have it."""
    header = ("environments", *(severity.plural for severity in Severity))
    by_findings: dict[tuple[str, ...], dict[str, list[str]]] = defaultdict(dict)
    for row in rows:
        source, _, name = _named(row).partition(":")
        findings = [
            ", ".join(
                f"`{found['check'].rpartition('.')[2]}`"
                for found in row["failed"]
                if found["severity"] == severity
            )
            for severity in Severity
        ]
        by_findings[tuple(findings)].setdefault(source, []).append(f"`{name}`")
    cells = [
        ("; ".join(f"{source}: {', '.join(names)}" for source, names in found.items()), *findings)
        for findings, found in by_findings.items()
    ]
    return markdown_table(header, cells)


def _named(row: Row) -> str:
    """Return the words that name an environment, without its solver and what that should earn."""
    options = {k: v for k, v in row["options"].items() if k not in ("reference", "best")}
    return command(row["target"], options)


def settings(certificates: Sequence[Certificate]) -> str:
    """Return the options of the command that all certificates were made with."""
    (used,) = {made.settings for made in certificates}
    return " ".join(typed_words(used)).replace(".0", "")


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the page's tables and the data, or draw findings to judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="the certificates")
    parser.add_argument("--markdown", type=Path, help="the page to write")
    parser.add_argument("--draw", type=int, default=0, help="findings to draw")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    chosen = parser.parse_args(arguments)
    made = sorted(
        [read_certificate(path.parent) for path in chosen.folder.glob("*/certificate.json")],
        key=lambda one: command(one.target, one.options),
    )
    print(f"{len(made)} environments, certified with {settings(made)}")
    if chosen.markdown:
        rows = [row_of(one) for one in made]
        for name, table in (
            (SUMMARY, summary(made)),
            (TEACHES, teaches(made)),
            (COMMON, common(rows)),
            (EACH, each(rows)),
        ):
            write_block(chosen.markdown, name, table)
        lines = [json.dumps(row, allow_nan=False) for row in rows]
        chosen.markdown.with_suffix(".jsonl").write_text("".join(f"{line}\n" for line in lines))
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
