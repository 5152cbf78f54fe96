"""An integration's own command against `tokengym serve`, compared with `tokengym evaluate`.

`.ci/integrations` serves the starting policy and evaluates it greedily on the first test Tasks of a
world of one turn and a world of several; it leaves the address and the rollouts in a folder.
"""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import ROOT

FOLDER = ROOT / ".integrations" / "served"
PLAYED = ("forecast", "energy:small")
"""What was evaluated: a world of one turn, and one of several."""
TASKS = 4
MAX_TOKENS = 24
OPTIONS = {"prompt": "terse"}


class Served:
    """The served policy.

    Attributes:
        url: of its OpenAI routes.
        key: the API key.
        model: its name there.
    """

    def __init__(self) -> None:
        place = FOLDER / "service.json"
        if not place.is_file():
            pytest.skip("needs the service that .ci/integrations starts")
        said = json.loads(place.read_text())
        self.url, self.key, self.model = said["url"], said["key"], said["model"]

    def returns(self, played: str) -> list[float]:
        """Return what `tokengym evaluate` found: the return of each Task, in order."""
        world, _, level = played.partition(":")
        (file,) = (FOLDER / "evaluation" / "rollouts").glob(f"*_{world}_{level}*.jsonl")
        records = [json.loads(line) for line in file.read_text().splitlines()]
        assert len(records) == TASKS
        return [one["return"] for one in sorted(records, key=lambda one: one["index"])]

    def reply(self, messages: Sequence[Mapping[str, str]]) -> tuple[str, str]:
        """Ask for the reply to a conversation; returns it and why it ended."""
        asked = {"model": self.model, "messages": list(messages)}
        body = json.dumps({**asked, "temperature": 0, "max_tokens": MAX_TOKENS}).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"}
        request = urllib.request.Request(f"{self.url}/chat/completions", body, headers)
        with urllib.request.urlopen(request) as answer:
            (choice,) = json.load(answer)["choices"]
        return choice["message"]["content"], choice["finish_reason"]


def run_command(name: str, *words: str, folder: Path, **variables: str) -> str:
    """Run a command that is installed beside this Python; returns what it printed."""
    done = subprocess.run(
        [str(Path(sys.executable).with_name(name)), *words],
        cwd=folder,
        env={**os.environ, "COLUMNS": "200", **variables},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout + done.stderr


def json_lines(folder: Path, pattern: str) -> list[dict[str, Any]]:
    """Read the one file of JSON lines that a command left."""
    (file,) = folder.rglob(pattern)
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
