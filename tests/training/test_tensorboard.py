"""Laws of the metrics for TensorBoard: every finite number, and a word where it is absent."""

from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tokengym.agents.training.folder import trackers
from tokengym.agents.training.folder.monitor import StepRow
from tokengym.agents.training.folder.trackers import (
    event_writer,
    require_tensorboard,
    write_events,
)
from tokengym.envs.core.errors import OptionError

pytestmark = pytest.mark.filterwarnings("ignore")


def row(step: int, reward: float) -> StepRow:
    metrics = {"env/all/reward/total": reward, "loop": "own", "gone": float("nan")}
    return StepRow(step, reward, 0.0, 0.0, 0.0, 0.0, 0.0, None, None, 0.0, 1.0, metrics)


def test_steps_are_read_back_as_they_were_logged(tmp_path: Path) -> None:
    with event_writer(tmp_path) as board:
        for step in range(3):
            write_events(board, row(step, step / 4))
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert events.Tags()["scalars"] == ["env/all/reward/total"]
    found = events.Scalars("env/all/reward/total")
    assert [(one.step, one.value) for one in found] == [(0, 0.0), (1, 0.25), (2, 0.5)]


def test_where_it_is_not_installed_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    require_tensorboard()
    monkeypatch.setattr(trackers, "find_spec", lambda name: None)
    with pytest.raises(OptionError, match="pip install tensorboard"):
        require_tensorboard()
