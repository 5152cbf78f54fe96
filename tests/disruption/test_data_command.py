"""Laws of `tokengym data papers`: it fetches, builds, reports the result and names mistakes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.disruption.literature_files import (
    LAST_YEAR,
    WORKS,
    Library,
    papers_in,
    served_library,
    write_pages,
    write_part,
)
from tokengym.envs.core.errors import DataError, OptionError, TokengymError
from tokengym.envs.disruption.data.manifest import read_manifest
from tokengym.envs.disruption.data.openalex import read_works
from tokengym.envs.disruption.data.openalex_api import KEY_VARIABLE
from tokengym.envs.disruption.paper import Paper

pytest.importorskip("httpx")
pytest.importorskip("rich")
pytest.importorskip("typer")

from typer.testing import CliRunner

from tokengym.agents.cli import app


def run(*words: object) -> str:
    """Run the command; what it printed."""
    result = CliRunner().invoke(app, ["data", "papers", *map(str, words)])
    if isinstance(result.exception, TokengymError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return str(result.output)


@pytest.mark.nightly
def test_what_is_skipped_or_not_read_is_printed(tmp_path: Path) -> None:
    write_pages(tmp_path / "pages", WORKS)
    write_part(tmp_path / "pages" / "more.gz", ["{damaged"])
    (tmp_path / "pages" / "notes.md").write_text("Works of a project.")
    shown = run(
        tmp_path / "pages", tmp_path / "out", "--on-corrupt", "skip", "--last-year", LAST_YEAR,
        "--shuffles", 0, "--balance", "split",
    )  # fmt: skip
    assert "skipped in more.gz: more.gz:1: not JSON" in shown
    assert "not read: notes.md" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--on-corrupt", "mend"], "--on-corrupt must be refuse or skip"),
        (["--last-year", "2019", "--most-pages", "2"], "go with --filter"),
        (["--expand", "citers"], "go with --filter"),
        (["--filter", "a:b", "--expand", "citers,friends"], r"takes citers.*, got \['friends'\]"),
        ([], "last_year must be given"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, words: list[str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        run(tmp_path, tmp_path / "out", *words)


BY_ID = {work.id: work for work in WORKS}


@pytest.fixture
def openalex(monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    monkeypatch.setenv(KEY_VARIABLE, "of-mine")
    with served_library() as found:
        yield found


def asked(folder: Path, library: Library, years: str, *more: str) -> list[object]:
    matching = ["--filter", f"publication_year:{years},type:article", "--address", library.address]
    usual = ["--last-year", LAST_YEAR, "--shuffles", 0, "--balance", "none"]
    return [folder / "pages", folder / "out", *matching, *usual, *more]


@pytest.mark.nightly
def test_works_around_those_that_match_are_fetched_and_only_counted(
    openalex: Library, tmp_path: Path, labelled: dict[str, Paper]
) -> None:
    words = asked(tmp_path, openalex, "2000-2009", "--expand", "citers,references")
    shown = run(*words)
    assert "citers" in shown  # left out, with their count
    assert "references" in shown
    papers = [paper for split in papers_in(tmp_path / "out").values() for paper in split]
    # All that are eligible in the whole literature, as nothing around them is missing.
    wanted = {id for id, paper in labelled.items() if 2000 <= paper.publication_year <= 2009}
    left_out = sum(read_manifest(tmp_path / "out")["source"]["left_out"].values())
    assert {paper.openalex_id for paper in papers} <= wanted
    assert len(papers) + left_out == len(wanted) > 100
    matching = {w.id for w in WORKS if 2000 <= w.year <= 2009 and w.type == "article"}
    fetched = list(read_works(sorted((tmp_path / "pages").glob("*.gz"))))
    ids = [work.id for work in fetched]
    assert len(ids) == len(set(ids))
    around = {
        work.id
        for work in WORKS
        for one in map(BY_ID.__getitem__, work.references)
        if one.id in matching and one.year < work.year <= one.year + 5
    } | {one for id in matching for one in BY_ID[id].references}
    assert {*matching, *around} <= {*ids}
    assert {work.id for work in fetched if not work.withheld} == matching
    assert all(w.authors == (0 if w.withheld else BY_ID[w.id].authors) for w in fetched)
    calls = len(openalex.calls)
    run(*words)
    assert len(openalex.calls) == calls


@pytest.mark.nightly
def test_an_interrupted_expansion_goes_on_where_it_stopped(
    openalex: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    words = ["2003-2009", "--expand", "references,citers"]
    run(*asked(whole, openalex, *words))
    calls = openalex.calls.copy()
    openalex.calls.clear()
    answer, left = openalex.answer, iter(range(len(calls) // 2))

    def some(query: dict[str, str]) -> tuple[int, str]:
        return answer(query) if next(left, None) is not None else (400, '{"message": "gone"}')

    monkeypatch.setattr(openalex, "answer", some)
    with pytest.raises(DataError, match="gone"):
        run(*asked(broken, openalex, *words))
    monkeypatch.setattr(openalex, "answer", answer)
    run(*asked(broken, openalex, *words))
    assert openalex.calls == calls
    made, uninterrupted = (papers_in(folder / "out") for folder in (broken, whole))
    assert made == uninterrupted
    # The manifests differ by the times in gzipped pages, whose hashes they hold.
    parts = [read_manifest(folder / "out") for folder in (broken, whole)]
    assert parts[0]["source"] == parts[1]["source"]


@pytest.mark.nightly
def test_a_filter_without_surrounding_works_explains_missing_labels(
    openalex: Library, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=r"of 2005 to 2005, with 42 citations among them.*--expand"):
        run(*asked(tmp_path, openalex, "2005"))
    with pytest.raises(DataError, match=r"of 2005 to 2005 cannot be split"):
        run(*asked(tmp_path / "around", openalex, "2005", "--expand", "citers,references"))
    late = [
        str(word) if word != LAST_YEAR else "2009" for word in asked(tmp_path, openalex, "2005")
    ]
    late[0], late[1] = str(tmp_path / "late"), str(tmp_path / "late-out")
    with pytest.raises(DataError, match="--last-year 2009 is too early for all of them"):
        run(*late)


def test_a_missing_key_takes_one_sentence(
    openalex: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEY_VARIABLE)
    with pytest.raises(DataError) as caught:
        run(*asked(tmp_path, openalex, "2005"))
    assert "API key" in str(caught.value)
    assert KEY_VARIABLE in str(caught.value)
    assert "mail address" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(openalex.calls) == 1
