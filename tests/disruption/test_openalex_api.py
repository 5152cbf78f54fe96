"""Laws of fetching: all pages once, resumed, repeated when refused, against a server of our own."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.disruption.literature_files import Library, matching_works, served_library
from tokengym.envs.core.errors import DataError

pytest.importorskip("httpx")

from tokengym.envs.disruption.data.openalex import read_works
from tokengym.envs.disruption.data.openalex_api import KEY_VARIABLE, fetch_works

FILTER = "publication_year:1995-1998,type:article"
WORKS = matching_works(FILTER) or []
PAGES = -(-len(WORKS) // 100)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    monkeypatch.setenv(KEY_VARIABLE, "key-of-mine")
    with served_library() as found:
        yield found


def fetch(library: Library, folder: Path, **options: Any) -> int:
    options = {"first_wait": 0.01, "retries": 2} | options
    return fetch_works(folder, FILTER, address=library.address, **options)


def test_all_pages_are_fetched_once_and_read_back(library: Library, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    pages = fetch(library, tmp_path, progress=lambda _, done, count: seen.append((done, count)))
    assert pages == PAGES > 1
    assert list(read_works(sorted(tmp_path.glob("page-*")))) == WORKS
    assert seen[-1] == (len(WORKS), len(WORKS))
    calls = len(library.calls)
    assert fetch(library, tmp_path) == PAGES
    assert len(library.calls) == calls


@pytest.mark.nightly
def test_an_interrupted_fetch_goes_on_where_it_stopped(library: Library, tmp_path: Path) -> None:
    assert fetch(library, tmp_path, most_pages=1) == 1
    library.troubles = [(500, "")] * 3
    with pytest.raises(DataError, match="3 times in a row, the last time with status 500"):
        fetch(library, tmp_path)
    assert fetch(library, tmp_path) == PAGES
    assert [call["cursor"] for call in library.calls].count("*") == 1
    assert len(list(read_works(sorted(tmp_path.glob("page-*"))))) == len(WORKS)


@pytest.mark.nightly
@pytest.mark.parametrize("status", [403, 429, 503])
def test_a_busy_server_is_asked_again(library: Library, tmp_path: Path, status: int) -> None:
    library.troubles = [(status, "busy")] * 2
    assert fetch(library, tmp_path) == PAGES


def test_a_refused_filter_is_named_with_the_reason(library: Library, tmp_path: Path) -> None:
    library.troubles = [(400, json.dumps({"message": "Unknown filter field"}))]
    with pytest.raises(DataError, match=r"type:article': status 400, .*Unknown filter field"):
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


@pytest.mark.nightly
def test_the_key_is_sent_and_in_no_message_or_file(library: Library, tmp_path: Path) -> None:
    library.troubles = [(500, "")] * 3
    with pytest.raises(DataError) as caught:
        fetch(library, tmp_path)
    assert "key-of-mine" not in str(caught.value)
    fetch(library, tmp_path)
    assert all(call["api_key"] == "key-of-mine" for call in library.calls)
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
