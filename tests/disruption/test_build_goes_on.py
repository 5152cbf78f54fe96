"""Laws of a build that is interrupted or meets damage."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.disruption.literature_files import (
    LAST_YEAR,
    WORKS,
    as_openalex,
    recipe,
    tree,
    write_part,
    write_parts,
    write_tables,
)
from tokengym.envs.core.errors import DataError, OptionError
from tokengym.envs.disruption.data import Recipe, build_papers, load_papers, write_papers
from tokengym.envs.disruption.data.manifest import MANIFEST
from tokengym.envs.disruption.paper import Paper


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
        kept = {path: path.stat().st_mtime_ns for path in (out / ".steps").glob("*/done.json")}
        assert kept
    build_papers(recipe(snapshot), out, progress=lambda *_: None)
    assert tree(out) == tree(built)


@pytest.mark.nightly
def test_a_users_papers_go_through_the_same_steps(
    tmp_path: Path, labelled: dict[str, Paper]
) -> None:
    source, out = tmp_path / "mine", tmp_path / "out"
    source.mkdir()
    listed = list(labelled.values())
    for k in range(3):
        write_papers(source / f"{k}.jsonl", listed[k::3])
    made = Recipe(kind="jsonl", source=source, balance="none", rule="percentile")
    whole = tmp_path / "whole"
    build_papers(made, whole)
    for stage, done in (("read papers", 2), ("label papers", 1), ("write texts", 1)):

        def stop(now: str, count: int, _total: int, at: Any = (stage, done)) -> None:
            if (now, count) == at:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            build_papers(made, out, progress=stop)
        assert not (out / MANIFEST).exists()
    with ThreadPoolExecutor(2) as pool:
        build_papers(made, out, executor=pool)
    assert tree(out) == tree(whole)


@pytest.mark.nightly
def test_of_many_damaged_lines_the_first_are_named(
    tmp_path: Path, labelled: dict[str, Paper]
) -> None:
    path = tmp_path / "mine.jsonl"
    write_papers(path, labelled.values())
    with path.open("a") as file:
        file.write("{damaged\n" * 50)
    made = Recipe(kind="jsonl", source=path, balance="none", skip_corrupt=True)
    (reasons,) = build_papers(made, tmp_path / "out")["skipped"].values()
    assert len(reasons) == 21
    assert reasons[0].startswith(f"mine.jsonl:{len(labelled) + 1}: not JSON")
    assert reasons[-1] == "and 30 more"


@pytest.mark.nightly
def test_a_finished_step_is_not_done_again_and_a_damaged_one_is(
    snapshot: Path, built: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"

    def stop(stage: str, done: int, _total: int) -> None:
        if stage == "score years" and done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_papers(recipe(snapshot), out, progress=stop)
    done = {path: path.stat().st_mtime_ns for path in (out / ".steps").glob("*/done.json")}
    victim = next(path.parent for path in done if path.parent.name.startswith("works"))
    (victim / "year.npy").write_bytes(b"damaged")
    with pytest.raises(KeyboardInterrupt):
        build_papers(recipe(snapshot), out, progress=stop)
    for path, when in done.items():
        assert (path.stat().st_mtime_ns == when) == (path.parent != victim)
    build_papers(recipe(snapshot), out)
    assert tree(out) == tree(built)


def test_a_set_that_is_complete_is_left_alone_and_another_one_refused(
    snapshot: Path, built: Path, tmp_path: Path
) -> None:
    before = {path: path.stat().st_mtime_ns for path in built.iterdir()}
    build_papers(recipe(snapshot), built)
    assert {path: path.stat().st_mtime_ns for path in built.iterdir()} == before
    with pytest.raises(DataError, match="other arguments"):
        build_papers(recipe(snapshot, seed=1), built)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(DataError, match="not a set of papers"):
        build_papers(recipe(snapshot), tmp_path)


@pytest.mark.nightly
def test_threads_and_one_worker_leave_the_same_bytes(
    snapshot: Path, built: Path, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(3) as pool:
        build_papers(recipe(snapshot), tmp_path / "out", executor=pool)
    assert tree(tmp_path / "out") == tree(built)


@pytest.mark.nightly
def test_a_killed_command_goes_on_and_leaves_the_same_bytes(
    snapshot: Path, built: Path, tmp_path: Path
) -> None:
    pytest.importorskip("typer")
    out = tmp_path / "out"
    command = [
        sys.executable, "-m", "tokengym.agents", "data", "papers", str(snapshot), str(out),
        "--kind", "openalex", "--last-year", str(LAST_YEAR), "--shuffles", "5", "--balance",
        "split", "--workers",
    ]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    first = subprocess.Popen(
        [*command, "2"], env=environment, stdout=subprocess.DEVNULL, start_new_session=True
    )
    begun = time.monotonic()
    while not list((out / ".steps").glob("year-*/done.json")):
        assert time.monotonic() - begun < 300
        assert first.poll() is None
        time.sleep(0.002)
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert not (out / MANIFEST).exists()
    done = subprocess.run([*command, "1"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "train" in done.stdout
    assert tree(out) == tree(built)
    # The processes of a killed pool do not outlive it: its group is empty.
    while group_lives(first.pid):
        assert time.monotonic() - begun < 400
        time.sleep(0.1)


def group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


# Damage


def damaged_snapshot(root: Path) -> None:
    paths = write_parts(root, WORKS)
    paths[1].write_bytes(paths[1].read_bytes()[:-3000])
    lines = [json.dumps(as_openalex(work)) for work in WORKS[2::5]]
    write_part(paths[2], [*lines[:9], "{damaged", *lines[9:], '{"id": "X", "publication_year": 1}'])


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
    assert [part for part in reasons if "its id must read W and digits, got 'X'" in part]
    assert not any(str(tmp_path) in reason for reason in reasons)


@pytest.mark.nightly
def test_a_damaged_table_is_refused_by_name_or_skipped_and_named(
    tmp_path: Path, snapshot: Path
) -> None:
    tables = tmp_path / "tables"
    write_tables(tables / "a", [{"paperid": w.id, "year": w.year, "disruption": 0.0,
                                 "Atyp_10pct_Z": 0.0, "Atyp_Median_Z": 1.0} for w in WORKS],
                 [(w.id, r) for w in WORKS for r in w.references])  # fmt: skip
    for name in ("sciscinet_papers", "sciscinet_paperrefs"):
        (tables / name).mkdir()
        (tables / "a" / f"{name}.parquet").rename(tables / name / "0.parquet")
    (tables / "sciscinet_paperrefs" / "1.parquet").write_bytes(b"PAR1 no table PAR1")
    options = {"kind": "sciscinet", "texts": snapshot}
    with pytest.raises(DataError, match=r"sciscinet_paperrefs.1\.parquet"):
        build_papers(recipe(tables, **options), tmp_path / "out")
    manifest = build_papers(recipe(tables, **options, skip_corrupt=True), tmp_path / "skipped")
    assert list(manifest["skipped"]) == ["sciscinet_paperrefs/1.parquet"]


@pytest.mark.nightly
def test_a_damaged_record_of_a_user_is_skipped_and_named(
    tmp_path: Path, labelled: dict[str, Paper]
) -> None:
    path = tmp_path / "mine.jsonl"
    write_papers(path, labelled.values())
    with path.open("a") as file:
        file.write('{"openalex_id": "W0"}\n')
    with pytest.raises(DataError, match=f"mine.jsonl:{len(labelled) + 1}"):
        build_papers(Recipe(kind="jsonl", source=path, balance="split"), tmp_path / "out")
    kept = Recipe(kind="jsonl", source=path, balance="split", skip_corrupt=True)
    manifest = build_papers(kept, tmp_path / "kept")
    assert list(manifest["skipped"]) == ["mine.jsonl"]


@pytest.mark.nightly
def test_a_file_that_is_not_what_the_manifest_says_is_refused(
    snapshot: Path, tmp_path: Path
) -> None:
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
        ({"kind": "csv"}, "kind must be one of"),
        ({"last_year": None}, "last_year"),
        ({"balance": "some"}, "balance"),
        ({"rule": "guess"}, "rule"),
        ({"target": "fame"}, "target"),
        ({"share": 0.7}, "share"),
        ({"window": 0}, "window"),
        ({"shuffles": 1}, "shuffles"),
        ({"kind": "sciscinet"}, "texts"),
        ({"target": "novelty", "shuffles": 0}, "novelty"),
    ],
)
def test_a_mistake_in_a_recipe_is_named(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        build_papers(recipe(tmp_path, **changes), tmp_path / "out")


def test_a_source_that_is_not_there_or_too_short_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no"):
        build_papers(recipe(tmp_path / "nowhere"), tmp_path / "out")
    for kind in ("openalex", "jsonl"):
        with pytest.raises(DataError, match="holds no"):
            build_papers(recipe(tmp_path, kind=kind), tmp_path / "out")
    write_parts(tmp_path / "short", WORKS[:200])
    with pytest.raises(DataError, match="cannot be split with --window 5"):
        build_papers(recipe(tmp_path / "short"), tmp_path / "out")
