"""Snippets of pages run wherever the integration that they are for is installed."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks

SNIPPETS = {
    block.name: block.text
    for page in ("integrations", "certified")
    for block in blocks(ROOT / "docs" / f"{page}.md")
    if block.name
}
NEEDS = {
    "with_verifiers.py": "verifiers.v1.semantic",  # new in 0.4
    "with_trl.py": "trl",
    "unevaluated_sum.py": "trl math_verify",
    "invalid_moves.py": "textarena",
    "hash_seed.py": "reasoning_gym",
    "wrong_first.py": "skyrl_gym",
    "with_inspect_ai.py": "inspect_ai",
    "with_skyrl_gym.py": "skyrl_gym",
    "with_stable_baselines3.py": "gymnasium",
}


def test_every_snippet_is_known() -> None:
    assert set(SNIPPETS) == set(NEEDS)


@pytest.mark.nightly
@pytest.mark.parametrize("name", NEEDS)
def test_the_snippet_runs(name: str, tmp_path: Path) -> None:
    for module in NEEDS[name].split():
        package, _, _ = module.partition(".")
        if find_spec(package) is None or find_spec(module) is None:
            pytest.skip(f"needs {module}")
    (tmp_path / name).write_text(SNIPPETS[name])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", name], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
