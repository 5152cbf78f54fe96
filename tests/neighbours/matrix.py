"""Make the table of docs/neighbours.md from the reports of the neighbours' tests.

`.ci/neighbours` runs the tests in each environment, and then this:

python -m tests.neighbours.matrix docs/neighbours.md .neighbours/reports/*.xml
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
    "test_nemo_gym": ("NeMo Gym, over OpenEnv", "nemo-gym", ""),
}
COLUMNS = ("plays", "group", "tokens", "trains")


Shown = dict[str, set[str]]


def read(report: Path) -> tuple[dict[str, str], dict[str, Shown]]:
    """Return the versions that a report ran with, and by module what its passed tests show."""
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
    return versions, shown


def table(reports: list[Path]) -> str:
    """Return the table of all reports."""
    found = {
        module: (versions, shown)
        for versions, modules in map(read, reports)
        for module, shown in modules.items()
    }
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
