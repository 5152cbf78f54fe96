"""Continuous integration says what it did not check, and no failure of a part is lost."""

import importlib.util
import os
import re
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


@pytest.mark.nightly
def test_notes_are_printed_at_once_and_last(
    unchecked: ModuleType, reports: tuple[Path, Path], tmp_path: Path
) -> None:
    script = [sys.executable, str(ROOT / ".ci" / "unchecked.py")]
    place = {unchecked.VARIABLE: str(tmp_path)}
    for _ in range(2):
        said = subprocess.check_output([*script, "note", "no", "network"], env=place, text=True)
        assert said == "not checked: no network\n"
    (tmp_path / "tests.xml").write_bytes(reports[0].read_bytes())
    printed = subprocess.check_output(script, env=place, text=True).splitlines()
    lines = ["no network", *unchecked.not_run(reports[:1])]
    assert printed == ["== not checked by this run", *(f"  {line}" for line in lines)]


def test_continuous_integration_runs_what_people_run_and_forgives_nothing_unsaid() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert "trap 'python3 .ci/unchecked.py" in script
    assert 'python3 src/tokengym test -m "not nightly" ' in script
    assert "python3 src/tokengym docs\n" in script  # any option would hide or change warnings
    assert "--quiet" not in script
    assert "||" not in script


@pytest.mark.nightly
def test_tests_of_what_changed_begin_with_those_that_import_it() -> None:
    listed = "import changed; print(*changed.concerned(['rewards/chance.py']))"
    place = dict(os.environ, PYTHONPATH=str(ROOT / ".ci"))
    found = subprocess.check_output([sys.executable, "-c", listed], env=place, text=True).split()
    assert found[0] == "tests/rewards/test_chance.py"
    assert "tests/contract/test_worlds.py" in found
    assert "tests/intake/test_times.py" not in found


@pytest.mark.nightly
def test_what_no_time_is_left_for_is_skipped_and_listed(
    unchecked: ModuleType, tmp_path: Path
) -> None:
    report = tmp_path / "report.xml"
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
    tests = "tests/docs/test_prose.py"
    subprocess.run([sys.executable, *words, "--minutes=0", tests], check=True, cwd=ROOT)
    (line,) = unchecked.not_run([report])
    assert re.fullmatch(r"\d+ skipped, no time was left: tests.docs.test_prose", line)
