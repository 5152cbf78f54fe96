"""A damaged model directory is refused in one sentence, before anything of its sizes is made."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from tests.every import every
from tests.service.damaged_models import DAMAGES
from tokengym.agents.service.engine.base_model import BaseModel
from tokengym.agents.service.errors import ModelDirectoryError


@every("damage", DAMAGES)
def test_a_damaged_model_is_refused_at_once(damage: str, model_dir: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(model_dir, tmp_path / "model"))
    DAMAGES[damage](folder)
    started = time.monotonic()
    with pytest.raises(ModelDirectoryError, match=str(folder)) as caught:
        BaseModel(folder, "cpu")
    assert time.monotonic() - started < 20
    assert len(str(caught.value)) < 600
