"""Laws of the page in a browser: it loads, filters and opens, and what a model said stays text."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.viewer.browser import Browser
from tests.viewer.conftest import GROUPS, HOSTILE, SIZE, STEPS, rollout
from tokengym.agents.cli import app
from tokengym.agents.rollouts import train_segment
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.viewer import Viewer

ROLLOUTS = STEPS * GROUPS * SIZE + 6


@pytest.fixture
def page(browser: Browser, viewer: Viewer) -> Browser:
    """The page of the first run, at the size of a laptop."""
    browser.errors.clear()
    browser.show()
    load(browser, f"{viewer.url}#run=first")
    return browser


def load(browser: Browser, url: str) -> None:
    browser.open(url)
    browser.wait("document.querySelector('.rows .row') && !document.querySelector('[aria-busy]')")


def count(browser: Browser) -> str:
    return str(browser.evaluate("document.querySelector('.count').textContent"))


def test_the_page_shows_curves_with_their_lines_and_all_rollouts(page: Browser) -> None:
    assert count(page).startswith(f"{ROLLOUTS} rollouts in {STEPS * GROUPS + 6} groups")
    shown = page.evaluate("document.querySelector('.panels').innerText")
    for word in ("Return", "Ties", "reachable", "blind", "oracle"):
        assert word in shown
    assert page.errors == []


def test_from_a_curve_to_the_members_of_a_dead_group_are_two_clicks(page: Browser) -> None:
    x, y = page.evaluate(
        "(() => { const box = document.querySelectorAll('.chart')[1].getBoundingClientRect();"
        "return [box.x + box.width * (38 + (320 - 38 - 46) / 2) / 320, box.y + 60]; })()"
    )
    page.click_at(x, y)
    page.wait("document.querySelector('.count').textContent.startsWith('8 of ')")
    page.click(".rows .row")
    page.wait("document.querySelector('.members')")
    assert page.evaluate("document.querySelectorAll('.member').length") == SIZE
    assert "no advantage, nothing to learn" in page.evaluate("document.body.innerText")
    assert page.evaluate("document.querySelectorAll('.tie').length") == SIZE
    page.press("Escape")
    page.wait("!document.querySelector('.list').hidden && document.querySelector('.row.selected')")
    assert count(page).startswith("8 of ")
    assert page.errors == []


def test_what_a_model_said_stays_text_and_is_found(page: Browser) -> None:
    page.press("/")
    page.type("<SCRIPT>window.hacked")
    page.wait("document.querySelector('.count').textContent.startsWith('1 of ')")
    page.click(".rows .row")
    page.wait("document.querySelector('.rollout')")
    page.press("g")
    page.wait("document.querySelector('.group')")
    page.press("g")
    page.wait("document.querySelector('.rollout')")
    # Control characters are shown by nobody; everything else is on the page as it was said.
    said = page.evaluate("[...document.querySelectorAll('.own .token')].pop().textContent")
    assert said == HOSTILE
    assert page.evaluate("window.hacked === undefined && !document.querySelector('.detail script')")
    assert page.evaluate("document.querySelectorAll('.detail img, .detail svg').length") == 0
    assert page.errors == []


def test_filters_sorting_and_keys(page: Browser) -> None:
    page.evaluate("document.querySelector('[aria-label=\"return from\"]').focus()")
    page.type("0.5")
    page.wait("document.querySelector('.count').textContent.includes(' of ')")
    assert page.evaluate("app.table.rows.every((row) => row.return >= 0.5)")
    page.click(".row.head button", "return")
    page.wait("document.querySelector('[aria-sort=ascending]')")
    returns = page.evaluate("app.table.rows.map((row) => row.return)")
    assert returns == sorted(returns)
    page.evaluate("document.activeElement.blur()")
    page.press("x", "j", "j", "k")
    assert page.evaluate("app.table.selected") == 1
    assert count(page).startswith(f"{ROLLOUTS} rollouts")
    page.press("Enter")
    opened = page.wait("document.querySelector('.rollout, .group') && location.hash")
    page.press("j")
    page.wait(f"location.hash !== {opened!r}")
    page.evaluate("history.back()")
    page.wait(f"location.hash === {opened!r}")
    assert page.errors == []


def test_two_runs_are_compared_task_by_task(page: Browser, viewer: Viewer) -> None:
    page.open(f"{viewer.url}#run=first&with=second")
    page.wait("document.querySelector('.pairs')")
    shown = page.evaluate("document.querySelector('.compare').innerText")
    assert "on 6 Tasks that both played: 0" in shown
    page.click(".pairs button")
    page.wait("document.querySelectorAll('.member .conversation').length === 2")
    assert page.errors == []


@pytest.mark.parametrize(("width", "dark"), [(400, True), (800, False), (1600, False)])
def test_no_page_is_wider_than_its_window(
    page: Browser, viewer: Viewer, width: int, dark: bool
) -> None:
    page.show(width, 800, dark=dark)
    for place in ("", "&at=train_000001&row=0&tab=group", "&at=train_000001&row=0", "&with=second"):
        page.open(f"{viewer.url}#run=first{place}")
        page.wait(f"document.querySelector('{'.detail > *' if place else '.rows .row'}')")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), place
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(255, 255, 255)") is not dark
    assert page.errors == []


def test_a_run_that_trains_is_followed(browser: Browser, runs_folder: Path, viewer: Viewer) -> None:
    run = RunFolder(runs_folder / "second")
    load(browser, f"{viewer.url}#run=second")
    before = browser.evaluate("app.rows.length")
    step = STEPS
    run.rollouts.append(train_segment(step), [rollout("forecast", "train", step, 0, 0)])
    with (run.folder / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({"step": step, "env/all/reward/total": 0.5}) + "\n")
    browser.wait(f"app.rows.length === {before + 1} && app.run.curves.steps.length === {step + 1}")


def test_one_file_holds_the_runs_and_needs_no_server(
    browser: Browser, runs_folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "page.html"
    done = CliRunner().invoke(app, ["view", str(runs_folder / "first"), "--html", str(path)])
    assert done.exit_code == 0, done.output
    text = path.read_text()
    assert "<script>window.hacked" not in text
    browser.errors.clear()
    browser.show()
    load(browser, path.as_uri())
    browser.press("/")
    browser.type("window.hacked")
    browser.wait("document.querySelector('.count').textContent.startsWith('1 of ')")
    browser.click(".rows .row")
    browser.wait("document.querySelector('.rollout')")
    assert browser.evaluate("window.hacked === undefined")
    assert browser.errors == []


def test_a_page_on_paper_shows_its_rows(page: Browser) -> None:
    page.send("Emulation.setEmulatedMedia", media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("document.querySelectorAll('.rows .row').length") == ROLLOUTS
    assert page.evaluate("getComputedStyle(document.querySelector('.filters')).display") == "none"
    page.send("Emulation.setEmulatedMedia", media="")


def test_thousands_of_rollouts_are_filtered_at_once(page: Browser) -> None:
    seconds = page.evaluate(
        "(() => { const rows = [];"
        "for (let n = 0; n < 10000; n++) rows.push({...app.rows[n % app.rows.length], order: n});"
        "app.rows = rows; app.filters.low = 0.5; app.apply(); return app.filtered; })()"
    )
    assert page.evaluate("document.querySelectorAll('.rows .row').length") < 100
    assert seconds < 500  # some 20 ms on an idle core
