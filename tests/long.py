"""Which tests take long: `--part first` leaves them to `--part rest`.

    python3 src/tokengym test tests --junitxml report.xml
    .venv/bin/python -m tests.long report.xml

The second command writes `long.txt` anew from a report of all tests, when the first part has grown
too slow.
"""

import sys
from pathlib import Path
from xml.etree import ElementTree

_FILE = Path(__file__).with_suffix(".txt")
_SECONDS = 1.0
"""A test takes long if one of its cases takes more than this, beside others on two slow cores."""


def long_tests() -> frozenset[str]:
    """Return the tests that take long, such as `tests/energy/test_commit.py::test_name`."""
    return frozenset(_FILE.read_text(encoding="utf-8").split())


def slow(report: Path) -> set[str]:
    """Return the tests of a report in JUnit's form of which a case took long."""
    return {
        f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}".partition("[")[0]
        for case in ElementTree.parse(report).iter("testcase")
        if float(case.get("time", "0")) > _SECONDS
    }


if __name__ == "__main__":
    _FILE.write_text("".join(f"{name}\n" for name in sorted(slow(Path(sys.argv[1])))))
