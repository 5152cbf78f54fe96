"""Laws of a user's file: every row is used or reported, and nothing else is raised."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.every import every
from tests.forecasting.questions_file import (
    plain,
    prompts_of,
    report_of,
    snapshot,
    world_of,
    write_csv,
    write_lines,
)
from tokengym.envs.core.errors import DataError
from tokengym.envs.core.seeding import SPLITS

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("file", ["river", "arena"])
def test_a_question_of_a_file_is_asked_and_scored(
    file: str, request: pytest.FixtureRequest
) -> None:
    world = world_of(request.getfixturevalue(file))
    for name in SPLITS:
        task = world.task(name, 0)
        turn = world.start(task)
        assert '"Probability:" and the number' in turn.text
        happened = task.answer["outcome"]
        assert world.reply(f"Probability: {happened}").rewards["forecaster"] == 1.0
        assert world.optimum(task)["forecaster"] == (1.0, False)


def test_every_row_is_used_or_reported(river: Path) -> None:
    world = world_of(river)
    report, sizes = report_of(world), {split: world.size(split) or 0 for split in SPLITS}
    assert report is not None
    assert sum(report.rows.values()) == 60
    assert any(note.startswith("questions: 60;") for note in report.notes)
    assert sum(sizes.values()) + report.guards["crossing"].found == 60
    assert sizes["train"] > sizes["test"] > 0
    assert sizes["validation"] > 0


BROKEN: list[tuple[object, str]] = [
    ("{not json", "not JSON"),
    ("[1, 2]", "must be an object"),
    (plain(7, id=None), "'id'"),
    (plain(7, question=" "), "'question'"),
    (plain(7, question=3), "no known format"),
    (plain(7, outcome=None), "'outcome' must be resolved"),
    (plain(7, outcome="ambiguous"), "'ambiguous'"),
    (plain(7, outcome=0.5), "0.5"),
    (plain(7, asked_at="yesterday"), "'yesterday'"),
    (plain(7, asked_at=True), "'asked_at'"),
    (plain(7, asked_at="2026-01-01"), "when the answer was already known"),
    (plain(7, resolves_at=None), "'resolves_at'"),
    (plain(7, outcomes=["one"]), "2 to 26"),
    (plain(7, outcomes=["a", "a"], outcome="a"), "different"),
    (plain(7, outcomes=["a", "b"], outcome="c"), "'c'"),
    (plain(7, price=1.5), "from 0 to 1"),
    (plain(7, sources="news"), "'sources'"),
    (plain(7, sources=[{"date": "2025-01-01"}]), "'text'"),
    (plain(7, event="event 1", question="Another?", id="q1"), "used before"),
]


@every(("row", "reason"), BROKEN)
def test_a_broken_row_is_reported_and_the_rest_is_used(
    row: object, reason: str, tmp_path: Path
) -> None:
    rows = [*(plain(number) for number in range(5)), row, *(plain(n) for n in range(10, 15))]
    world = world_of(write_lines(tmp_path / "mixed.jsonl", rows))
    (rejection,) = report_of(world).every
    assert rejection.startswith("mixed.jsonl:6: ")
    assert reason in rejection
    assert report_of(world).refused == 1


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"markets": "Reds"}, "neither JSON nor a Python literal"),
        ({"markets": "__import__('os').getcwd()"}, "neither JSON nor a Python literal"),
        ({"markets": "[]"}, "market_outcome"),
        ({"market_outcome": "{'Reds': 1}"}, "market_outcome"),
        ({"market_outcome": "{'Reds': 1, 'Blues': 2}"}, "yes or no"),
        ({"sources": "[1]"}, "'sources'"),
        ({"snapshot_time": ""}, "'snapshot_time'"),
        ({"event_ticker": ""}, "'event_ticker'"),
    ],
)
def test_a_broken_snapshot_is_reported_and_the_rest_is_used(
    changes: dict[str, str], reason: str, tmp_path: Path
) -> None:
    rows = [snapshot(0), snapshot(1), snapshot(2, **changes), snapshot(20)]
    world = world_of(write_csv(tmp_path / "arena.csv", rows))
    (rejection,) = report_of(world).every
    assert rejection.startswith("arena.csv:4: ")
    assert reason in rejection


def test_python_literals_are_read_like_json(tmp_path: Path) -> None:
    row = snapshot(
        3,
        markets="['Reds', 'Blues']",
        market_outcome="{'Reds': 1, 'Blues': 0}",
        sources="[{'title': 'A', 'summary': 'It\\'s on', 'ranking': None}]",
    )
    prompts = prompts_of(world_of(write_csv(tmp_path / "a.csv", [snapshot(40), row])))
    assert any("It's on" in prompt for prompt in prompts)


def test_a_cell_longer_than_the_csv_limit_is_read(tmp_path: Path) -> None:
    long = json.dumps([{"title": "Long", "summary": "word " * 50_000}])
    world = world_of(write_csv(tmp_path / "a.csv", [snapshot(1, sources=long), snapshot(40)]))
    assert max(map(len, prompts_of(world))) > 200_000


@pytest.mark.parametrize("wrap", [lambda rows: rows, lambda rows: {"questions": rows, "page": 1}])
def test_a_document_of_rows_is_read_with_its_lines(tmp_path: Path, wrap: Any) -> None:
    rows = [plain(0), plain(1, outcome="maybe"), plain(30)]
    path = tmp_path / "all.json"
    path.write_text(json.dumps(wrap(rows), indent=1), encoding="utf-8")
    world = world_of(path)
    (rejection,) = report_of(world).every
    beginning = path.read_text().split("\n")[int(rejection.split(":")[1]) - 1]
    assert beginning.strip() == "{"


@pytest.mark.parametrize(
    "content",
    ["", "\n\n", "id,question\n", json.dumps(plain(1, outcome=None)), "[", "[]", "{}", "\x00"],
)
def test_a_file_without_a_usable_row_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match="no question can be used"):
        world_of(path)


@given(content=st.binary(max_size=200))
def test_no_file_whatever_raises_anything_but_a_data_error(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("any") / "any"
    path.write_bytes(content)
    with pytest.raises(DataError):
        world_of(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere\.jsonl"):
        world_of(tmp_path / "nowhere.jsonl")
