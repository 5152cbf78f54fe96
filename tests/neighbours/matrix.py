"""Make the table of docs/neighbours.md from the reports of the neighbours' tests.

pytest tests/neighbours/test_trl.py --junitxml reports/trl.xml    (in each environment)
python -m tests.neighbours.matrix docs/neighbours.md reports/*.xml
"""

import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

from tests.neighbours.reference import WORLDS
from tokengym.agents.analysis.markdown import markdown_table, write_block

TITLES = {
    "test_openenv": ("OpenEnv", "openenv", ""),
    "test_verifiers": ("verifiers before 0.4", "verifiers", ""),
    "retrain": ("retrain, over verifiers", "retrain", "retrain "),
    "test_verifiers_v1": ("verifiers 0.4", "verifiers", ""),
    "test_trl": ("TRL", "trl", ""),
    "test_inspect": ("Inspect", "inspect-ai", ""),
    "test_skyrl": ("SkyRL-gym", "skyrl-gym", ""),
    "test_verl": ("verl", "verl", ""),
}
COLUMNS = ("plays", "group", "tokens", "trains")


def read(report: Path) -> tuple[str, dict[str, str], dict[str, set[str]]]:
    """Return a report's module, the versions it ran with, and what passed tests show of whom."""
    root = ElementTree.parse(report).getroot()
    versions = {
        one.attrib["name"]: one.attrib["value"]
        for one in root.findall("testsuite/properties/property")
    }
    shown: dict[str, set[str]] = defaultdict(set)
    module = ""
    for case in root.iter("testcase"):
        module = case.attrib["classname"].rpartition(".")[2]
        if case.find("failure") is None and case.find("error") is None:
            for one in case.findall("properties/property"):
                shown[one.attrib["name"]].add(one.attrib["value"])
    return module, versions, shown


def table(reports: list[Path]) -> str:
    """Return the table of all reports."""
    found = {module: (versions, shown) for module, versions, shown in map(read, reports)}
    if "test_verifiers" in found:
        found["retrain"] = found["test_verifiers"]
    rows = []
    for module, (title, package, prefix) in TITLES.items():
        if module in found:
            versions, shown = found[module]
            cells = [
                ", ".join(name for name in COLUMNS if world in shown[f"{prefix}{name}"]) or "-"
                for world in WORLDS
            ]
            rows.append([title, versions.get(package, "-"), *cells])
    return markdown_table(["neighbour", "version", *WORLDS], rows)


def main() -> None:
    """Write the table into the page."""
    page, *reports = map(Path, sys.argv[1:])
    write_block(page, "tests/neighbours/matrix.py", table(sorted(reports)))


if __name__ == "__main__":
    main()
