"""Laws of tables of scores: the library's values for every work, whatever the source is called."""

import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.disruption.literature_files import WORKS, as_openalex, write_tables
from tests.disruption.test_sources import PAPER
from tests.every import quick_first
from tokengym.envs.core.errors import DataError
from tokengym.envs.disruption.citations import CitationGraph
from tokengym.envs.disruption.data import Recipe, score_works, write_papers
from tokengym.envs.disruption.data.score_table import ScoreSummary

SOME = WORKS[:150]
OBJECTS = [as_openalex(work) for work in SOME]
LINES = "\n".join(map(json.dumps, OBJECTS)).encode()


def score(source: Path, out: Path, **options: Any) -> tuple[ScoreSummary, list[dict[str, str]]]:
    recipe = Recipe(source, **{"shuffles": 3, **options})
    summary = score_works(recipe, out)
    with out.open(newline="") as file:
        return summary, list(csv.DictReader(file))


def write_folder(folder: Path) -> None:
    """Lines, an array of many lines and two pages, in files that are called anything."""
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "A").write_bytes(gzip.compress(LINES[: LINES.index(b"\n") + 1]))
    (folder / "b.json").write_text(json.dumps(OBJECTS[1:50], indent=1))
    page: dict[str, Any] = {"meta": {"count": 150}, "results": OBJECTS[50:100]}
    (folder / "deep" / "page").write_text(json.dumps(page, indent=2))
    (folder / "deep" / "er" / "x.txt").write_text(json.dumps({**page, "results": OBJECTS[100:]}))
    (folder / "README.md").write_text("Works of a project.\n")
    (folder / ".hidden").write_text("{damaged")


SOURCES: dict[str, Callable[[Path], object]] = {
    "works.jsonl": lambda path: path.write_bytes(LINES),
    "works.json": lambda path: path.write_text(json.dumps(OBJECTS)),
    "works.gz": lambda path: path.write_bytes(gzip.compress(LINES)),
    "anything": lambda path: path.write_bytes(b"\xef\xbb\xbf" + LINES + b"\n\n"),
    "folder": write_folder,
}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("expected")
    (folder / "works").write_bytes(LINES)
    score(folder / "works", folder / "scores.csv")
    return (folder / "scores.csv").read_text()


@quick_first("name", SOURCES)
def test_works_are_known_by_their_fields(tmp_path: Path, expected: str, name: str) -> None:
    source, out = tmp_path / name, tmp_path / "out" / "scores.csv"
    if name == "folder":
        source.mkdir()
    SOURCES[name](source)
    summary, _ = score(source, out)
    assert out.read_text() == expected
    read = summary.read
    assert (read.records, read.refused, read.works) == (150, 0, 150)
    assert summary.ignored == (["README.md"] if name == "folder" else [])
    assert [path.name for path in out.parent.iterdir()] == ["scores.csv"]


def test_every_work_has_the_librarys_scores(tmp_path: Path) -> None:
    source = tmp_path / "works"
    source.write_bytes(LINES)
    _, rows = score(source, tmp_path / "scores.csv", window=4, shuffles=0, last_year=1997)
    number = {work.id: k for k, work in enumerate(SOME)}
    edges = [(number[w.id], number[r]) for w in SOME for r in w.references]
    graph = CitationGraph.from_edges(
        [w.year for w in SOME], [a for a, _ in edges], [b for _, b in edges]
    )
    counts = graph.counts(window=4)
    exact = {"cd4": counts.cd(), "mcd4": counts.mcd(), "di_l5": counts.di_l()}
    assert sorted(row["work_id"] for row in rows) == sorted(number)
    for row in rows:
        k = number[row["work_id"]]
        assert [int(row[name]) for name in ("n_i", "n_j", "n_k", "impact")] == [
            counts.n_i[k], counts.n_j[k], counts.n_k[k], counts.impact[k],
        ]  # fmt: skip
        least = {"cd4": 1, "mcd4": 1, "di_l5": 5}
        for name, values in exact.items():
            undefined = values[k] != values[k] or int(row["references"]) < least[name]
            assert row[name] == "" if undefined else float(row[name]) == values[k]
        assert row["uzzi_z10"] == row["uzzi_z50"] == ""
        assert row["window_complete"] == str(int(row["year"]) + 4 <= 1997)


def test_works_without_references_have_no_scores_that_depend_on_them(tmp_path: Path) -> None:
    """A cited work without references would get CD = 1, DI_l below l references no n_j."""
    references = {
        "W1": [],
        "W2": [],
        "W3": ["W2"],
        "W4": ["W9"],
        **{f"W{k}": [f"W{k - 5}"] for k in (6, 7, 8, 9)},
    }
    years = dict.fromkeys(("W1", "W2", "W3", "W4"), 2000) | dict.fromkeys(
        ("W6", "W7", "W8", "W9"), 2003
    )
    works = [
        {**OBJECTS[0], "id": f"https://openalex.org/{name}", "publication_year": years[name],
         "title": f"Study {name}", "referenced_works": [f"https://openalex.org/{r}" for r in cited]}
        for name, cited in references.items()
    ]  # fmt: skip
    source = tmp_path / "works"
    source.write_text("\n".join(map(json.dumps, works)))
    summary, rows = score(source, tmp_path / "scores.csv", shuffles=0)
    found = {row["work_id"]: row for row in rows}
    assert {name for name, row in found.items() if row["references"] == "0"} == {"W1", "W2"}
    for name in ("W1", "W2"):
        assert int(found[name]["n_i"]) == 1
        assert [found[name][c] for c in ("cd5", "mcd5", "di_l5")] == [""] * 3
    assert [found["W3"][c] for c in ("cd5", "di_l5")] == ["0.5", ""]
    assert (summary.unreferenced, summary.incomplete, summary.read.works) == (2, 8, 8)
    assert summary.disruptive <= summary.cd <= 6


def test_sciscinet_tables_keep_their_z_scores(tmp_path: Path) -> None:
    rows = [
        {"paperid": w.id, "doi": "", "year": w.year, "Atyp_Median_Z": 2.0, "Atyp_10pct_Z": -1.0}
        for w in SOME
    ]
    write_tables(tmp_path / "tables", rows, [(w.id, r) for w in SOME for r in w.references])
    _, found = score(tmp_path / "tables", tmp_path / "scores.csv")
    assert {(row["uzzi_z10"], row["uzzi_z50"]) for row in found} == {("-1.0", "2.0")}
    assert len(found) == 150


def test_damaged_records_are_refused_by_name_or_counted(tmp_path: Path) -> None:
    source = tmp_path / "works.json"
    source.write_text("[" + ",\n".join(map(json.dumps, [*OBJECTS[:3], 7, *OBJECTS[3:]]))[:-9])
    with pytest.raises(DataError, match=r"works\.json:4, row 4: a row must be an object, got 7"):
        score(source, tmp_path / "scores.csv")
    summary, rows = score(source, tmp_path / "scores.csv", skip_corrupt=True)
    assert (summary.read.refused, len(rows)) == (2, 149)
    assert "nothing after it can be read" in summary.read.skipped["works.json"][1]


def test_what_has_no_scores_is_refused_with_the_reason(tmp_path: Path) -> None:
    papers = tmp_path / "papers.jsonl"
    write_papers(papers, [PAPER])
    with pytest.raises(DataError, match=r"papers\.jsonl:1: not a work: it has no id"):
        score(papers, tmp_path / "scores.csv")
