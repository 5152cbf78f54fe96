"""Laws of the page in a browser: it loads, filters and opens, and what a model said stays text."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.viewer.browser import Browser
from tests.viewer.conftest import (
    GROUPS,
    HOSTILE,
    SIZE,
    STEPS,
    evaluate,
    rollout,
    serving,
    write_run,
)
from tokengym.agents.evaluation.trained import read_trained
from tokengym.agents.rollouts import evaluation_segment, train_segment
from tokengym.agents.scale.level_scale import ladder_of
from tokengym.agents.training.folder.collapse import Collapse
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.folder.run_summary import RunSummary
from tokengym.agents.viewer import Viewer, write_page
from tokengym.agents.viewer.run_report import run_report
from tokengym.envs.registry import spec
from tokengym.rewards.estimates import mean_estimate

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
    for word in ("Return", "Ties", "posterior", "best x", "random"):
        assert word in shown
    assert page.errors == []


@pytest.mark.nightly
def test_two_clicks_lead_from_curve_to_dead_group(page: Browser) -> None:
    x, y = page.evaluate(
        "(() => { const box = document.querySelectorAll('.chart')[1].getBoundingClientRect();"
        "return [box.x + box.width * (38 + (320 - 38 - 56) / 2) / 320, box.y + 60]; })()"
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
    page.wait("document.querySelector('.group')")
    page.press("g")
    page.wait("document.querySelector('.rollout')")
    # Control characters are shown by nobody; everything else is on the page as it was said.
    said = page.evaluate("[...document.querySelectorAll('.own .token')].pop().textContent")
    assert said == HOSTILE
    assert page.evaluate("window.hacked === undefined && !document.querySelector('.detail script')")
    assert page.evaluate("document.querySelectorAll('.detail img, .detail svg').length") == 1
    of_the_world = "document.querySelector('.detail img').alt"
    assert page.evaluate(of_the_world) == "The world's picture of this rollout"
    assert page.errors == []


@pytest.mark.nightly
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


@pytest.mark.nightly
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


@pytest.mark.nightly
def test_a_run_that_trains_is_followed(browser: Browser, runs_folder: Path, viewer: Viewer) -> None:
    run = RunFolder(runs_folder / "second")
    load(browser, f"{viewer.url}#run=second")
    before = browser.evaluate("app.rows.length")
    step = STEPS
    run.rollouts.append(train_segment(step), [rollout("forecast", "train", step, 0, 0)])
    with (run.folder / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({"step": step, "env/all/reward/total": 0.5}) + "\n")
    browser.wait(f"app.rows.length === {before + 1} && app.run.curves.steps.length === {step + 1}")


@pytest.mark.nightly
def test_a_finished_run_opens_on_what_changed(
    browser: Browser, tmp_path: Path, viewer: Viewer
) -> None:
    run = write_run(tmp_path / "trained", "forecast")
    after = [rollout("forecast", "evaluation", None, group, 1) for group in range(6)]
    run.rollouts.append(evaluation_segment("after"), after)
    before = list(run.rollouts.read(evaluation_segment("before")))
    changes = [new.earned - old.earned for old, new in zip(before, after, strict=True)]
    browser.errors.clear()
    browser.show()
    with serving(run.folder) as server:
        browser.open(server.url)
        browser.wait("document.querySelectorAll('.pairs tbody tr').length === 6")
        assert browser.evaluate("document.querySelector('.list').hidden")
        rows = browser.evaluate(
            "[...document.querySelectorAll('.pairs tbody tr')].map((row) => row.innerText)"
        )
        order = sorted(range(6), key=lambda task: -changes[task])
        for row, task in zip(rows, order, strict=True):
            question = before[task].turns[0].read.splitlines()[-1]
            for shown in (question, f"the oracle's {task}", "0.900", f"{changes[task]:+.3f}"):
                assert shown in row
            for record in (before[task], after[task]):
                assert str(record.turns[-1].said) in row
        mean = mean_estimate(changes)
        interval = browser.evaluate(f"meanInterval({changes})")
        assert interval == pytest.approx([mean.value, mean.low, mean.high], abs=1e-3)
        browser.click(".pairs tbody tr")
        browser.wait("document.querySelectorAll('.member').length === 3")
        assert f"the oracle's {order[0]}" in browser.evaluate("document.body.innerText")
        browser.press("Escape")
        browser.wait("document.querySelector('.pairs tbody tr')")
        browser.click(".views button:last-child")
        browser.wait("!document.querySelector('.list').hidden")
    assert browser.errors == []


def finished(folder: Path, world: str = "forecast") -> RunFolder:
    """A run with an end."""
    run = write_run(folder, world)
    for name in ("before", "after"):
        run.rollouts.path(evaluation_segment(name)).unlink(missing_ok=True)
    evaluate(run, world, {"before": 0, "after": 1})
    lost = Collapse(2, HOSTILE, "try it")
    run.write_outcome(RunSummary(lost))
    return run


def embedded(path: Path) -> dict[str, Any]:
    """The data of the one run of a page."""
    (text,) = re.findall(
        r'<script type="application/json" id="data">(.*?)</script>', path.read_text()
    )
    (run,) = json.loads(text)["runs"]
    found: dict[str, Any] = run
    return found


@pytest.mark.nightly
@pytest.mark.parametrize(("after", "pictures"), [(1, 2), (0, 0)])
def test_the_most_changed_task_has_pictures(tmp_path: Path, after: int, pictures: int) -> None:
    run = write_run(tmp_path / "run", "forecast")
    for name in ("before", "after"):
        run.rollouts.path(evaluation_segment(name)).unlink(missing_ok=True)
    evaluate(run, "forecast", {"before": 0, "after": after})
    write_page([run.folder], tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text().count("data:image/png") == pictures


@pytest.mark.nightly
@pytest.mark.parametrize("megabytes", [5.0, 0.25])
def test_a_page_has_its_runs_data_and_extremes(tmp_path: Path, megabytes: float) -> None:
    run = finished(tmp_path / "run")
    grown = [
        replace(rollout("forecast", "train", 9, group, member), advantage=(group - 40) / 40)
        for group in range(90)
        for member in range(2)
    ]
    run.rollouts.append(train_segment(9), grown)
    path = tmp_path / "page.html"
    write_page([run.folder], path, megabytes)
    assert path.stat().st_size <= megabytes * 1e6
    page = embedded(path)
    rows = [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()]
    assert page["curves"]["series"]["return"] == [row["env/all/reward/total"] for row in rows]
    (found,) = read_trained(run).values()
    ends = [found.before.result.earned, found.after.result.earned]
    assert page["curves"]["points"]["return"] == [
        [at, mean.value, mean.low, mean.high] for at, mean in zip((0, STEPS), ends, strict=True)
    ]
    assert page["report"] == run_report(run).to_dict()
    held = {
        name: [one for group in groups for one in group["records"]]
        for name, groups in page["groups"].items()
    }
    for name, records in held.items():
        known = {(one.origin.group, one.origin.member): one for one in run.rollouts.read(name)}
        for record in records:
            saved = known[record["group"], record["member"]]
            assert record["return"] == saved.total
            assert [turn["said"] for turn in record["turns"]] == [turn.said for turn in saved.turns]
        assert page["tables"][name]["return"] == [record["return"] for record in records]
    assert page["all_rows"] == {
        s.name: len([*run.rollouts.read(s.name)]) for s in run.rollouts.segments()
    }
    trained = [
        one
        for s in run.rollouts.segments()
        if s.step is not None
        for one in run.rollouts.read(s.name)
    ]
    shown = [one for name, records in held.items() if name.startswith("train_") for one in records]
    assert (len(shown) == len(trained)) == (megabytes == 5.0)
    for end in (min, max):
        assert end(one["return"] for one in shown) == end(one.total for one in trained)
        assert end(one["advantage"] for one in shown) == end(
            one.advantage or 0.0 for one in trained
        )


@pytest.mark.nightly
@pytest.mark.parametrize(("width", "dark"), [(400, True), (1280, False)])
def test_a_report_opens_with_its_picture_and_one_sentence(
    browser: Browser, tmp_path: Path, width: int, dark: bool
) -> None:
    run, path = finished(tmp_path / "run", "energy"), tmp_path / f"report_{width}.html"
    write_page([run.folder], path)
    browser.errors.clear()
    browser.show(width, 900, dark=dark)
    browser.open(path.as_uri())
    browser.wait(f"location.href.endsWith('{path.name}') && document.querySelector('.part')")
    browser.wait("document.querySelectorAll('.pairs tbody tr').length === 6")
    text = browser.evaluate("document.querySelector('main').innerText")
    report = run_report(run)
    places = ["Click a step for its rollouts", report.warning[:30], report.lines[0], "on average"]
    places += ["Skill is", "mean return"]
    found = [text.index(part) for part in places]
    assert found == sorted(found)
    assert browser.evaluate("document.querySelectorAll('.dot.held').length") == 2
    ladder = ladder_of(spec(run.config.world), run.config.level, "operator")
    assert ladder is not None
    called = {rung.policy: rung.name for rung in ladder.rungs}
    named = browser.evaluate("document.querySelector('.opening svg').textContent")
    assert called["oracle"] in named
    box = "document.querySelector('.opening figure').getBoundingClientRect()"
    assert browser.evaluate(f"{box}.top < innerHeight / 3 && {box}.width > innerWidth / 2")
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    browser.click(".pairs tbody tr")
    browser.wait("document.querySelectorAll('.picture img').length === 2")
    browser.wait(
        "[...document.querySelectorAll('.picture img')].every((one) => one.naturalWidth > 500)"
    )
    browser.press("Escape")
    browser.click(".views button:last-child")
    browser.click(".ends button", "smallest return")
    browser.wait("document.querySelector('.rollout')")
    worst = min(one.total for s in run.rollouts.segments() for one in run.rollouts.read(s.name))
    shown = browser.evaluate("document.querySelector('.facts b').textContent")
    assert float(shown.removeprefix("return ")) == pytest.approx(worst, abs=1e-4)
    assert browser.evaluate("window.hacked === undefined")
    assert browser.errors == []


@pytest.mark.nightly
def test_a_page_has_no_password_of_an_address(tmp_path: Path) -> None:
    run, path = finished(tmp_path / "run"), tmp_path / "page.html"
    run.write_config(replace(run.config, base_url="https://me:hidden@service.example/v1"))
    write_page([run.folder], path)
    assert "hidden@" not in path.read_text()
    assert embedded(path)["config"]["base_url"] == "https://service.example/v1"


@pytest.mark.nightly
def test_where_no_script_runs_the_findings_are_read(browser: Browser, tmp_path: Path) -> None:
    run, path = finished(tmp_path / "run"), tmp_path / "plain.html"
    write_page([run.folder], path)
    browser.send("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(path.as_uri())
    browser.send("Emulation.setScriptExecutionDisabled", value=False)
    shown = browser.wait(f"location.href.endsWith('{path.name}') && document.body.innerText")
    report = run_report(run)
    assert report.warning[:30] in shown
    assert report.lines[0] in shown
