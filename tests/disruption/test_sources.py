"""Laws of sources: what is written is read back, damage is named, scores are the library's."""

import dataclasses
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.disruption.literature_files import (
    LAST_YEAR,
    WORKS,
    as_openalex,
    write_part,
    write_snapshot,
    write_tables,
)
from tokengym.envs.core.errors import DataError, OptionError
from tokengym.envs.disruption.citations import CitationGraph
from tokengym.envs.disruption.data import Work, read_papers, write_papers
from tokengym.envs.disruption.data.openalex import (
    find_works,
    parse_work_id,
    read_works,
    rebuild_abstract,
    shorten_id,
)
from tokengym.envs.disruption.data.sciscinet import read_citations, read_scores
from tokengym.envs.disruption.labels import LEAST_CITERS, LEAST_REFERENCES
from tokengym.envs.disruption.paper import FirstYear, Paper, ReferenceFacts
from tokengym.envs.registry import make_world

PAPER = Paper(
    "W1", "Title", "Abstract é", 2003, 12, 0.31, -0.4, 1.2, "disruptive", "balanced", "Biology",
    ReferenceFacts(9, 4, 3, 2), FirstYear(1, 0, 2), 0.5, authors=3,
)  # fmt: skip


def read_snapshot(folder: Path, skipped: list[str] | None = None) -> list[Work]:
    return list(read_works(find_works(folder)[0], skipped))


def test_a_snapshot_is_read_back(tmp_path: Path) -> None:
    works = WORKS[:400]
    write_snapshot(tmp_path, works)
    assert read_snapshot(tmp_path) == works


def test_the_newest_copy_of_a_work_counts(tmp_path: Path) -> None:
    old = WORKS[:3]
    new = [dataclasses.replace(old[1], title="Corrected")]
    write_snapshot(tmp_path, old, "2024-01-01")
    write_snapshot(tmp_path, new, "2024-06-01")
    read = {work.id: work for work in read_snapshot(tmp_path)}
    assert read == {"W1": old[0], "W2": new[0], "W3": old[2]}


@pytest.mark.parametrize(("listed", "known"), [(0, 0), (1, 1), (99, 99), (100, 0), (249, 249)])
def test_a_list_of_authors_possibly_cut_off_is_ignored(
    tmp_path: Path, listed: int, known: int
) -> None:
    write_snapshot(tmp_path, [dataclasses.replace(WORKS[0], authors=listed)])
    assert [work.authors for work in read_snapshot(tmp_path)] == [known]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{not json", "part_000.gz:2: not JSON"),
        ("[1, 2]", "part_000.gz:2: a row must be an object"),
        ('{"id": "https://openalex.org/W9"}', "part_000.gz:2: not a work"),
        ('{"id": 7, "publication_year": 2000}', "part_000.gz:2: not a work"),
    ],
)
def test_a_damaged_line_is_named_or_skipped(tmp_path: Path, line: str, message: str) -> None:
    works = WORKS[:2]
    lines = [json.dumps(as_openalex(work)) for work in works]
    part = tmp_path / "works" / "updated_date=2024-01-01" / "part_000.gz"
    write_part(part, [lines[0], line, lines[1]])
    with pytest.raises(DataError, match=message):
        read_snapshot(tmp_path)
    skipped: list[str] = []
    assert read_snapshot(tmp_path, skipped) == works
    assert len(skipped) == 1
    assert message in skipped[0]


def test_works_without_a_year_are_left_out(tmp_path: Path) -> None:
    fields = as_openalex(WORKS[0]) | {"publication_year": None}
    write_part(tmp_path / "works" / "updated_date=2024-01-01" / "p.gz", [json.dumps(fields)])
    assert read_snapshot(tmp_path) == []


@given(words=st.lists(st.sampled_from(["a", "b", "the", "é"]), max_size=20))
def test_an_abstract_is_rebuilt_from_the_places_of_its_words(words: list[str]) -> None:
    index: dict[str, list[int]] = {}
    for place, word in enumerate(words):
        index.setdefault(word, []).append(place)
    assert rebuild_abstract(index) == " ".join(words)


def test_papers_are_read_back(tmp_path: Path) -> None:
    bare = dataclasses.replace(
        PAPER, openalex_id="W2", references=None, first_year=None, field_median=None, authors=None
    )
    path = tmp_path / "papers.jsonl"
    assert write_papers(path, [PAPER, bare]) == 2
    assert list(read_papers(path)) == [PAPER, bare]
    assert [entry.name for entry in tmp_path.iterdir()] == ["papers.jsonl"]


