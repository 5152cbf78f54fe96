"""What a run of continuous integration did not check: its last lines say so.

    python3 .ci/unchecked.py note TEXT    add a line
    python3 .ci/unchecked.py              print the lines, and the tests that nothing ran

Lines and the reports of tests, `*.xml` in JUnit's form, lie in the folder that `TOKENGYM_UNCHECKED`
names. A test that one environment skips counts as run if another one ran it.
"""

import os
import sys
from ast import literal_eval
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

VARIABLE = "TOKENGYM_UNCHECKED"
NOTES = "notes.txt"


class Case(NamedTuple):
    """A test, or a module that is skipped as a whole.

    Attributes:
        module: dotted, without the test's class if it has one.
        name: of the test; empty for a module.
        skipped: why it was not run; empty if it was.
    """

    module: str
    name: str
    skipped: str


def note(text: str) -> None:
    """Say what is not checked: now, and in the last lines of continuous integration."""
    print(f"not checked: {text}", flush=True)
    if folder := os.environ.get(VARIABLE):
        with (Path(folder) / NOTES).open("a", encoding="utf-8") as notes:
            notes.write(f"{text}\n")


def cases(report: Path) -> Iterator[Case]:
    """Yield what a report of tests has."""
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        module, name = case.attrib["classname"], case.attrib["name"]
        found = case.find("skipped")
        why = "" if found is None else found.attrib.get("message") or "expected to fail"
        if not module:  # collection ended with the module, whose path, line and reason are the text
            module, name = name, ""
            if found is not None and found.text:
                *_, said = literal_eval(found.text)
                why = said.removeprefix("Skipped: ")
        yield Case(module, name, why)


def not_run(reports: Iterable[Path]) -> list[str]:
    """Return a line for each reason for which tests were skipped and nowhere run: their files."""
    every = dict.fromkeys(case for report in reports for case in cases(report))
    run = {case[:2] for case in every if not case.skipped}
    modules = {module for module, _ in run}
    left: dict[str, list[str]] = defaultdict(list)
    for module, name, why in every:
        if why and (module, name) not in run and (name or module not in modules):
            left[why].append(module)
    return [
        f"{len(found)} skipped, {why}: {', '.join(sorted({*found}))}"
        for why, found in sorted(left.items())
    ]


def wholly_skipped(report: Path) -> set[str]:
    """Return the modules of a report none of whose tests ran."""
    found = list(cases(report))
    return {case.module for case in found} - {case.module for case in found if not case.skipped}


def main() -> None:
    """Add a line, or print them all."""
    if sys.argv[1:2] == ["note"]:
        note(" ".join(sys.argv[2:]))
        return
    folder = Path(os.environ[VARIABLE])
    notes = folder / NOTES
    lines = notes.read_text(encoding="utf-8").splitlines() if notes.is_file() else []
    print("== not checked by this run")
    for line in (*dict.fromkeys(lines), *not_run(sorted(folder.glob("*.xml")))):
        print(f"  {line}")


if __name__ == "__main__":
    main()
