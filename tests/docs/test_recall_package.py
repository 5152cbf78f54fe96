"""The package of the memory test: it keeps every law, and one command trains all three ways."""

import json
import runpy
import sys
from pathlib import Path

import pytest

import tokengym
from tests.docs.pages import ROOT
from tokengym.agents.service import LocalService
from tokengym.agents.training.folder.run import RunFolder
from tokengym.envs import baselines, play
from tokengym.testing import check_world

SOURCE = ROOT / "examples" / "tokengym_recall" / "src"


@pytest.fixture(autouse=True)
def registered(fresh_registry: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(SOURCE)
    from tokengym_recall import SPEC

    tokengym.register(SPEC)


@pytest.mark.nightly
def test_recall_keeps_every_law() -> None:
    check_world("acme/Recall-v0")


@pytest.mark.parametrize("level", ["one", "four"])
def test_one_bit_says_whether_all_digits_are_right(level: str) -> None:
    many, one = (tokengym.make_world("recall", level=level, bits=bits) for bits in ("many", "one"))
    task = many.task("train", 0)
    known = task.instance["digits"]
    for right in range(len(known) + 1):
        said = [digit if at < right else (digit + 1) % 10 for at, digit in enumerate(known)]
        replies = ["NEXT"] * (many.turn_limit - 1) + [f"RECALL {' '.join(map(str, said))}"]
        earned = []
        for world in (many, one):
            world.start(world.adopt(task))
            turns = [world.reply(reply) for reply in replies]
            assert [turn.done for turn in turns] == [False] * (len(replies) - 1) + [True]
            earned.append(turns[-1].rewards["memory"])
        assert earned[0] == pytest.approx(right / len(known), abs=1e-4)
        assert earned[1] == float(right == len(known))
    best = play(many, task, baselines("recall")["oracle"])
    assert best.returns["memory"] == many.optimum(task)["memory"].value == 1.0


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
def test_one_command_trains_three_ways_and_draws_what_each_learned(
    starting_service: LocalService,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TINKER_API_KEY", starting_service.api_key)
    words = ["--runs", str(tmp_path), "--points", "1,2", "--form-steps", "1", "--groups", "2"]
    words += ["--group-size", "2", "--tasks", "2", "--model", starting_service.model_name]
    monkeypatch.setattr(sys, "argv", ["recall", *words, "--base-url", starting_service.base_url])
    runpy.run_module("tokengym_recall", run_name="__main__")
    rows = json.loads((tmp_path / "recall.json").read_text())
    assert len(rows) == 3
    assert all(list(row) == ["0", "4", "8"] for row in rows.values())
    assert (tmp_path / "recall.png").stat().st_size > 1000
    for name in ("sft-many", "train-many", "train-one"):
        config = RunFolder(tmp_path / name).config
        assert config.start == str((tmp_path / "form").resolve())
        assert config.steps == 2
    shown = [line for line in capsys.readouterr().out.splitlines() if " after 4" in line]
    runpy.run_module("tokengym_recall", run_name="__main__")
    assert json.loads((tmp_path / "recall.json").read_text()) == rows
    # Nothing is trained again: all that is printed is what was found before.
    assert capsys.readouterr().out.splitlines()[:-1] == shown
