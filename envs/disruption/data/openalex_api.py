"""Pages of the OpenAlex API, fetched into files one by one, so that a fetch can be resumed.

For more than some hundred thousand works take the snapshot: the API is metered by the call.
"""

import gzip
import json
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokengym.atomic_write import replacing, write_whole
from tokengym.envs.core.errors import DataError, OptionError
from tokengym.envs.disruption.data.openalex import FETCHED_AS, Work, read_works, shorten_id
from tokengym.envs.disruption.data.steps import Progress, ignore_progress

if TYPE_CHECKING:
    import httpx

ADDRESS = "https://api.openalex.org"
KEY_VARIABLE = "OPENALEX_API_KEY"
PER_PAGE = 100
IDS_A_FILTER = 100
"""Most ids that the API takes in one filter."""
EXPANSIONS = ("citers", "references")
"""Relatives that may be fetched of matching works: their citers, and their references."""
FIELDS = (
    "id,title,abstract_inverted_index,publication_year,type,primary_location,primary_topic,"
    "cited_by_count,referenced_works,is_retracted,is_paratext"
)
_JUDGED_FIELDS = f"{FIELDS},authorships"
"""Of works that match. Authorships, institutions and all, are most of a record, and no citer's are
needed."""
_RETRIED = frozenset({403, 408, 429, 500, 502, 503, 504})
_LONGEST_WAIT = 60.0
_STATE = ".fetch.json"
_NO_KEY = (
    f"OpenAlex asks for an API key, which is free at https://openalex.org/settings/api: set "
    f"{KEY_VARIABLE}; a mail address is no longer asked for"
)


def fetch_works(
    folder: Path | str,
    works_filter: str,
    *,
    expand: Collection[str] = (),
    window: int = 5,
    most_pages: int | None = None,
    address: str = ADDRESS,
    retries: int = 6,
    first_wait: float = 1.0,
    timeout: float = 60.0,
    progress: Progress = ignore_progress,
) -> int:
    """Fetch all works that match a filter, 100 per page, and return the number of their pages.

    An interrupted fetch continues where it stopped. A key is read from the environment
    variable `OPENALEX_API_KEY`; without one the API allows next to nothing.

    Args:
        folder: where `page-000001.jsonl.gz` and so on go, then `citers-000001.jsonl.gz` and
            `references-000001.jsonl.gz`.
        works_filter: such as `publication_year:2005,type:article`.
        expand: which of `EXPANSIONS` to fetch besides; these works count as citations of those
            that match, and are not judged themselves: their own citers are not complete.
        window: of citers, years after the cited work's.
        most_pages: stop after this many pages of works that match.
        address: of the API.
        retries: how often a refused or failed call is repeated.
        first_wait: seconds before the first repetition; they double, up to a minute, unless the
            server asks for another wait.
        timeout: seconds a call may take.
        progress: called after each page, with works for steps.

    Raises:
        OptionError: if there is no such expansion.
        DataError: if the folder holds a fetch with another filter, or the API refuses the filter or
            the key, fails for good, or answers something other than a page of works.
        ImportError: if httpx is not installed.
    """
    import httpx

    if unknown := sorted({*expand} - {*EXPANSIONS}):
        raise OptionError(f"--expand takes {' and '.join(EXPANSIONS)}, got {unknown}")
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    state = _read_state(root, works_filter)
    key = os.environ.get(KEY_VARIABLE)
    fixed = {"per_page": str(PER_PAGE)} | ({"api_key": key} if key else {})
    with httpx.Client(base_url=address, timeout=timeout, follow_redirects=True) as client:

        def get(matching: str, cursor: str, fields: str = FIELDS) -> dict[str, Any]:
            call = {"filter": matching, "cursor": cursor, "select": fields, **fixed}
            return _get_page(client, call, retries, first_wait)

        while state["cursor"] and (most_pages is None or state["pages"] < most_pages):
            page = get(works_filter, state["cursor"], _JUDGED_FIELDS)
            results, meta = page["results"], page["meta"]
            if results:
                state["pages"] += 1
                state["works"] += len(results)
                _write_page(root / f"page-{state['pages']:06d}.jsonl.gz", results)
            state["cursor"] = meta.get("next_cursor") if results else None
            write_whole(root / _STATE, json.dumps(state).encode())
            progress("fetch works", state["works"], int(meta.get("count") or state["works"]))
        for kind in (one for one in EXPANSIONS if one in expand):
            _expand(root, state, kind, window, get, progress)
    pages: int = state["pages"]
    return pages


