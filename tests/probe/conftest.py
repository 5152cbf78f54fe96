"""Fewer coordinates than users have: enough for batches of this size, and quicker."""

import pytest
import torch

from tokengym.agents.probe import scores


@pytest.fixture(autouse=True, scope="package")
def few_coordinates() -> None:
    scores.COORDINATES = 6_000
    torch.set_num_threads(1)
