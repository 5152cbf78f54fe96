"""Pages of the OpenAlex API, fetched into files one by one, so that a fetch can be resumed.

For more than some hundred thousand works take the snapshot: the API is metered by the call.
"""

import gzip
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokengym.atomic_write import replacing, write_whole
from tokengym.envs.core.errors import DataError
from tokengym.envs.disruption.data.steps import Progress, ignore_progress

if TYPE_CHECKING:
    import httpx

ADDRESS = "https://api.openalex.org"
KEY_VARIABLE = "OPENALEX_API_KEY"
PER_PAGE = 100
FIELDS = (
    "id,title,abstract_inverted_index,publication_year,type,primary_location,primary_topic,"
    "cited_by_count,referenced_works,is_retracted,is_paratext"
)
_RETRIED = frozenset({403, 408, 429, 500, 502, 503, 504})
_LONGEST_WAIT = 60.0
_STATE = ".fetch.json"


def fetch_works(
    folder: Path | str,
    works_filter: str,
    *,
    most_pages: int | None = None,
    address: str = ADDRESS,
    retries: int = 6,
    first_wait: float = 1.0,
    timeout: float = 60.0,
    progress: Progress = ignore_progress,
) -> int:
    """Fetch all works that match a filter, 100 per page, and return the number of pages.

    An interrupted fetch continues where it stopped. A key is read from the environment
    variable `OPENALEX_API_KEY`; without one the API allows next to nothing.

    Args:
        folder: where `page-000001.jsonl.gz` and so on go.
        works_filter: such as `publication_year:2005,type:article`.
        most_pages: stop after this many pages in all.
        address: of the API.
        retries: how often a refused or failed call is repeated.
        first_wait: seconds before the first repetition; they double, up to a minute, unless the
            server asks for another wait.
        timeout: seconds a call may take.
        progress: called after each page, with works for steps.

    Raises:
        DataError: if the folder holds a fetch with another filter, or the API refuses the filter,
            fails for good, or answers something other than a page of works.
        ImportError: if httpx is not installed.
    """
    import httpx

    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    state = _read_state(root, works_filter)
    parameters = {"filter": works_filter, "per_page": str(PER_PAGE), "select": FIELDS}
    key = os.environ.get(KEY_VARIABLE)
    with httpx.Client(base_url=address, timeout=timeout, follow_redirects=True) as client:
        while state["cursor"] and (most_pages is None or state["pages"] < most_pages):
            call = {**parameters, "cursor": state["cursor"]} | ({"api_key": key} if key else {})
            page = _get_page(client, call, retries, first_wait)
            results, meta = page["results"], page["meta"]
            if results:
                state["pages"] += 1
                state["works"] += len(results)
                _write_page(root / f"page-{state['pages']:06d}.jsonl.gz", results)
            state["cursor"] = meta.get("next_cursor") if results else None
            write_whole(root / _STATE, json.dumps(state).encode())
            progress("fetch works", state["works"], int(meta.get("count") or state["works"]))
    pages: int = state["pages"]
    return pages


def _get_page(
    client: "httpx.Client", call: Mapping[str, str], retries: int, first_wait: float
) -> dict[str, Any]:
    """Get one page; messages never repeat the call, which holds the key."""
    import httpx

    trouble = ""
    for attempt in range(retries + 1):
        wait = min(first_wait * 2**attempt, _LONGEST_WAIT)
        try:
            answer = client.get("/works", params=call)
        except httpx.TransportError as error:
            trouble = f"{type(error).__name__}"
        else:
            if answer.status_code == httpx.codes.OK:
                return _parse_page(answer)
            trouble = f"status {answer.status_code}"
            if answer.status_code not in _RETRIED:
                raise DataError(
                    f"OpenAlex refused {call['filter']!r}: {trouble}, {_read_reason(answer)}"
                )
            asked = answer.headers.get("retry-after", "")
            wait = min(float(asked), _LONGEST_WAIT) if asked.isdigit() else wait
        if attempt < retries:
            time.sleep(wait)
    raise DataError(f"OpenAlex failed {retries + 1} times in a row, the last time with {trouble}")


def _parse_page(answer: "httpx.Response") -> dict[str, Any]:
    try:
        page = answer.json()
    except ValueError as error:
        raise DataError(f"OpenAlex did not answer JSON: {error}") from error
    if (
        not isinstance(page, dict)
        or not isinstance(page.get("results"), list)
        or not isinstance(page.get("meta"), dict)
    ):
        raise DataError("OpenAlex answered something other than a page with meta and results")
    return page


def _read_reason(answer: "httpx.Response") -> str:
    """The reason that the API gives for a refusal, shortened."""
    try:
        body = answer.json()
    except ValueError:
        return "no reason given"
    return str(body.get("message", body) if isinstance(body, dict) else body)[:200]


def _read_state(root: Path, works_filter: str) -> dict[str, Any]:
    path = root / _STATE
    if not path.exists():
        return {"filter": works_filter, "cursor": "*", "pages": 0, "works": 0}
    state: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if state["filter"] != works_filter:
        raise DataError(
            f"{root} holds a fetch of {state['filter']!r}; take another folder for {works_filter!r}"
        )
    return state


def _write_page(path: Path, results: list[Any]) -> None:
    with replacing(path) as part, gzip.open(part, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(work, ensure_ascii=False) + "\n" for work in results)
