"""Wrong usage ends with status 2 and one sentence that names the value and the rule."""

import re
import socket
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.every import every
from tokengym.agents.cli import app
from tokengym.agents.cli.failures import describe
from tokengym.agents.cli.train import ELSEWHERE
from tokengym.agents.training.folder.environment import checkout_state
from tokengym.agents.viewer import Viewer
from tokengym.envs.core.errors import TokengymError

WRONG = [
    ("play forecasts", "did you mean 'forecast'?"),
    ("play forecast:easier", "did you mean 'easy'?"),
    ("play forecast --option prompts=terse", "did you mean 'prompt'?"),
    ("play forecast --option prompt=terser", "did you mean 'terse'?"),
    ("play energy --policy oracles", "did you mean 'oracle'?"),
    ("evaluate forecast --policy oracles", "did you mean 'oracle'?"),
    ("train forecast --level easier", "did you mean 'easy'?"),
    ("train forecast --lr 1e-3", "it is --learning-rate here"),
    ("train forecast --num-generations=8", "it is --group-size here"),
    ("sft forecast --batch-size 8", "it is --groups here"),
    ("train forecast --run ''", "a folder needs a name"),
    ("train forecast --run 'a\tb'", "a folder needs a name"),
    ("sweep forecast --runs ''", "a folder needs a name"),
    ("evaluate forecast --policy oracle --out ' '", "a folder needs a name"),
    ("train forecast --dry-run --price-read inf", "price-read"),
    ("certify grader.py", "name its function too, as in grader.py:reward"),
    ("train forecast --columns question=Q", "options of data"),
    ("data audit nowhere.csv --columns question", "FIELD=HEADING"),
]


@every(("typed", "sentence"), WRONG)
def test_wrong_usage_ends_with_2_and_a_sentence(typed: str, sentence: str) -> None:
    ended = CliRunner().invoke(app, typed)
    wrong = ended.exception
    shown = describe(wrong) if isinstance(wrong, TokengymError) else ended.output
    assert sentence in " ".join(shown.replace("│", " ").split())
    assert isinstance(wrong, TokengymError) or ended.exit_code == 2


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"port {port}") as caught:
            Viewer({}, port)
    assert describe(caught.value) == f"port {port}: address already in use"


def test_options_named_in_place_of_others_exist() -> None:
    whole = CliRunner().invoke(app, ["train", "--help-all"], env={"COLUMNS": "200"}).output
    assert set(ELSEWHERE.values()) <= set(re.findall(r"--[a-z-]+", whole))
    assert not set(ELSEWHERE) & set(re.findall(r"--[a-z-]+", whole))


@pytest.mark.parametrize("command", ["train", "sft", "dpo"])
def test_help_explains_few_options_and_names_all(command: str) -> None:
    few = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "80"}).output
    whole = CliRunner().invoke(app, [command, "--help-all"], env={"COLUMNS": "80"}).output
    assert len(few.splitlines()) < 100 < len(whole.splitlines())
    flags = set(re.findall(r"^│ (?:\*  )?(--[a-z-]+)", whole, re.MULTILINE))
    assert len(flags) > 20
    assert flags <= set(re.findall(r"--[a-z-]+", few))


def test_the_commit_of_a_checkout_is_recorded() -> None:
    root = Path(__file__).resolve().parents[2]
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=True
    )
    assert (checkout_state() or {})["commit"] == head.stdout.strip()
