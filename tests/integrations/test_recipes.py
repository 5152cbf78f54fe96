"""The cookbook's recipes, unmodified: three steps on the starting policy, without a network."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("tinker_cookbook", reason="needs the extra `tinker`")

from tests.docs.pages import ROOT
from tests.integrations.recipes import MODEL, RUNS, STEPS, stand_ins, table
from tests.warm import run_python
from tokengym.agents.service import LocalService
from tokengym.agents.service.client import spawn
from tokengym.agents.toy_model import MODEL_DIR


def test_the_page_has_the_table() -> None:
    assert table() in (ROOT / "docs" / "service.md").read_text()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, str]]]:
    """A folder with the starting policy under a known name, and variables that name its service."""
    root = tmp_path_factory.mktemp("recipes")
    shutil.copytree(MODEL_DIR, root / MODEL)
    stand_ins(root)
    with pytest.MonkeyPatch.context() as patch:
        # The model's name is a path from where the service and the recipes run.
        patch.chdir(root)
        patch.setattr(LocalService, "spawn", staticmethod(spawn))
        with LocalService(MODEL, state_dir="state", threads=1) as service:
            named = {"TINKER_BASE_URL": service.base_url, "TINKER_API_KEY": service.api_key}
            offline = {
                "HF_HUB_OFFLINE": "1",
                "WANDB_MODE": "disabled",
                "HF_HOME": str(root / "hub"),
            }
            yield root, {**os.environ, **named, **offline}


@pytest.mark.nightly
@pytest.mark.parametrize("recipe", RUNS)
def test_a_recipe_takes_three_steps(recipe: str, place: tuple[Path, dict[str, str]]) -> None:
    folder, environment = place
    log, output = folder / recipe, folder / f"{recipe}.txt"
    settings = [f"model_name={MODEL}", f"log_path={log}", *RUNS[recipe]]
    words = ["-m", f"tinker_cookbook.recipes.{recipe}", *settings]
    assert run_python(words, folder, environment, output) == 0, output.read_text()[-3000:]
    rows = [json.loads(line) for line in (log / "metrics.jsonl").read_text().splitlines()]
    assert {row["step"] for row in rows if "step" in row} >= set(range(STEPS))
