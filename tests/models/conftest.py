"""A cache folder for each test, and the reference model where it can be had."""

from pathlib import Path

import pytest
from huggingface_hub import constants


@pytest.fixture
def cache_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Empty caches of ours and of the hub, and no network; returns the cache's home."""
    home = tmp_path / "cache-home"
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(home / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return home


@pytest.fixture(scope="session")
def reference_directory() -> Path:
    """Return the directory of SmolLM2; skips where neither the hub nor the index serves it."""
    from tokengym.agents.models import ModelUnavailableError, resolve_model

    try:
        return resolve_model("smollm2").directory
    except ModelUnavailableError as error:
        pytest.skip(str(error))
