"""What a user reaches from the package: names, help, version, and how objects show themselves."""

import ast
import importlib
import pydoc
import sys
import zipfile
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import tokengym
from tokengym.agents.cli import app

ROOT = Path(__file__).parents[2]
PACKAGES = [
    *("tokengym", "tokengym.envs", "tokengym.rewards", "tokengym.testing"),
    pytest.param(
        "tokengym.agents",
        marks=pytest.mark.skipif(find_spec("tinker") is None, reason="has names of an extra"),
    ),
]


@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_name_is_there_documented_and_listed(name: str) -> None:
    package = importlib.import_module(name)
    assert package.__doc__
    assert set(package.__all__) <= set(dir(package))
    for public in package.__all__:
        assert getattr(package, public) is not None
    with pytest.raises(AttributeError, match="nothing"):
        package.nothing  # noqa: B018


@pytest.mark.parametrize("name", PACKAGES)
def test_help_shows_the_public_names(name: str) -> None:
    shown = pydoc.plain(pydoc.render_doc(name))
    for public in importlib.import_module(name).__all__:
        assert public in shown


@pytest.mark.nightly
def test_there_is_one_version() -> None:
    shown = CliRunner().invoke(app, ["--version"])
    assert shown.exit_code == 0
    assert shown.output.strip() == tokengym.__version__


def test_objects_show_themselves_in_a_line() -> None:
    hostile = "<script>alert(1)</script>\n\x1b[31m & \u202e" + "x" * 500
    world = tokengym.make_world("disruption", "first_year")
    task = world.task("test", 4)
    episode = tokengym.envs.Episode(world, task)
    before = repr(world)
    turn = episode.say(hostile)
    shown: dict[str, tuple[Any, list[str]]] = {
        "task": (task, [task.fingerprint, "test"]),
        "world": (world, ["DisruptionWorld", "first_year"]),
        "turn": (turn, ["predictor", "malformed"]),
        "spec": (world.spec, ["tokengym/Disruption-v2", "challenger"]),
        "specs": (tokengym.specs(), ["tokengym/Disruption-v2", "tokengym/Forecast-v1"]),
        "episode": (episode, [task.fingerprint, "ended by malformed"]),
    }
    for name, (found, parts) in shown.items():
        line = repr(found)
        assert line.isprintable(), name
        assert len(line) < 500, name
        for part in parts:
            assert part in line, name
    assert "predictor to reply" in before
    assert "no episode under way" in repr(world)


def test_a_task_and_an_episode_show_no_answer() -> None:
    world = tokengym.make_world("forecast")
    task = world.task("test", 0)
    for found in (task, tokengym.envs.Episode(world, task), world):
        assert task.answer["outcomes"] not in repr(found)


def test_names_in_an_archived_package_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "from typing import TYPE_CHECKING\n\n"
        "from tokengym.lazy import lazy_attributes\n\n"
        "if TYPE_CHECKING:\n    from archived.slow import Thing\n\n"
        "__getattr__ = lazy_attributes(__name__)\n"
    )
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("archived/__init__.py", text)
        archive.writestr("archived/slow.py", "class Thing:\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path / "archive.zip")
    package = importlib.import_module("archived")
    assert "archived.slow" not in sys.modules
    assert package.Thing.__module__ == "archived.slow"
    with pytest.raises(AttributeError, match="'archived' has no attribute 'Other'"):
        _ = package.Other


@pytest.mark.nightly
def test_no_public_class_name_stands_for_two_classes() -> None:
    classes = Counter(
        node.name
        for package in ("agents", "envs", "rewards")
        for file in (ROOT / package).rglob("*.py")
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert not {name for name, count in classes.items() if count > 1}
