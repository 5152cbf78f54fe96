"""Laws of `tokengym data papers`: it fetches, builds, reports the result and names mistakes."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.disruption.literature_files import LAST_YEAR, WORKS, as_openalex, papers_in
from tokengym.envs.core.errors import OptionError, TokengymError
from tokengym.envs.disruption.data import write_papers
from tokengym.envs.disruption.paper import Paper

pytest.importorskip("httpx")
pytest.importorskip("rich")
pytest.importorskip("typer")

from typer.testing import CliRunner

from tokengym.agents.cli import app

PAGE = 400


class Handler(BaseHTTPRequestHandler):
    """The works in pages of 400."""

    calls = 0

    def do_GET(self) -> None:
        Handler.calls += 1
        query = parse_qs(urlsplit(self.path).query)
        begin = 0 if query["cursor"] == ["*"] else int(query["cursor"][0])
        results = [as_openalex(work) for work in WORKS[begin : begin + PAGE]]
        meta = {"count": len(WORKS), "next_cursor": str(begin + PAGE) if results else None}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"meta": meta, "results": results}).encode())

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test's output clean."""


@pytest.fixture
def address() -> Iterator[str]:
    Handler.calls = 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def run(*words: object) -> str:
    """Run the command; what it printed."""
    result = CliRunner().invoke(app, ["data", "papers", *map(str, words)])
    if isinstance(result.exception, TokengymError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return str(result.output)


def test_works_are_fetched_once_and_built(
    address: str, tmp_path: Path, labelled: dict[str, Paper]
) -> None:
    words = [
        tmp_path / "pages", tmp_path / "out", "--filter", "type:article",
        "--address", address, "--last-year", LAST_YEAR, "--shuffles", 5, "--balance", "split",
    ]  # fmt: skip
    shown = run(*words)
    calls = Handler.calls
    papers = papers_in(tmp_path / "out")
    assert [labelled[p.openalex_id] for p in papers["train"]] == list(papers["train"])
    for word in ("train", "validation", "test", "disruptive", "consolidating", "left out"):
        assert word in shown
    run(*words)
    assert Handler.calls == calls


def test_what_is_skipped_is_printed(
    tmp_path: Path, snapshot: Path, labelled: dict[str, Paper]
) -> None:
    source = tmp_path / "mine.jsonl"
    write_papers(source, labelled.values())
    with source.open("a") as file:
        file.write("{damaged\n")
    shown = run(
        source, tmp_path / "out", "--kind", "jsonl", "--on-corrupt", "skip", "--balance", "none"
    )
    assert f"skipped in mine.jsonl: mine.jsonl:{len(labelled) + 1}: not JSON" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--kind", "csv"], "kind must be one of"),
        (["--kind", "jsonl", "--on-corrupt", "mend"], "--on-corrupt must be refuse or skip"),
        (["--kind", "jsonl", "--filter", "type:article"], "--filter fetches works of openalex"),
        (
            ["--kind", "openalex", "--last-year", "2019", "--most-pages", "2"],
            "go with --filter",
        ),
        (["--kind", "openalex"], "needs last_year"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, words: list[str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        run(tmp_path, tmp_path / "out", *words)
