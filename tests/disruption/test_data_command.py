"""Laws of `tokengym data papers`: it fetches, builds, reports the result and names mistakes."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.disruption.literature_files import (
    LAST_YEAR,
    WORKS,
    as_openalex,
    papers_in,
    serving,
    write_pages,
    write_part,
)
from tokengym.envs.core.errors import DataError, OptionError, TokengymError
from tokengym.envs.disruption.data import Work
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


class LikeOpenAlex(BaseHTTPRequestHandler):
    """Answers as OpenAlex does: a key, filters by year, type, citations and ids, pages of 100."""

    calls = 0
    filters: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        query = {name: value for name, (value,) in parse_qs(urlsplit(self.path).query).items()}
        LikeOpenAlex.calls += 1
        status, answer = self.answer(query)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test's output clean."""

    def answer(self, query: dict[str, str]) -> tuple[int, dict[str, Any]]:
        if "api_key" not in query:
            return 401, {"error": "Unauthorized", "message": "cursor paging needs an API key"}
        self.filters.append(query["filter"])
        matching = WORKS
        for condition in query["filter"].split(","):
            name, _, value = condition.partition(":")
            if value.count("|") >= 100:
                return 400, {"message": "Maximum number of values exceeded for filter"}
            matching = [work for work in matching if matches(work, name, value)]
        begin = 0 if query["cursor"] == "*" else int(query["cursor"])
        selected = query["select"].split(",")
        results = [
            {name: value for name, value in as_openalex(work).items() if name in selected}
            for work in matching[begin : begin + 100]
        ]
        following = str(begin + 100) if results else None
        return 200, {
            "meta": {"count": len(matching), "next_cursor": following},
            "results": results,
        }


def matches(work: Work, name: str, value: str) -> bool:
    if name == "publication_year":
        first, _, last = value.partition("-")
        return int(first) <= work.year <= int(last or first)
    named = value.split("|")
    return {
        "type": lambda: work.type in named,
        "cites": lambda: bool({*named} & {*work.references}),
        "openalex": lambda: work.id in named,
    }[name]()


@pytest.fixture
def openalex(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv(KEY_VARIABLE, "of-mine")
    LikeOpenAlex.calls = 0
    LikeOpenAlex.filters.clear()
    with serving(LikeOpenAlex) as found:
        yield found


def asked(folder: Path, address: str, years: str, *more: str) -> list[object]:
    matching = ["--filter", f"publication_year:{years},type:article", "--address", address]
    usual = ["--last-year", LAST_YEAR, "--shuffles", 0, "--balance", "none"]
    return [folder / "pages", folder / "out", *matching, *usual, *more]


@pytest.mark.nightly
def test_works_around_those_that_match_are_fetched_and_only_counted(
    openalex: str, tmp_path: Path, labelled: dict[str, Paper]
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
    calls = LikeOpenAlex.calls
    run(*words)
    assert LikeOpenAlex.calls == calls


@pytest.mark.nightly
def test_an_interrupted_expansion_goes_on_where_it_stopped(
    openalex: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    words = ["2003-2009", "--expand", "references,citers"]
    run(*asked(whole, openalex, *words))
    calls = LikeOpenAlex.filters.copy()
    LikeOpenAlex.filters.clear()
    answer, left = LikeOpenAlex.answer, iter(range(len(calls) // 2))

    def some(self: LikeOpenAlex, query: dict[str, str]) -> tuple[int, dict[str, Any]]:
        return answer(self, query) if next(left, None) is not None else (400, {"message": "gone"})

    monkeypatch.setattr(LikeOpenAlex, "answer", some)
    with pytest.raises(DataError, match="gone"):
        run(*asked(broken, openalex, *words))
    monkeypatch.setattr(LikeOpenAlex, "answer", answer)
    run(*asked(broken, openalex, *words))
    assert LikeOpenAlex.filters == calls
    made, uninterrupted = (papers_in(folder / "out") for folder in (broken, whole))
    assert made == uninterrupted
    # The manifests differ by the times in gzipped pages, whose hashes they hold.
    parts = [read_manifest(folder / "out") for folder in (broken, whole)]
    assert parts[0]["source"] == parts[1]["source"]


@pytest.mark.nightly
def test_a_filter_without_surrounding_works_explains_missing_labels(
    openalex: str, tmp_path: Path
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
    openalex: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEY_VARIABLE)
    with pytest.raises(DataError) as caught:
        run(*asked(tmp_path, openalex, "2005"))
    assert "API key" in str(caught.value)
    assert KEY_VARIABLE in str(caught.value)
    assert "mail address" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert LikeOpenAlex.calls == 1
