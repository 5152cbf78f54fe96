"""Jobs of these tests run on the local service, whatever key the environment holds."""

import pytest

from tokengym.agents.training.connection import KEY_VARIABLE


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the key away; the fixture `served` sets that of its own service."""
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
