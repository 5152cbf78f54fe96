"""The files around the project agree with each other: versions, shortcuts, workflows."""

import importlib.machinery
import importlib.util
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.docs.pages import ROOT
from tests.warm import run_python
from tokengym.envs.registry import specs

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.fixture(scope="module")
def start() -> ModuleType:
    """The script `.ci/start` as a module."""
    loader = importlib.machinery.SourceFileLoader("ci_start", str(ROOT / ".ci" / "start"))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    script = importlib.util.module_from_spec(spec)
    loader.exec_module(script)
    return script


def requirements() -> Iterator[Requirement]:
    """What `.ci/start` installs, as pyproject.toml asks for it."""
    extras, groups = PROJECT["project"]["optional-dependencies"], PROJECT["dependency-groups"]
    (everything,) = extras["all"]
    lists = [extras[name] for name in sorted(Requirement(everything).extras)]
    lists += [
        PROJECT["project"]["dependencies"],
        *(groups[name] for name in ("dev", "full", "docs", "check")),
    ]
    yield from (Requirement(line) for lines in lists for line in lines if isinstance(line, str))


@pytest.mark.parametrize("statuses", [[-9, 0], [0, -15, 0], [1, 0], [0, 2]])
def test_a_command_fails_if_one_of_its_programs_does(
    start: ModuleType, statuses: list[int]
) -> None:
    assert start.first_failure(statuses) == next(status for status in statuses if status)
    assert start.first_failure([0, 0]) == 0


def test_the_tested_versions_are_those_that_the_project_asks_for(start: ModuleType) -> None:
    lines = (ROOT / ".ci" / "constraints.txt").read_text().splitlines()
    pins = [Requirement(line) for line in lines if not line.startswith("#")]
    tested = {
        canonicalize_name(pin.name): str(pin.specifier).removeprefix("==")
        for pin in pins
        if pin.marker is None or pin.marker.evaluate()
    }
    tested[canonicalize_name("torch")] = start.TORCH
    asked = [found for found in requirements() if found.marker is None or found.marker.evaluate()]
    missing = [str(found) for found in asked if canonicalize_name(found.name) not in tested]
    assert not missing, "renew .ci/constraints.txt as CONTRIBUTING.md says"
    outside = [
        f"{found}, tested with {tested[canonicalize_name(found.name)]}"
        for found in asked
        if not found.specifier.contains(tested[canonicalize_name(found.name)], prereleases=True)
    ]
    assert not outside


def test_the_workflow_calls_continuous_integration_on_every_version() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert "run: .ci/run\n" in workflow
    declared = [
        line.rpartition(" ")[2]
        for line in PROJECT["project"]["classifiers"]
        if re.search(r":: 3\.\d+$", line)
    ]
    assert f"python: {str(declared).replace(chr(39), chr(34))}" in workflow


def test_the_package_imports_no_module_that_windows_lacks() -> None:
    lacking = {"crypt", "fcntl", "grp", "posix", "pty", "pwd", "resource", "termios", "tty"}
    imports = re.compile(rf"^\s*(?:import|from) (?:{'|'.join(lacking)})\b", re.MULTILINE)
    files = [
        file
        for name in ("agents", "envs", "rewards", "src")
        for file in (ROOT / name).rglob("*.py")
    ]
    assert files
    assert not [str(file) for file in files if imports.search(file.read_text(encoding="utf-8"))]


def test_only_one_file_states_the_version() -> None:
    assert "version" in PROJECT["project"]["dynamic"]
    source = ROOT / PROJECT["tool"]["hatch"]["version"]["path"]
    assert re.search(r'^__version__ = "\d+\.\d+\.\d+"$', source.read_text(), re.MULTILINE)
    assert "\nversion:" not in (ROOT / "CITATION.cff").read_text()


@pytest.mark.nightly
def test_quick_tests_check_four_laws_beyond_the_first_levels(tmp_path: Path) -> None:
    said = tmp_path / "said.txt"
    words = ["-m", "pytest", "-p", "no:cacheprovider", "--collect-only", "-q", "-m", "not nightly"]
    run_python([*words, "tests/contract/test_worlds.py"], ROOT, os.environ, said)
    collected = re.findall(r"every_law\[(\w+)-(\w+-v\d)-(\w+)\]", said.read_text())
    for world, spec in specs().items():
        laws = {
            level: {law for law, *case in collected if case == [world.rpartition("/")[2], level]}
            for level in spec.levels
        }
        first = laws.pop(spec.levels[0])
        assert len(first) > 20
        assert all(len(found) == 4 and found < first for found in laws.values())


def test_names_of_tests_have_at_most_ten_words() -> None:
    files = [*ROOT.glob("tests/**/*.py"), *ROOT.glob("examples/**/*.py")]
    texts = [file.read_text(encoding="utf-8") for file in files]
    found = [name for text in texts for name in re.findall(r"def test_(\w+)", text)]
    assert len(found) > 1000
    assert [name for name in found if len(name.split("_")) > 10] == []
