"""A package that the command writes works as it is, from its own tests to training."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.docs.packages import pip_install
from tests.docs.pages import ROOT, blocks
from tests.warm import run_tokengym
from tokengym.agents.cli import app
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.training.folder.run import RunFolder
from tokengym.envs.core.errors import OptionError


@pytest.mark.nightly
@pytest.mark.skipif(find_spec("tinker") is None, reason="the base package does not train")
def test_a_written_package_passes_its_tests_and_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, served: dict[str, Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["new-world", "coin_toss", "--namespace", "acme"]
    written = CliRunner().invoke(app, words, catch_exceptions=False)
    assert "holds the world acme/CoinToss-v0" in written.output
    readme = (tmp_path / "coin_toss" / "README.md").read_text()
    for command in ("tokengym check cointoss", "tokengym train cointoss"):
        assert command in written.output
        assert command in readme
    pip_install(tmp_path / "coin_toss", tmp_path / "site")
    path = os.pathsep.join([str(ROOT / "src"), str(tmp_path / "site")])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "coin_toss"]
    done = subprocess.run(tests, env=environment, capture_output=True, text=True)
    assert "6 passed" in done.stdout, done.stdout
    model = ["--model", served["model"], "--base-url", served["base_url"]]
    small = ["--steps", "2", "--groups", "2", "--group-size", "4", "--evaluation-tasks", "4"]
    words = ["train", "cointoss", "--run", "run", "--yes", *small, *model]
    printed = tmp_path / "printed.txt"
    assert run_tokengym(words, tmp_path, environment, printed) == 0, printed.read_text()
    assert RunFolder(tmp_path / "run").outcome is not None
    assert [row.step for row in RunFolder(tmp_path / "run").steps()] == [0, 1]
    (scale,) = EvaluationFolder(tmp_path / "run").saved().scales[:1]
    assert scale.lines["oracle"].value == 1.0
    assert len(scale.replies) == 4
    assert all(re.fullmatch(r"Probability: 0\.[0-9]+", said) for said in scale.replies)
    # What the small policy says has the form, so that there is something to learn from.
    assert any(record.total > 0.5 for record in RunFolder(tmp_path / "run").rollouts.read())


def test_the_page_shows_what_is_written(tmp_path: Path) -> None:
    words = ["new-world", "urn", "--folder", str(tmp_path / "urn")]
    CliRunner().invoke(app, words, catch_exceptions=False)
    written = (tmp_path / "urn" / "src" / "urn_world" / "world.py").read_text()
    page = ROOT / "docs" / "tutorials" / "world.md"
    assert written in [block.text for block in blocks(page)]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["Coin"], "NAME must be words of a-z and 0-9 joined by _, got 'Coin'"),
        (["../coin"], "NAME must be words"),
        (["forecast"], "there is a world 'forecast' already"),
        (["coin", "--namespace", "a/b"], "--namespace must be of letters, digits, _ and -"),
        (["there"], "there exists: name another --folder"),
    ],
)
def test_what_cannot_be_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    ended = CliRunner().invoke(app, ["new-world", *words])
    assert isinstance(ended.exception, OptionError)
    assert said in str(ended.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
