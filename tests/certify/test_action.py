"""The GitHub Action and the command in CI: the summary, and that only what is new fails."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from tests.docs.pages import ROOT, blocks
from tokengym.agents.cli import app

pytestmark = pytest.mark.nightly

GRADER = """
def anywhere(prompt, reply, row):
    return float(row["answer"] in reply)
"""


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


def test_the_recipe_of_the_page_fails_when_it_should(tmp_path: Path) -> None:
    page = blocks(ROOT / "docs" / "certify.md")
    files = {one.name: one.text for one in page if one.name}
    for name in ("grader.py", "waivers.toml"):
        (tmp_path / name).write_text(files[name])
    (rows,) = (one.text for one in page if "prompts.jsonl" in one.text and one.language == "python")
    subprocess.run([sys.executable, "-c", rows], cwd=tmp_path, check=True)
    workflow = yaml.safe_load(files[".github/workflows/certify.yml"])
    (step,) = (one for one in workflow["jobs"]["certify"]["steps"] if "target" in one["with"])
    said = step["with"]
    few = " --tasks 8 --strategies 5 --replies 20 --drawn 40"
    said["arguments"] += few
    assert act(tmp_path, **said)[0] == 0
    status, shown = act(tmp_path, **{**said, "waivers": ""})
    assert status == 1
    assert "### grader.py:reward: fails" in shown
    assert "`gamed.several_answers` **breaks**" in shown
    broken = files["grader.py"].replace('float(row["reference"] in reply)', "2.0", 1)
    (tmp_path / "grader.py").write_text(broken)
    assert act(tmp_path, **said)[0] == 1
    (tmp_path / "grader.py").write_text("import no_such_module\n")
    assert act(tmp_path, **said)[0] not in (0, 1)


def test_a_run_that_is_ended_leaves_what_it_found(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import time\ndef r(reply, answer):\n    time.sleep(0.05)\n    return reply == answer\n"
    )
    rows = (json.dumps({"prompt": f"{n}?", "answer": str(n)}) + "\n" for n in range(40))
    (tmp_path / "rows.jsonl").write_text("".join(rows))
    tokengym = str(Path(sys.executable).with_name("tokengym"))
    words = [tokengym, "certify", "slow.py:r", "--prompts", "rows.jsonl", "--declared", "0,1"]
    path = os.pathsep.join(filter(None, sys.path))
    run = subprocess.Popen(words, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path})
    made = tmp_path / "certificates" / "slow.py_r" / "certificate.json"
    try:
        until = time.monotonic() + 120
        while not made.exists() and time.monotonic() < until:
            time.sleep(0.2)
    finally:
        run.kill()
        run.wait()
    known = json.loads(made.read_text())
    assert known["finished"] is False
    assert any(one["status"] == "passed" for one in known["findings"])
    assert all(len(one["seconds"]) == 2 for one in known["findings"])


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
