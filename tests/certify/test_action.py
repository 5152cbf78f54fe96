"""The GitHub Action and the command in CI: the summary, and that only what is new fails."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from tests.docs.pages import ROOT
from tokengym.agents.cli import app

pytestmark = pytest.mark.nightly

GRADER = """
def anywhere(prompt, reply, row):
    return float(row["answer"] in reply)

def alone(prompt, reply, row):
    return float(row["answer"] == reply.strip())
"""
QUICK = "--tasks 12 --only gamed.several_answers --only gamed.echo"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "grader.py").write_text(GRADER)
    rows = ({"question": f"{n} * 7?", "answer": str(n * 7)} for n in range(100, 140))
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return tmp_path


def act(folder: Path, **inputs: str) -> tuple[int, str]:
    """Run the action's own step as GitHub does."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    step = action["runs"]["steps"][-1]
    given = {name: one.get("default", "") for name, one in action["inputs"].items()} | inputs
    words = {name: text.split("inputs.")[1].split(" ")[0] for name, text in step["env"].items()}
    env = {name: given[word] for name, word in words.items()}
    summary = folder / "summary.md"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env |= {**os.environ, **env, "GITHUB_STEP_SUMMARY": str(summary), "PATH": path}
    done = subprocess.run(["bash", "-e", "-c", step["run"]], cwd=folder, env=env, check=False)
    return done.returncode, summary.read_text() if summary.exists() else ""


def test_the_action_fails_on_a_risk_and_shows_it(folder: Path) -> None:
    arguments = f"--prompts rows.jsonl --declared 0,1 {QUICK}"
    status, shown = act(folder, target="grader.py:anywhere", arguments=arguments)
    assert status == 1
    assert "### grader.py:anywhere: fails" in shown
    assert "`gamed.several_answers` **breaks**" in shown
    assert "2 of the 2 checks that apply were finished" in shown
    status, shown = act(folder, target="grader.py:alone", arguments=arguments)
    assert (status, "### grader.py:alone: passes" in shown) == (0, True)


def test_only_what_is_new_fails(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    few = "--prompts rows.jsonl --declared 0,1 --tasks 12 --strategies 2 --replies 20 --drawn 20"
    words = ["certify", "grader.py:anywhere", *few.split(), "--require", "risks"]
    assert CliRunner().invoke(app, [*words, "--out", "old"]).exit_code == 1
    again = [*words, "--out", "new", "--baseline", "old", "--summary", "summary.md"]
    assert CliRunner().invoke(app, again).exit_code == 0
    assert "required: risks" in (folder / "summary.md").read_text()
    (folder / "old" / "grader.py_anywhere" / "certificate.json").unlink()
    (folder / "old" / "grader.py_anywhere").rmdir()
    assert CliRunner().invoke(app, again).exit_code == 1


def test_the_line_that_repeats_a_finding_finds_it_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    words = ["certify", "grader.py:anywhere", "--prompts", "rows.jsonl", "--declared", "0,1"]
    words += ["--reply-template", "<{}>", "--seconds", "9", "--memory", "7", "--out", "made"]
    few = ["--tasks", "6", "--strategies", "2", "--replies", "20", "--drawn", "20"]
    CliRunner().invoke(app, [*words, *few])
    (made,) = (folder / "made").iterdir()
    findings = json.loads((made / "certificate.json").read_text())["findings"]
    failed = [one for one in findings if one["status"] == "failed"]
    assert len(failed) >= 2
    for one in failed[:2]:
        assert "--seconds 9.0 --memory 7.0" in one["reproduce"]
        tokengym = Path(sys.executable).with_name("tokengym")
        line = one["reproduce"].replace("tokengym", str(tokengym), 1)
        done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
        assert one["check"] in done.stdout, (line, done.stdout, done.stderr)
        assert " 1 failed" in " ".join(done.stdout.split()), done.stdout
