"""Laws of evaluations: figures from rollouts, paired, resumed, and verified exactly."""

import asyncio
import json
import signal
import threading
from collections.abc import Callable
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from tokengym.agents.evaluation.config import EvaluationConfig
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.plan import EvaluationPlan
from tokengym.agents.evaluation.report import evaluation_report
from tokengym.agents.evaluation.results import Results
from tokengym.agents.evaluation.run import run_evaluation
from tokengym.agents.evaluation.verify import verify_evaluation
from tokengym.agents.execution.run_async import run_async
from tokengym.agents.settings import read_plain
from tokengym.envs.core.errors import DataError, OptionError, UnknownWorldError


def asked(*policies: str, worlds: str = "energy warehouse", **changes: Any) -> EvaluationConfig:
    settings = {"tasks": 6, "rollouts": 2, **changes}
    return EvaluationConfig(tuple(worlds.split()), policies or ("noisy", "oracle"), **settings)


def run(config: EvaluationConfig, folder: Path) -> tuple[Results, int]:
    """Evaluate; returns the results and how many rollouts were on record before."""
    known: list[int] = []
    results = run_evaluation(
        config, EvaluationFolder(folder), lambda what, done, total: known.append(done)
    )
    return results, known[0]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, Path]:
    folder = tmp_path_factory.mktemp("evaluation")
    return run(asked(), folder)[0], folder


def test_one_process_plays_in_a_folder_at_a_time(tmp_path: Path) -> None:
    config = asked("null", worlds="forecast", tasks=2, rollouts=1)
    with (
        FileLock(tmp_path / "evaluation.lock"),
        pytest.raises(OptionError, match=r"is being played by another process$"),
    ):
        run(config, tmp_path)
    assert run(config, tmp_path)[1] == 0


@pytest.mark.nightly
def test_it_is_played_again_offline_and_agrees(done: tuple[Results, Path]) -> None:
    _, folder = done
    assert verify_evaluation(EvaluationFolder.open(folder / "evaluation.json")) == (48, [])


def _said_otherwise(data: dict[str, Any]) -> None:
    data["turns"][0]["said"] += " "
    data["turns"][0]["reward"] += 2**-16


def _earned_otherwise(data: dict[str, Any]) -> None:
    data["return"] += 2**-16


def _reported_otherwise(data: dict[str, Any]) -> None:
    data["turns"][-1]["metrics"]["normalized_score"] *= 1 + 1e-6


