"""What goes wrong with the files of a run is reported in a sentence and loses nothing."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from rich.console import Console
from typer.testing import CliRunner

from tests.evaluation.test_compare import finished
from tests.training.test_monitor import line
from tokengym.agents.cli import app
from tokengym.agents.cli.failures import describe, write_anything
from tokengym.agents.training.folder.run import SCHEMA_VERSION, RunFolder
from tokengym.agents.training.presets import preset
from tokengym.agents.training.progress import Progress
from tokengym.agents.training.resume import forget_unsaved_steps, mend_run

CONFIG = preset("forecast", evaluation_tasks=8, max_tokens=16)
STATES = [
    {"name": f"00000{step}", "batch": step, "state_path": f"tinker://s:train:0/weights/{step}"}
    for step in (1, 2, 3)
]


class Fault(NamedTuple):
    """What is done to the folder of a run, and the command that meets it.

    Attributes:
        done: in words.
        said: what is reported.
        make: does it.
        meet: returns or raises what is said.
        lost: whether a step must be done again.
    """

    done: str
    said: str
    make: Callable[[Path], object]
    meet: Callable[[Path], str]
    lost: bool = False


def lines(rows: object) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)  # type: ignore[attr-defined]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A finished run of three steps."""
    found = finished(tmp_path / "run", CONFIG, 0.1, 0.6)
    steps = [{**json.loads(line(step)), "progress/done_frac": (step + 1) / 3} for step in range(3)]
    (found / "metrics.jsonl").write_text(lines(steps))
    (found / "checkpoints.jsonl").write_text(lines(STATES))
    state = found / "service" / "runs" / "s:train:0" / "weights" / "000003.safetensors"
    state.parent.mkdir(parents=True)
    state.touch()
    return found


def resume(folder: Path) -> str:
    run = RunFolder(folder)
    with run.lock():
        assert run.config.world == CONFIG.world
        said = [*mend_run(run), *forget_unsaved_steps(run)]
    # Mended once, there is nothing more to say, and a next row stands on a line of its own.
    assert [*mend_run(run), *forget_unsaved_steps(run)] == []
    for name in ("metrics.jsonl", "checkpoints.jsonl"):
        rows = (folder / name).read_text()
        assert rows.endswith("\n")
        assert [json.loads(row) for row in rows.splitlines()]
    return "; ".join(said)


def compare(folder: Path) -> str:
    shown = CliRunner().invoke(app, ["compare", str(folder)], catch_exceptions=False)
    return shown.output


def append(name: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text((folder / name).read_text() + text)


def write(name: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(text)


def put_directory(name: str) -> Callable[[Path], object]:
    def make(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).mkdir()

    return make


def without_outcome(make: Callable[[Path], object]) -> Callable[[Path], object]:
    def unfinished(folder: Path) -> None:
        (folder / "outcome.json").unlink()
        make(folder)

    return unfinished


FAULTS = [
    Fault(
        "half a line at the end of `metrics.jsonl`",
        "run/metrics.jsonl: 1 damaged line was cut off",
        append("metrics.jsonl", '{"step": 3, "pr'),
        resume,
    ),
    Fault(
        "two rows glued together in `metrics.jsonl`",
        "run/metrics.jsonl: 1 damaged line was cut off",
        append("metrics.jsonl", '{"step": 3{"step": 3}\n'),
        resume,
    ),
    Fault(
        "a kill after a step, before it is saved",
        "1 step was completed but not saved: resuming from step 2",
        write("checkpoints.jsonl", lines(STATES[:2])),
        resume,
        lost=True,
    ),
    Fault(
        "a `checkpoints.jsonl` of 0 bytes",
        (
            "run has 3 completed steps, but its checkpoints.jsonl records no state to "
            "resume from: restore that file, or train in another folder"
        ),
        without_outcome(write("checkpoints.jsonl", "")),
        resume,
    ),
    Fault(
        "half an `evaluation.json`, in `compare`",
        (
            "run/evaluation.json cannot be read: Expecting property name enclosed in double "
            "quotes: line 1 column 13 (char 12)"
        ),
        write("evaluation.json", '{"schema": {'),
        compare,
    ),
    Fault(
        "a foreign `outcome.json`, in `compare`",
        (
            "run/outcome.json is damaged: collapse: Field required; delete it, and a "
            "resumed run makes it again"
        ),
        write("outcome.json", '{"state": "completed"}'),
        compare,
    ),
    Fault(
        "`steps: []` in `settings.json`",
        "run/settings.json is damaged: steps: Input should be a valid integer",
        write(
            "settings.json",
            json.dumps({**CONFIG.to_dict(), "schema_version": SCHEMA_VERSION, "steps": []}),
        ),
        resume,
    ),
    Fault(
        "a directory called `run.lock`",
        "run/run.lock: is a directory",
        put_directory("run.lock"),
        resume,
    ),
]


@pytest.mark.nightly
@pytest.mark.parametrize("fault", FAULTS, ids=[fault.done for fault in FAULTS])
def test_a_fault_is_reported_in_a_sentence(folder: Path, fault: Fault) -> None:
    fault.make(folder)
    try:
        said = fault.meet(folder)
    except Exception as error:
        said = describe(error)
    assert "Traceback" not in said
    assert "\n" not in said
    assert said.replace(f"{folder.parent}/", "") == fault.said
    if not fault.lost and (folder / "metrics.jsonl").is_file():
        assert RunFolder(folder).steps_done == 3


def test_paths_that_look_like_markup_are_shown_unchanged(tmp_path: Path) -> None:
    named = finished(tmp_path / "a[bold]b[", CONFIG, 0.1, 0.6)
    assert "a[bold]b[" in compare(named)
    shown = io.StringIO()
    Progress(Console(file=shown, soft_wrap=True)).say("run folder: x[/y] run[bold]")
    assert shown.getvalue() == "run folder: x[/y] run[bold]\n"


def test_an_output_that_cannot_say_it_says_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    output = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(output, encoding="ascii"))
    write_anything()
    print("0.5 ± 0.1")
    sys.stdout.flush()
    assert output.getvalue() == b"0.5 ? 0.1\n"
