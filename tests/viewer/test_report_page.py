"""Laws of a report's page in a browser: it fits a phone, follows the scheme, runs nothing."""

import base64
from pathlib import Path

import pytest

from tests.viewer.browser import Browser
from tests.viewer.conftest import HOSTILE
from tokengym.agents.analysis.report import Cell, Gallery, Picture, Report, Table, Text

DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg=="
)


@pytest.fixture
def report(tmp_path: Path) -> Path:
    rows: list[tuple[Cell, str]] = [
        ("Share of " * 20, "0.1234 to 0.5678"),
        (("figure", "what it means " * 20), "12.5%"),
    ]
    parts = (
        Gallery([Picture(DOT, "a dot", "Before"), Picture(DOT, "a dot", "After")], "Side by side"),
        Gallery([Picture(DOT, "a day")], "A day", wide=True),
        Table(("figure", "value"), rows, "Figures", "A note."),
        Table(("reply", "share"), [(HOSTILE, "3%")], "Replies"),
        Text("x" * 500, "Settings"),
    )
    path = tmp_path / "report.html"
    facts = [(f"fact {number}", "0.123") for number in range(7)]
    Report("A run", ["A line."], parts, "Collapsed.", facts).write(path)
    return path


@pytest.mark.parametrize(("width", "dark"), [(400, True), (800, False), (1600, False)])
def test_a_report_fits_its_window(browser: Browser, report: Path, width: int, dark: bool) -> None:
    browser.errors.clear()
    browser.show(width, 900, dark=dark)
    browser.open(report.as_uri())
    browser.wait("document.readyState === 'complete' && document.querySelector('.facts')")
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    ground = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") is not dark
    assert browser.evaluate("window.hacked === undefined && !document.querySelector('script')")
    assert browser.errors == []
