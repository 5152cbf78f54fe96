"""Laws of a build that is interrupted or meets damage."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.disruption.literature_files import (
    WORKS,
    as_openalex,
    recipe,
    tree,
    write_part,
    write_parts,
)
from tokengym.envs.core.errors import DataError, OptionError
from tokengym.envs.disruption.data import build_papers, load_papers
from tokengym.envs.disruption.data.manifest import MANIFEST


@pytest.mark.nightly
def test_an_interrupted_build_goes_on_and_leaves_the_same_bytes(
    snapshot: Path, built: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"

    def stop_at(stage: str, done: int) -> Callable[[str, int, int], None]:
        def progress(now: str, count: int, _total: int) -> None:
            if (now, count) == (stage, done):
                raise KeyboardInterrupt

        return progress

    for stage, done in (("read works", 2), ("build graph", 1), ("score years", 7), ("audit", 0)):
        with pytest.raises(KeyboardInterrupt):
            build_papers(recipe(snapshot), out, progress=stop_at(stage, done))
        assert not (out / MANIFEST).exists()
        assert [*(out / ".steps").glob("*/notes.json")]
    build_papers(recipe(snapshot), out, progress=lambda *_: None)
    assert tree(out) == tree(built)


@pytest.mark.nightly
def test_finished_steps_are_repeated_only_for_changed_sources(tmp_path: Path) -> None:
    paths, out = write_parts(tmp_path / "snapshot", WORKS), tmp_path / "out"

    def stop(stage: str, done: int, _total: int) -> None:
        if stage == "score years" and done == 3:
            raise KeyboardInterrupt

    def interrupted() -> dict[Path, int]:
        with pytest.raises(KeyboardInterrupt):
            build_papers(recipe(tmp_path / "snapshot"), out, progress=stop)
        return {path: path.stat().st_mtime_ns for path in (out / ".steps").glob("*/notes.json")}

    done = interrupted()
    assert interrupted() == done
    write_part(paths[0], (json.dumps(as_openalex(work)) for work in WORKS[::5]))
    again = interrupted()
    assert again.keys() == done.keys()
    assert not again.items() & done.items()


def test_a_complete_set_is_left_alone(snapshot: Path, built: Path, tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in built.iterdir()}
    build_papers(recipe(snapshot), built)
    assert {path: path.stat().st_mtime_ns for path in built.iterdir()} == before
    with pytest.raises(DataError, match="other arguments"):
        build_papers(recipe(snapshot, seed=1), built)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(DataError, match="not a set of papers"):
        build_papers(recipe(snapshot), tmp_path)


# Damage


def damaged_snapshot(root: Path) -> None:
    paths = write_parts(root, WORKS)
    paths[1].write_bytes(paths[1].read_bytes()[:-3000])
    lines = [json.dumps(as_openalex(work)) for work in WORKS[2::5]]
    wrong = ['{"id": "X", "publication_year": 1}', *["[1]"] * 48]
    write_part(paths[2], [*lines[:9], "{damaged", *lines[9:], *wrong])


@pytest.mark.nightly
def test_damage_is_refused_by_name_or_skipped_and_named(tmp_path: Path) -> None:
    damaged_snapshot(tmp_path / "snapshot")
    source = tmp_path / "snapshot"
    with pytest.raises(DataError, match=r"2024-03-01.part_000.gz:10: not JSON"):
        build_papers(recipe(source), tmp_path / "out")
    assert not (tmp_path / "out" / MANIFEST).exists()
    manifest = build_papers(recipe(source, skip_corrupt=True), tmp_path / "skipped")
    assert set(manifest["skipped"]) == {
        f"data/works/updated_date=2024-0{month}-01/part_000.gz" for month in (2, 3)
    }
    reasons = [reason for listed in manifest["skipped"].values() for reason in listed]
    assert [part for part in reasons if "cannot be read after line" in part]
    assert [part for part in reasons if "part_000.gz:10: not JSON" in part]
    assert [part for part in reasons if part == "and 30 more"]
    assert [part for part in reasons if "its id must read W and digits, got 'X'" in part]
    assert not any(str(tmp_path) in reason for reason in reasons)


@pytest.mark.nightly
def test_a_file_unlike_the_manifest_is_refused(snapshot: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    build_papers(recipe(snapshot), out)
    intact = tree(out)
    path = out / "train-0000.jsonl"
    path.write_text(path.read_text().replace("Study", "study"))
    with pytest.raises(DataError, match=r"train-0000\.jsonl is not the file"):
        load_papers(out)
    build_papers(recipe(snapshot), out)
    assert tree(out) == intact
    (out / MANIFEST).write_text("{}")
    with pytest.raises(DataError, match="not a folder of papers"):
        load_papers(out)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"last_year": None}, "last_year"),
        ({"balance": "some"}, "balance"),
        ({"rule": "guess"}, "rule"),
        ({"target": "fame"}, "target"),
        ({"share": 0.7}, "share"),
        ({"window": 0}, "window"),
        ({"shuffles": 1}, "shuffles"),
        ({"texts": Path("texts")}, "texts go with the tables of SciSciNet"),
        ({"target": "novelty", "shuffles": 0}, "novelty"),
    ],
)
def test_a_mistake_in_a_recipe_is_named(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    write_parts(tmp_path / "source", WORKS[:5])
    with pytest.raises(OptionError, match=message):
        build_papers(recipe(tmp_path / "source", **changes), tmp_path / "out")


def test_missing_and_short_sources_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no"):
        build_papers(recipe(tmp_path / "nowhere"), tmp_path / "out")
    (tmp_path / "works.csv").write_text("id,title\n")
    with pytest.raises(DataError, match=r"holds no JSON.* It has works\.csv"):
        build_papers(recipe(tmp_path), tmp_path / "out")
    write_parts(tmp_path / "short", WORKS[:200])
    with pytest.raises(DataError, match="cannot be split with --window 5"):
        build_papers(recipe(tmp_path / "short"), tmp_path / "out")
