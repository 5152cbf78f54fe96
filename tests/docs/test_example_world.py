"""The package that the design page names is installed by pip and works like a built-in world."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.packages import CHANGE, pip_install
from tests.docs.pages import ROOT

RunFolder = Callable[..., str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that is not the checkout, with the package, and installed in `site`."""
    folder = tmp_path_factory.mktemp("example")
    shutil.copytree(CHANGE, folder / "tokengym_change")
    pip_install(folder / "tokengym_change", folder / "site")
    return folder


@pytest.fixture(scope="module")
def environment(folder: Path) -> dict[str, str]:
    """Variables of a process that finds the package."""
    path = os.pathsep.join([str(ROOT / "src"), str(folder / "site")])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def run(folder: Path, environment: dict[str, str]) -> RunFolder:
    """Run Python where the package is installed."""

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.mark.nightly
def test_it_keeps_every_law(run: RunFolder) -> None:
    tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tokengym_change/test_change.py"]
    assert "1 passed" in run(*tests)


@pytest.mark.nightly
def test_gymnasium_steps_it_before_its_package_is_imported(run: RunFolder) -> None:
    code = """
import sys, gymnasium, tokengym
assert "tokengym_change" not in sys.modules
env = gymnasium.make("acme/Change-v0", mode="text")
question, _ = env.reset(options={"split": "test", "index": 0})
best = env.unwrapped.world.task("test", 0).answer["best"]
print(env.step("PAY " + " ".join(map(str, best)))[1:4])
vector = gymnasium.make_vec("acme/Change-v0", num_envs=2, vectorization_mode="async")
vector.reset(seed=0)
vector.close()
"""
    assert run("-c", code).split() == ["(1.0,", "True,", "False)"]


@pytest.mark.nightly
def test_the_command_line_knows_it(run: RunFolder) -> None:
    shown = run("-m", "tokengym.agents", "worlds")
    assert "acme/Change-v0\n  Pay an amount with as few coins as possible." in shown
    assert "earned 1.0000" in run("-m", "tokengym.agents", "play", "change", "--policy", "oracle")
