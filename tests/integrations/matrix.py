"""Make the table of docs/integrations.md from the reports of the integrations' tests.

`.ci/integrations` runs the tests in each environment, and then this:

python -m tests.integrations.matrix docs/integrations.md .integrations/reports/*.xml
"""

import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from benchmarks.pages import read_block, table_rows, write_block
from tests.integrations.commands import PLAYED
from tests.integrations.reference import DESKS, WORLDS
from tokengym.agents.reports.markdown import markdown_table

TITLES = {
    "test_openenv": ("OpenEnv", "openenv", ""),
    "test_verifiers": ("verifiers", "verifiers", ""),
    "test_inspect": ("Inspect", "inspect-ai", ""),
    "test_skyrl": ("SkyRL-gym", "skyrl-gym", ""),
    "test_gymnasium": ("Gymnasium", "gymnasium", ""),
    "pettingzoo": ("PettingZoo", "pettingzoo", "pettingzoo "),
    "test_trl": ("TRL", "trl", ""),
    "test_verl": ("verl", "verl", ""),
    "test_nemo_gym": ("NeMo Gym", "nemo-gym", ""),
}
WITHIN = {"pettingzoo": "test_gymnasium"}
"""Neighbours that are tested in the module of another."""
HEADER = (
    *("integration", "version", "tested on", "own command", "one turn", "several turns"),
    *("same returns", "group", "tokens kept", "trains", "tools"),
)
ONE_TURN = "forecast"

Shown = dict[str, set[str]]


class Report(NamedTuple):
    """What the run of one environment says.

    Attributes:
        versions: by package, and of Tokengym how it was installed.
        date: of the run.
        shown: by module, what its passed tests show.
    """

    versions: dict[str, str]
    date: str
    shown: dict[str, Shown]


def read(report: Path) -> Report:
    """Read the report of one environment's tests."""
    root = ElementTree.parse(report).getroot()
    versions = {
        one.attrib["name"]: one.attrib["value"]
        for one in root.findall("testsuite/properties/property")
    }
    shown: dict[str, Shown] = defaultdict(lambda: defaultdict(set))
    for case in root.iter("testcase"):
        module = case.attrib["classname"].rpartition(".")[2]
        if case.find("failure") is None and case.find("error") is None:
            for one in case.findall("properties/property"):
                shown[module][one.attrib["name"]].add(one.attrib["value"])
    suite = root.find("testsuite")
    assert suite is not None
    return Report(versions, suite.attrib["timestamp"].partition("T")[0], shown)


def table(reports: list[Path], before: list[list[str]]) -> str:
    """Return the table of all reports; integrations that none is of keep their rows of before."""
    kept = {row[0]: row for row in before}
    found = {module: report for report in map(read, reports) for module in report.shown}
    rows = []
    for module, (title, package, prefix) in TITLES.items():
        tested = WITHIN.get(module, module)
        if tested not in found:
            if title in kept:
                rows.append(kept[title])
            continue
        report = found[tested]
        shown = {
            name.removeprefix(prefix): values
            for name, values in report.shown[tested].items()
            if name.startswith(prefix)
        }
        if "plays" in shown:
            date = report.date + (
                "" if report.versions["tokengym"] == "wheel" else ", not the wheel"
            )
            rows.append([title, report.versions.get(package, "-"), date, *cells(shown)])
    return markdown_table(HEADER, rows)


def cells(shown: Shown) -> list[str]:
    """Return the columns after the date; a cell without a passed test is a dash."""

    def every(name: str, expected: Iterable[str] = WORLDS) -> str:
        return "yes" if set(expected) <= shown.get(name, set()) else "-"

    commands = [one.partition(": ")[::2] for one in sorted(shown.get("own command", ()))]
    return [
        ", ".join(dict.fromkeys(f"`{command}`" for command, _ in commands)) or "-",
        every("plays", [ONE_TURN]),
        every("plays", {*WORLDS} - {ONE_TURN}),
        "yes" if {*PLAYED} <= {world for _, world in commands} else "-",
        *(every(name) for name in ("group", "tokens", "trains")),
        every("tools", DESKS),
    ]


def main() -> None:
    """Write the table into the page."""
    page, *reports = map(Path, sys.argv[1:])
    name = "tests/integrations/matrix.py"
    write_block(page, name, table(sorted(reports), table_rows(read_block(page, name))))


if __name__ == "__main__":
    main()