@pytest.mark.parametrize(("written", "authors"), [(4, 4), (4.0, 4), ("NA", None), (None, None)])
def test_authors_are_read_as_other_tools_write_them(
    tmp_path: Path, written: Any, authors: int | None
) -> None:
    path, fields = tmp_path / "papers.jsonl", dataclasses.asdict(PAPER)
    old = {name: value for name, value in fields.items() if name != "authors"}
    path.write_text(
        "".join(f"{json.dumps(one)}\n" for one in ({**fields, "authors": written}, old))
    )
    known = dataclasses.replace(PAPER, authors=authors)
    assert list(read_papers(path)) == [known, dataclasses.replace(PAPER, authors=None)]


@pytest.mark.nightly
def test_assembled_papers_are_eligible_and_carry_the_librarys_scores(
    labelled: dict[str, Paper],
) -> None:
    number = {work.id: k for k, work in enumerate(WORKS)}
    edges = [(number[w.id], number[r]) for w in WORKS for r in w.references]
    graph = CitationGraph.from_edges([w.year for w in WORKS], *zip(*edges, strict=True))
    counts, first, papers = graph.counts(), graph.counts(window=1), [*labelled.values()]
    assert len(papers) > 50
    for paper in papers:
        k = number[paper.openalex_id]
        assert WORKS[k].type == "article"
        assert paper.publication_year + 5 <= LAST_YEAR
        assert counts.citers[k] >= LEAST_CITERS
        assert paper.cd_index == counts.cd()[k]
        assert paper.references is not None
        assert paper.references.count == len(set(WORKS[k].references)) >= LEAST_REFERENCES
        assert paper.first_year == FirstYear(
            int(first.n_i[k]), int(first.n_j[k]), int(first.n_k[k])
        )
        assert (paper.novelty_score is None) == (paper.novelty_label is None)
        assert paper.authors == (WORKS[k].authors or None)
    assert {paper.novelty_label for paper in papers} >= {"novel", "conventional"}


def row(paper: str, year: int | None, z: float | None = None) -> dict[str, Any]:
    median = None if z is None else z + 1
    return {
        "paperid": paper, "doi": "", "year": year, "Atyp_Median_Z": median, "Atyp_10pct_Z": z,
    }  # fmt: skip


def test_bad_rows_of_sciscinet_tables_are_named(tmp_path: Path) -> None:
    rows = [row("W1", 1990), row("W2", 2000, -2.0), row("W3", None), row("A4", 2001, 1.0)]
    rows += [row("W5", 2001, np.nan), {**row("W6", 2002, 3.0), "Atyp_Median_Z": 2.0}]
    write_tables(tmp_path, rows, [("W2", "W1"), ("https://openalex.org/W5", "W9"), ("W2", "X")])
    scores = tmp_path / "sciscinet_papers.parquet"
    citations = tmp_path / "sciscinet_paperrefs.parquet"
    with pytest.raises(DataError, match=r"papers\.parquet: not the id of a work: 'A4'"):
        read_scores(scores, 0)
    with pytest.raises(DataError, match=r"refs\.parquet: not the ids of two works: 'W2', 'X'"):
        read_citations(citations, 0)
    skipped: list[str] = []
    read = read_scores(scores, 0, skipped)
    assert read["id"].tolist() == [1, 2, 5, 6]
    assert read["year"].tolist() == [1990, 2000, 2001, 2002]
    # One of two scores, or a 10th percentile above the median, is no score.
    np.testing.assert_equal(read["tenth"], [np.nan, -2.0, np.nan, np.nan])
    np.testing.assert_equal(read["median"], [np.nan, -1.0, np.nan, np.nan])
    assert read["team"].tolist() == [0, 0, 0, 0]
    cites = read_citations(citations, 0, skipped)
    assert (cites["citing"].tolist(), cites["cited"].tolist()) == ([2, 5], [1, 9])
    assert len(skipped) == 2


def test_team_sizes_of_sciscinet_are_read_where_there_are_any(tmp_path: Path) -> None:
    sizes = {"W1": 3, "W2": None, "W3": 0, "W4": -2, "W5": 12}
    write_tables(tmp_path, [{**row(w, 2000), "team_size": n} for w, n in sizes.items()], [])
    read = read_scores(tmp_path / "sciscinet_papers.parquet", 0)
    assert read["team"].tolist() == [3, 0, 0, 0, 12]


