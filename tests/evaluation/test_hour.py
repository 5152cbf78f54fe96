"""Laws of the hour test: an entry is given texts and a second, and its rung is what it earns."""

from pathlib import Path

import pytest

from benchmarks.hour.__main__ import run_entry
from benchmarks.hour.entry import Entry
from tokengym.envs.core.play import play
from tokengym.envs.registry import make_world

LEVEL = "forecast:twins"
ENTRY = """
from __future__ import annotations
import {module}
from dataclasses import dataclass

@dataclass
class Read:
    number: int

def reply(texts, replies):
    assert len(texts) == len(replies) + 1
    {busy}
    print("thinking aloud")
    return "Probability: 0.500"
"""


def entry(folder: Path, module: str = "re", busy: str = "") -> Path:
    path = folder / "entry.py"
    path.write_text(ENTRY.format(module=module, busy=busy))
    return path


@pytest.mark.nightly
def test_an_entry_is_placed_by_what_it_earns(tmp_path: Path) -> None:
    figures, place = run_entry(LEVEL, entry(tmp_path), "test", 4, workers=1)
    assert figures.startswith("4 test Tasks: value 0.8")
    assert "0 with a malformed reply, 0 ended" in figures
    assert (
        "0.000 (all 4 equal) of the best reference policy's gain" in place
    )  # one half is what gains nothing
    (alone,) = run_entry(LEVEL, entry(tmp_path), "train", 2, workers=1)
    assert alone.startswith("2 train Tasks")


@pytest.mark.parametrize("busy", ["while True: pass", "raise ValueError", "exit()"])
def test_who_takes_longer_or_fails_replies_nothing(tmp_path: Path, busy: str) -> None:
    world = make_world("forecast", "twins")
    later = f"if len(texts) > 2: {busy}" if busy.startswith("raise") else f"\n    {busy}"
    path = entry(tmp_path, busy=later)
    with Entry(path, seconds=0.2) as runs:
        played = play(world, world.task("test", 0), runs)
    assert runs.late
    assert played.replies[-1] == ""
    assert [*map(bool, played.replies)] == (
        [True, True, *[False] * 3] if "len" in later else [False] * 5
    )


def test_an_entry_cannot_load_the_package(tmp_path: Path) -> None:
    with Entry(entry(tmp_path, module="tokengym")) as runs:
        assert runs.late
