"""Continuous integration says what it did not check, and no failure of a part is lost."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.docs.pages import ROOT

SEVERAL = """
import os, pytest
def test_runs(): pass
@pytest.mark.skipif("ELSEWHERE" not in os.environ, reason="needs the machine")
def test_of_the_other(): pass
def test_of_none(): pytest.skip("no browser is installed")
@pytest.mark.xfail
def test_of_a_fault(): raise ValueError
"""
WHOLE = """
import os, pytest
if "{name}" not in os.environ:
    pytest.skip("needs the extra `{name}` (the newest)", allow_module_level=True)
def test_runs(): pass
"""


@pytest.fixture(scope="module")
def unchecked() -> ModuleType:
    """The module `.ci/unchecked.py`."""
    spec = importlib.util.spec_from_file_location("ci_unchecked", ROOT / ".ci" / "unchecked.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Reports of one run, and of another in an environment that has more."""
    folder = tmp_path_factory.mktemp("reports")
    (folder / "test_several.py").write_text(SEVERAL)
    for name in ("ELSEWHERE", "NOWHERE"):
        (folder / f"test_{name.lower()}.py").write_text(WHOLE.format(name=name))
    made = folder / "here.xml", folder / "there.xml"
    for report, more in zip(made, ({}, {"ELSEWHERE": "1"}), strict=True):
        words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
        subprocess.run([sys.executable, *words, str(folder)], check=True, env=more, cwd=folder)
    return made


@pytest.mark.nightly
def test_tests_that_no_environment_ran_are_listed_by_reason(
    unchecked: ModuleType, reports: tuple[Path, Path]
) -> None:
    nowhere = [
        "1 skipped, expected to fail: test_several",
        "1 skipped, needs the extra `NOWHERE` (the newest): test_nowhere",
        "1 skipped, no browser is installed: test_several",
    ]
    assert unchecked.not_run(reports) == nowhere
    elsewhere = [
        "1 skipped, needs the extra `ELSEWHERE` (the newest): test_elsewhere",
        "1 skipped, needs the machine: test_several",
    ]
    assert unchecked.not_run(reports[:1]) == sorted([*nowhere, *elsewhere])


@pytest.mark.nightly
def test_a_module_none_of_whose_tests_ran_is_found(
    unchecked: ModuleType, reports: tuple[Path, Path]
) -> None:
    assert unchecked.wholly_skipped(reports[0]) == {"test_elsewhere", "test_nowhere"}
    assert unchecked.wholly_skipped(reports[1]) == {"test_nowhere"}
