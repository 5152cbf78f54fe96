"""Laws of fetching: all pages once, resumed, repeated when refused, against a server of our own."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.disruption.literature_files import serving
from tokengym.envs.core.errors import DataError

pytest.importorskip("httpx")

from tokengym.envs.disruption.data.openalex import read_works
from tokengym.envs.disruption.data.openalex_api import KEY_VARIABLE, fetch_works

WORKS = 25
PAGE = 10


class Library:
    """25 works in pages of 10; `troubles` are answered first, one a call."""

    def __init__(self) -> None:
        self.troubles: list[tuple[int, str]] = []
        self.calls: list[dict[str, list[str]]] = []
        self.address = ""

    def answer(self, query: dict[str, list[str]]) -> tuple[int, str]:
        self.calls.append(query)
        if self.troubles:
            return self.troubles.pop(0)
        cursor = query["cursor"][0]
        begin = 0 if cursor == "*" else int(cursor)
        end = min(begin + PAGE, WORKS)
        results: list[dict[str, Any]] = [
            {"id": f"https://openalex.org/W{k}", "title": f"Work {k}", "publication_year": 2000}
            for k in range(begin, end)
        ]
        following = str(end) if results else None
        meta = {"count": WORKS, "next_cursor": following}
        return 200, json.dumps({"meta": meta, "results": results})


@pytest.fixture
def library() -> Iterator[Library]:
    served = Library()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = served.answer(parse_qs(urlsplit(self.path).query))
            self.send_response(status)
            self.send_header("Retry-After", "0")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:
            """Keep the test's output clean."""

    with serving(Handler) as served.address:
        yield served


def fetch(library: Library, folder: Path, **options: Any) -> int:
    options = {"first_wait": 0.01, "retries": 2} | options
    return fetch_works(folder, "type:article", address=library.address, **options)


def test_all_pages_are_fetched_once_and_read_back(library: Library, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    pages = fetch(library, tmp_path, progress=lambda _, done, count: seen.append((done, count)))
    assert pages == 3
    assert [work.id for work in read_works(sorted(tmp_path.glob("page-*")))] == [
        f"W{k}" for k in range(WORKS)
    ]
    assert seen[-1] == (WORKS, WORKS)
    calls = len(library.calls)
    assert fetch(library, tmp_path) == 3
    assert len(library.calls) == calls


def test_an_interrupted_fetch_goes_on_where_it_stopped(library: Library, tmp_path: Path) -> None:
    assert fetch(library, tmp_path, most_pages=1) == 1
    library.troubles = [(500, "")] * 3
    with pytest.raises(DataError, match="3 times in a row, the last time with status 500"):
        fetch(library, tmp_path)
    assert fetch(library, tmp_path) == 3
    assert [call["cursor"][0] for call in library.calls].count("*") == 1
    assert len(list(read_works(sorted(tmp_path.glob("page-*"))))) == WORKS


@pytest.mark.nightly
@pytest.mark.parametrize("status", [403, 429, 503])
def test_a_busy_server_is_asked_again(library: Library, tmp_path: Path, status: int) -> None:
    library.troubles = [(status, "busy")] * 2
    assert fetch(library, tmp_path) == 3


def test_a_refused_filter_is_named_with_the_reason(library: Library, tmp_path: Path) -> None:
    library.troubles = [(400, json.dumps({"message": "Unknown filter field"}))]
    with pytest.raises(DataError, match=r"'type:article': status 400, .*Unknown filter field"):
        fetch(library, tmp_path)
    assert len(library.calls) == 1


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("no json", "OpenAlex did not answer a page of works in JSON: JSONDecodeError"),
        ("[]", "OpenAlex did not answer a page of works in JSON: TypeError"),
        ('{"results": []}', "OpenAlex did not answer a page of works in JSON: KeyError"),
    ],
)
def test_an_answer_that_is_no_page_is_refused(
    library: Library, tmp_path: Path, body: str, message: str
) -> None:
    library.troubles = [(200, body)]
    with pytest.raises(DataError, match=message):
        fetch(library, tmp_path)


def test_the_key_is_sent_and_in_no_message_or_file(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "key-of-mine")
    library.troubles = [(500, "")] * 3
    with pytest.raises(DataError) as caught:
        fetch(library, tmp_path)
    assert "key-of-mine" not in str(caught.value)
    fetch(library, tmp_path)
    assert all(call["api_key"] == ["key-of-mine"] for call in library.calls)
    assert not any(b"key-of-mine" in path.read_bytes() for path in tmp_path.iterdir())


@pytest.mark.nightly
def test_a_folder_holds_one_fetch(library: Library, tmp_path: Path) -> None:
    fetch(library, tmp_path, most_pages=1)
    with pytest.raises(DataError, match="another folder"):
        fetch_works(tmp_path, "type:book", address=library.address)


@pytest.mark.nightly
def test_a_server_that_is_gone_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="ConnectError"):
        fetch_works(tmp_path, "x:y", address="http://127.0.0.1:9", retries=0)
