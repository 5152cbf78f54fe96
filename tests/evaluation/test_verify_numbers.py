"""Verifying names each number of an evaluation that was edited: of its ends and results."""

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest

from tokengym.agents.evaluation.config import EvaluationConfig
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.run import run_evaluation
from tokengym.agents.evaluation.verify import changes, verify_evaluation

WORLDS = ("forecast:easy", "energy:small")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> EvaluationFolder:
    """An evaluation of two policies on three Tasks in two worlds."""
    folder = EvaluationFolder(tmp_path_factory.mktemp("evaluation"))
    worlds = WORLDS
    config = EvaluationConfig(worlds, ("noisy", "null"), tasks=3, rollouts=2)
    run_evaluation(config, folder)
    return folder


def numbers(data: Any, where: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of each number, numbers in text included."""
    if isinstance(data, dict | list):
        for name, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from numbers(value, (*where, name))
    elif not isinstance(data, bool | None):
        try:
            float(data)
        except ValueError:
            return
        yield where


def edited(number: float | str) -> Any:
    """Return a number a millionth higher, as text if it was text."""
    if isinstance(number, int):
        return number + 1
    after = float(number) + 1e-6 * max(abs(float(number)), 1.0)
    return repr(after) if isinstance(number, str) else after


def edit(data: Any, where: tuple[str | int, ...]) -> None:
    """Change one number."""
    *above, name = where
    for step in above:
        data = data[step]
    data[name] = edited(data[name])


def named(where: tuple[str | int, ...]) -> str:
    return ".".join(map(str, where))


@pytest.mark.nightly
def test_each_edited_number_of_the_results_is_named(kept: EvaluationFolder) -> None:
    text = kept.file.read_text()
    places = list(numbers(json.loads(text)["results"]))
    assert len(places) > 200
    for where in places:
        data = json.loads(text)
        edit(data["results"], where)
        (found,) = changes("results.", json.loads(text)["results"], data["results"])
        assert found.startswith(f"results.{named(where)} is ")
    assert verify_evaluation(kept).differences == []
    for where in places[:: len(places) // 3]:
        data = json.loads(text)
        edit(data["results"], where)
        kept.file.write_text(json.dumps(data))
        edited = [line.partition(" is ")[0] for line in verify_evaluation(kept).differences]
        assert edited == [f"results.{named(where)}"]
    data = json.loads(text)
    for where in places:
        edit(data["results"], where)
    kept.file.write_text(json.dumps(data))
    edited = [line.partition(" is ")[0] for line in verify_evaluation(kept).differences]
    assert sorted(edited) == sorted(f"results.{named(where)}" for where in places)
    kept.file.write_text(text)


def test_sums_in_another_order_are_the_same(kept: EvaluationFolder) -> None:
    text = kept.file.read_text()
    data = json.loads(text)
    for where in numbers(data["results"]):
        *above, name = where
        inner = data["results"]
        for step in above:
            inner = inner[step]
        if isinstance(inner[name], float):
            inner[name] = math.nextafter(inner[name], math.inf)
    kept.file.write_text(json.dumps(data))
    differences = verify_evaluation(kept).differences
    kept.file.write_text(text)
    assert json.loads(text) != data
    assert differences == []


def test_each_end_of_skill_is_named_when_it_is_edited(kept: EvaluationFolder) -> None:
    text = kept.file.read_text()
    data = json.loads(text)
    wanted = []
    for world, name in zip(data["worlds"], WORLDS, strict=True):
        ends = [where for where in numbers(world) if where[0] != "fingerprints"]
        for where in ends:
            edit(world, where)
        wanted += [f"{name}: {named(where)}" for where in ends]
    kept.file.write_text(json.dumps(data))
    found = [line.partition(" is ")[0] for line in verify_evaluation(kept).differences]
    kept.file.write_text(text)
    # Five policies of forecast and nine of energy: the ends and the rungs between. Forecast states
    # them in two units, and both as the ladder values them.
    assert len(wanted) == (5 * 3 + 1) * 3 + (9 * 2 + 1) * 3
    assert sorted(found) == sorted(wanted)


def test_a_result_that_is_missing_or_too_many_is_named(kept: EvaluationFolder) -> None:
    text = kept.file.read_text()
    data = json.loads(text)
    del data["results"]["policies"][0]["mean_return"]
    data["results"]["pairs"].pop()
    data["worlds"][1]["scale"]["limits_T"].pop()
    kept.file.write_text(json.dumps(data))
    (found,) = verify_evaluation(kept).differences
    assert found.startswith("energy:small: scale.limits_T is ")
    data["worlds"] = json.loads(text)["worlds"]
    kept.file.write_text(json.dumps(data))
    differences = verify_evaluation(kept).differences
    kept.file.write_text(text)
    assert [line.partition(" is ")[0] for line in differences] == [
        "results.policies.0.mean_return",
        "results.pairs",
    ]
