"""Fewer coordinates than users have: enough for batches of this size, and quicker."""

import pytest
import torch

from tokengym.agents.probe import scores
from tokengym.agents.probe.worlds import WORLDS

NAMES = ("spread", "shifted", "tie", "lengths", "two turns", "cut", "negative", "rare")


@pytest.fixture(autouse=True, scope="package")
def few_coordinates() -> None:
    scores.COORDINATES = 6_000
    torch.set_num_threads(1)


@pytest.fixture
def eight_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the other groups of TRL's trainer: the command has all."""
    worlds = tuple(one for one in WORLDS if one.name in NAMES)
    monkeypatch.setattr("tokengym.agents.probe.trl_trainers.WORLDS", worlds)
    monkeypatch.setattr(scores, "COORDINATES", 3_000)