@pytest.mark.parametrize(
    ("year", "reason"),
    [
        (2005.7, "not the year of a work: 2005.7 of W1"),
        (-1, "not the year of a work: -1 of W1"),
        (99_999, "not the year of a work: 99999 of W1"),
        ("soon", "cannot be read as a Parquet table"),
    ],
)
def test_years_of_sciscinet_are_whole_and_in_range(tmp_path: Path, year: Any, reason: str) -> None:
    write_tables(tmp_path, [{**row("W1", None), "year": year}], [])
    with pytest.raises(DataError, match=reason):
        read_scores(tmp_path / "sciscinet_papers.parquet", 0)


def test_ids_of_sciscinet_are_read_as_those_of_openalex(tmp_path: Path) -> None:
    texts = ["W7", "w7", "https://openalex.org/W7", "a/b/w07", "W" + 18 * "9"]
    wrong = ["W" + 19 * "9", "W7 ", "W7\n", "W\u0667", "W", "7", "W7/", "", None]
    write_tables(tmp_path, [{**row("", 2000), "paperid": text} for text in texts + wrong], [])
    skipped: list[str] = []
    read = read_scores(tmp_path / "sciscinet_papers.parquet", 0, skipped)
    assert read["id"].tolist() == [parse_work_id(shorten_id(text)) for text in texts]
    assert len(skipped) == len(wrong)


def test_a_table_of_another_kind_is_refused(tmp_path: Path) -> None:
    write_tables(tmp_path, [row("W1", 1990)], [("W2", "W1")])
    with pytest.raises(DataError, match=r"lacks the columns .*Atyp_10pct_Z"):
        read_scores(tmp_path / "sciscinet_paperrefs.parquet", 0)
    (tmp_path / "text.parquet").write_text("no table")
    with pytest.raises(DataError, match=r"text\.parquet cannot be read as a Parquet"):
        read_scores(tmp_path / "text.parquet", 0)


@pytest.mark.parametrize("style", ["full", "terse"])
def test_citations_are_ranked_within_large_fields_and_years(tmp_path: Path, style: str) -> None:
    """Strictly fewer citations, of all papers of the file, in whole percent rounded down."""
    rng, path = np.random.default_rng(0), tmp_path / "papers.jsonl"
    groups = {("Biology", 2003): 45, ("Physics", 2003): 20, ("Biology", 2004): 19, ("", 2003): 30}
    papers = [
        dataclasses.replace(
            PAPER, openalex_id=f"{field} {year} {k}", title=f"{field} {year} number {k}",
            abstract="", primary_field=field, publication_year=year,
            first_year=FirstYear(int(rng.poisson(3)), int(rng.poisson(1)), 2) if k else None,
        )
        for (field, year), size in groups.items()
        for k in range(size + 1)
    ]  # fmt: skip
    write_papers(path, papers)
    world, ranked = make_world("disruption", data=path, prompt=style), 0
    known = {paper.openalex_id: paper for paper in papers}
    for split in ("train", "validation", "test"):
        for index in range(world.size(split) or 0):
            task = world.task(split, index)
            own = known[task.answer["source"]]
            peers = [
                one.first_year.n_i + one.first_year.n_j
                for one in papers
                if one.first_year
                and (one.primary_field, one.publication_year)
                == (own.primary_field, own.publication_year)
            ]
            stated = re.search(r"(?:more often than|above) (\d+) %", world.start(task).text)
            if own.first_year is None or not own.primary_field or len(peers) < 20:
                assert stated is None
                continue
            count = own.first_year.n_i + own.first_year.n_j
            fewer = sum(other < count for other in peers) / len(peers)
            assert stated is not None
            assert int(stated[1]) == math.floor(100 * fewer + 1e-9)
            ranked += 1
    assert ranked == 45 + 20


def test_files_that_cannot_be_played_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "papers.jsonl"
    with pytest.raises(DataError, match="cannot read"):
        make_world("disruption", data=path)
    path.write_text("")
    with pytest.raises(DataError, match="no paper"):
        make_world("disruption", data=path)
    write_papers(path, [PAPER])
    with pytest.raises(OptionError, match="expected"):
        make_world("disruption", data=path, label="expected")
    world = make_world("disruption", data=path)
    path.write_text("")
    with pytest.raises(OptionError, match="index"):
        world.task("train", -1)