def _expand(
    root: Path,
    state: dict[str, Any],
    kind: str,
    window: int,
    get: Callable[[str, str], dict[str, Any]],
    progress: Progress,
) -> None:
    """Fetch what cites the works that match a filter, or what they cite; see `fetch_works`.

    Works that are there already, whatever for, are not written again.
    """
    basis = [state["pages"], window]
    mine: dict[str, Any] = state.setdefault("expanded", {}).setdefault(kind, {"basis": basis})
    if mine["basis"] != basis:
        for path in root.glob(f"{kind}-*.jsonl.gz"):
            path.unlink()
        state["expanded"][kind] = mine = {"basis": basis}
    if mine.get("complete"):
        return
    matching = list(read_works(sorted(root.glob("page-*.jsonl.gz"))))
    filters = list(_filters(kind, matching, window))
    seen = {work.id for work in read_works(sorted(root.glob("*-*.jsonl.gz")))}
    for done in range(mine.get("filters", 0), len(filters)):
        cursor: str | None = mine.get("cursor", "*")
        while cursor:
            page = get(filters[done], cursor)
            new = [work for work in page["results"] if shorten_id(str(work.get("id"))) not in seen]
            seen.update(shorten_id(str(work.get("id"))) for work in new)
            if new:
                mine["pages"] = mine.get("pages", 0) + 1
                marked = [{**work, FETCHED_AS: kind} for work in new]
                _write_page(root / f"{kind}-{mine['pages']:06d}.jsonl.gz", marked)
            cursor = page["meta"].get("next_cursor") if page["results"] else None
            mine |= {"cursor": cursor or "*", "filters": done + (not cursor)}
            write_whole(root / _STATE, json.dumps(state).encode())
        progress(f"fetch {kind}", done + 1, len(filters))
    mine["complete"] = True
    write_whole(root / _STATE, json.dumps(state).encode())


def _filters(kind: str, works: Sequence[Work], window: int) -> Iterator[str]:
    """Yield the filters that match what cites some works within the window, or what they cite."""
    if kind == "references":
        ids = sorted(
            {reference for work in works for reference in work.references} - {w.id for w in works}
        )
        for first in range(0, len(ids), IDS_A_FILTER):
            yield f"openalex:{'|'.join(ids[first : first + IDS_A_FILTER])}"
        return
    # Works of like years share a filter, so that few citers lie outside of a work's own window.
    by_year = sorted(works, key=lambda work: (work.year, work.id))
    for first in range(0, len(by_year), IDS_A_FILTER):
        some = by_year[first : first + IDS_A_FILTER]
        years = f"publication_year:{some[0].year + 1}-{some[-1].year + window}"
        yield f"cites:{'|'.join(work.id for work in some)},{years}"


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
            if answer.status_code == httpx.codes.UNAUTHORIZED and "api_key" not in call:
                raise DataError(_NO_KEY)
            if answer.status_code not in _RETRIED:
                raise DataError(
                    f"OpenAlex refused {call['filter']!r}: {trouble}, {answer.text[:200]}"
                )
            asked = answer.headers.get("retry-after", "")
            wait = min(float(asked), _LONGEST_WAIT) if asked.isdigit() else wait
        if attempt < retries:
            time.sleep(wait)
    advice = "" if "api_key" in call else f". {_NO_KEY}"
    raise DataError(
        f"OpenAlex failed {retries + 1} times in a row, the last time with {trouble}{advice}"
    )


def _parse_page(answer: "httpx.Response") -> dict[str, Any]:
    try:
        page = answer.json()
        if isinstance(page["results"], list) and isinstance(page["meta"], dict):
            return dict(page)
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(f"OpenAlex did not answer a page of works in JSON: {error!r}") from error
    raise DataError("OpenAlex answered something other than a page with meta and results")


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
