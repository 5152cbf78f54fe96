"""The recipe of a learned reward runs, and prints its score beside the true return."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tokengym.agents.service import LocalService

# Calls that the SDK deprecates.
pytestmark = pytest.mark.filterwarnings("ignore")

SCRIPT = Path(__file__).parents[2] / "examples" / "reward_model.py"


@pytest.mark.nightly
def test_a_policy_is_trained_on_a_learned_score(
    starting_service: LocalService,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert sum(bool(line.strip()) for line in SCRIPT.read_text().splitlines()) <= 80
    monkeypatch.setenv("TINKER_BASE_URL", starting_service.base_url)
    monkeypatch.setenv("TINKER_API_KEY", starting_service.api_key)
    monkeypatch.setattr(sys, "argv", ["reward_model.py", "--pairs", "64", "--steps", "2"])
    names = runpy.run_path(str(SCRIPT))
    shown = capsys.readouterr().out
    first, second = map(float, re.findall(r"cross-entropy (\S+)", shown))
    assert first == pytest.approx(0.693, abs=0.4)
    assert second < 2.0
    steps = re.findall(r"step \d: score (-?\d+\.\d+), true return (\d\.\d+)", shown)
    assert len(steps) == 2
    assert all(float(score) < 0.0 < float(earned) < 1.0 for score, earned in steps)
    # The judge prefers what was preferred, more often than not.
    ordered = names["data"]
    assert len(ordered) == 64