@pytest.mark.nightly
@pytest.mark.parametrize("change", [_said_otherwise, _earned_otherwise, _reported_otherwise])
def test_a_changed_figure_is_found(
    done: tuple[Results, Path], tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    _, folder = done
    copy = tmp_path / "copy"
    (copy / "rollouts").mkdir(parents=True)
    (copy / "evaluation.json").write_bytes((folder / "evaluation.json").read_bytes())
    for file in (folder / "rollouts").iterdir():
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        if "warehouse" in file.name:
            change(lines[0])
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (copy / "rollouts" / file.name).write_text(text)
    found = verify_evaluation(EvaluationFolder(copy))
    assert found.rollouts == 48
    assert {line.partition(", ")[0] for line in found.differences} == {
        "warehouse:pick noisy",
        "warehouse:pick oracle",
    }


def test_what_was_played_is_not_played_again(tmp_path: Path) -> None:
    config = asked("noisy", "random", worlds="forecast", options={"label": "expected"})
    whole, known = run(config, tmp_path / "whole")
    assert known == 0
    _, known = run(config, tmp_path / "whole")
    assert known == 12
    run(config, tmp_path / "part")
    folder = EvaluationFolder(tmp_path / "part")
    folder.write(config.plan, ())
    for segment in folder.rollouts.segments():
        lines = segment.path.read_bytes().splitlines(keepends=True)
        segment.path.write_bytes(b"".join([*lines[6:9], *lines[1:2]]))
    again, known = run(config, tmp_path / "part")
    assert known == 4
    assert again == whole
    files = [sorted((tmp_path / part / "rollouts").iterdir()) for part in ("whole", "part")]
    for one, other in zip(*files, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_an_unfinished_one_is_not_verified(tmp_path: Path) -> None:
    config = asked("noisy", worlds="forecast")
    run(config, tmp_path)
    folder = EvaluationFolder(tmp_path)
    data = json.loads(folder.file.read_text())
    folder.file.write_text(json.dumps({**data, "results": None}))
    assert verify_evaluation(folder).differences == [
        "the evaluation is not finished: it has no results"
    ]


def test_another_evaluation_is_refused_in_its_folder(done: tuple[Results, Path]) -> None:
    _, folder = done
    with pytest.raises(OptionError, match="holds rollouts of another evaluation"):
        run(asked(seed=1), folder)


def test_first_tables_have_eight_rows_and_name_the_others(done: tuple[Results, Path]) -> None:
    results, folder = done
    scales = EvaluationFolder(folder).saved().scales
    whole, short = (
        evaluation_report(asked().plan, scales, results, whole=all_) for all_ in (True, False)
    )
    for every, first in zip(whole.tables[:-1], short.tables[:-1], strict=True):
        names, shown = ([row[0] for row in table.rows] for table in (every, first))
        assert len(shown) <= 8
        assert [name for name in names if name in shown] == shown
        assert {"return", "skill", "success", "malformed"} <= {*shown}
        left = len(names) - len(shown)
        assert first.note == (f"{left} more measures: --all" if left else "")
    assert "detectable" not in short.tables[-1].header


def test_the_tables_of_a_report_shorten_directories(done: tuple[Results, Path]) -> None:
    results, _ = done
    names = {"noisy": "openai:/home/me/smol@http://127.0.0.1:1/v1", "oracle": "/home/me/runs/one"}
    policies = [replace(one, policy=names[one.policy]) for one in results.policies]
    pairs = [
        replace(one, first=names[one.first], second=names[one.second]) for one in results.pairs
    ]
    report = evaluation_report(asked().plan, (), Results(policies, pairs))
    heads = {cell for table in report.tables for cell in table.header}
    assert {"openai:smol@http://127.0.0.1:1/v1", "one"} <= heads
    assert not any("/home" in head for head in heads)
    assert "one: /home/me/runs/one" in report.lines


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(
            {"policies": ("nobody",)},
            "one of the baselines .* got 'nobody'",
            marks=pytest.mark.skipif(find_spec("tinker") is None, reason="might be a model"),
        ),
        ({"policies": ("mpc",)}, "'mpc' is a baseline, but not of"),
        ({"tasks": 1}, "tasks must be at least 2, got 1"),
        ({"rollouts": 0}, "rollouts must be at least 1, got 0"),
        ({"split": "dev"}, "split must be one of"),
        ({"role": "judge"}, "has the roles"),
        ({"opponents": {"judge": "null"}}, "opponents"),
        ({"policies": ("null", "null")}, "all different"),
        ({"temperature": -1.0}, "temperature must be at least 0"),
    ],
)
def test_what_makes_no_sense_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    policies = change.pop("policies", ("noisy",))
    with pytest.raises(OptionError, match=message):
        run(asked(*policies, **change), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_worlds_are_named_with_their_level() -> None:
    places = asked(worlds="energy:day energy").plan.places
    assert [place.name for place in places] == ["energy:day", "energy:small"]
    with pytest.raises(OptionError, match="has the levels"):
        _ = asked(worlds="energy:night").plan
    with pytest.raises(UnknownWorldError, match="did you mean"):
        asked(worlds="enrgy")
    with pytest.raises(OptionError, match="all different"):
        asked(worlds="energy energy:small")


def test_settings_survive_their_json(tmp_path: Path) -> None:
    plan = asked(price_read=0.5, price_written=2.0, opponents={}, temperature=0.3).plan
    assert read_plain(EvaluationPlan, json.loads(json.dumps(asdict(plan)))) == plan
    assert plan.prices == (0.5, 2.0)
    (tmp_path / "evaluation.json").write_text("{}")
    with pytest.raises(DataError, match="has schema None"):
        EvaluationFolder(tmp_path).saved()
    with pytest.raises(OptionError, match="holds no evaluation"):
        EvaluationFolder.open(tmp_path / "elsewhere")


@pytest.mark.nightly
def test_a_notebook_whose_event_loop_runs_can_evaluate(
    done: tuple[Results, Path], tmp_path: Path
) -> None:
    """Its results are those of a script."""

    async def cell() -> Results:
        return run(asked(), tmp_path)[0]

    assert asyncio.run(cell()) == done[0]


def test_an_interrupt_in_a_notebook_cancels_what_runs() -> None:
    cancelled: list[bool] = []
    main = threading.get_ident()

    async def work() -> None:
        await asyncio.sleep(0.1)  # whoever interrupts sees it run
        signal.pthread_kill(main, signal.SIGINT)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async def cell() -> None:
        with pytest.raises(KeyboardInterrupt):
            run_async(work())

    # As in a notebook; tests may run in the background of a shell, where an interrupt is ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with asyncio.Runner() as runner:
            runner.get_loop().run_until_complete(cell())
    finally:
        signal.signal(signal.SIGINT, before)
    assert cancelled == [True]
