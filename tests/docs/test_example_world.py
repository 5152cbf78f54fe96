"""The world that the design page adds passes every contract test, in a copy of the checkout."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks

_ROWS = "_ROWS = (\n"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the code and the contract tests, with the example's files in their places."""
    copy = tmp_path_factory.mktemp("checkout")
    skip = shutil.ignore_patterns("__pycache__", "model")
    for name in ("envs", "rewards", "agents", ".ci", "tests/contract"):
        shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=skip)
    for name in ("pyproject.toml", "tests/conftest.py"):
        shutil.copy(ROOT / name, copy / name)
    files = {block.name: block.text for block in blocks(ROOT / "docs" / "design.md") if block.name}
    row = files.pop("envs/registry.py")
    catalogue = copy / "envs" / "catalogue.py"
    before = catalogue.read_text()
    assert before.count(_ROWS) == 1
    catalogue.write_text(before.replace(_ROWS, _ROWS + row))
    for name, text in files.items():
        (copy / name).parent.mkdir(exist_ok=True)
        (copy / name).write_text(text)
    (copy / "envs" / "change" / "__init__.py").write_text('"""Change."""\n')
    return copy


def test_the_example_world_passes_the_contract_tests(checkout: Path) -> None:
    tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/contract", "-k", "Change"]
    done = subprocess.run(
        [sys.executable, *tests],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout / ".ci" / "path")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "passed" in done.stdout
