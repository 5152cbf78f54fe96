"""A small literature by seed, written as its sources would have it."""

import gzip
import hashlib
import json
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from tokengym.envs.disruption.citations import CitationGraph
from tokengym.envs.disruption.data import Recipe, Work, load_papers
from tokengym.envs.disruption.data.corpus import Corpus
from tokengym.envs.disruption.data.scoring import score_year
from tokengym.envs.disruption.paper import Paper

FIRST_YEAR, LAST_YEAR = 1995, 2019


def literature(count: int = 1500, seed: int = 0) -> list[Work]:
    """Works that cite earlier ones, in two fields and eight venues.

    One in three is much cited in the years after it: of these, by turns, one cites obscure works
    and is cited alone, one is cited with what it cites, one cites what everybody cites.
    """
    rng = np.random.default_rng(seed)
    cited: list[list[int]] = []
    works = []
    for k in range(count):
        listed: set[int] = set()
        if k > 90:
            obscure = 91 + 3 * rng.integers(0, k // 3, 6)
            if k % 9 == 0:
                listed.update(rng.integers(0, 90, 7).tolist())
            else:
                recent = 3 * (k // 3 - 1 - rng.integers(0, min(60, k // 3), 5))
                listed.update(recent.tolist())
                for one in recent.tolist():
                    if one % 9 == 3:
                        listed.update(cited[one][-4:])
                if k % 9 != 6:
                    listed.update(obscure[:4].tolist())
        listed = {one for one in listed if one < k}
        cited.append(sorted(listed))
        works.append(
            Work(
                id=f"W{k + 1}",
                title=f"Study {k} of things",
                abstract=f"we look at thing {k} in a way of our own",
                year=FIRST_YEAR + k * (LAST_YEAR - FIRST_YEAR + 1) // count,
                type="article" if k % 10 else "book",
                venue=f"S{1 + k % 8}" if k % 11 else "",
                field=["Biology", "Physics"][k // 2 % 2],
                cited_by_count=int(rng.integers(100)),
                references=tuple(f"W{r + 1}" for r in cited[-1]),
                authors=k % 4,
            )
        )
    return works


def label_works(works: Sequence[Work], *, last_year: int, shuffles: int = 20) -> list[Paper]:
    """The eligible papers among works, scored in memory without the steps of a build."""
    listed = sorted(works, key=lambda work: (len(work.id), work.id))
    number = {work.id: k for k, work in enumerate(listed)}
    edges = [(number[w.id], number[r]) for w in listed for r in w.references if r in number]
    years = np.array([work.year for work in listed], dtype=np.int64)
    citing, cited = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    names = [sorted({work.venue for work in listed}), sorted({work.field for work in listed})]
    corpus = Corpus(
        CitationGraph.from_edges(years, citing, cited),
        np.array([work.type == "article" for work in listed], dtype=bool),
        np.array([names[0].index(w.venue) if w.venue else -1 for w in listed], dtype=np.int64),
        np.array([names[1].index(w.field) if w.field else -1 for w in listed], dtype=np.int64),
    )
    how: dict[str, Any] = {"window": 5, "seed": 0, "rule": "threshold", "share": 0.25}
    papers = {}
    for year in sorted({year for year in years.tolist() if year + how["window"] <= last_year}):
        scored = score_year(corpus, year, last_year=last_year, shuffles=shuffles, **how)
        for k, which in enumerate(scored.number.tolist()):
            papers[listed[which].id] = scored.make_paper(k, listed[which], "threshold")
    return [papers[work.id] for work in works if work.id in papers]


def as_openalex(work: Work) -> dict[str, Any]:
    index: dict[str, list[int]] = {}
    for place, word in enumerate(work.abstract.split()):
        index.setdefault(word, []).append(place)
    return {
        "id": f"https://openalex.org/{work.id}",
        "title": work.title,
        "abstract_inverted_index": index or None,
        "publication_year": work.year,
        "type": work.type,
        "primary_location": {"source": {"id": f"https://openalex.org/{work.venue}"}}
        if work.venue
        else None,
        "primary_topic": {"field": {"display_name": work.field}},
        "cited_by_count": work.cited_by_count,
        "referenced_works": [f"https://openalex.org/{r}" for r in work.references],
        "authorships": [{"author_position": "first"}] * work.authors,
    }


def write_part(path: Path, lines: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("".join(f"{line}\n" for line in lines))


def write_snapshot(root: Path, works: list[Work], date: str = "2024-01-01") -> Path:
    part = root / "data" / "works" / f"updated_date={date}" / "part_000.gz"
    write_part(part, (json.dumps(as_openalex(work)) for work in works))
    return part


def write_parts(root: Path, works: Sequence[Work], parts: int = 5) -> list[Path]:
    """A snapshot in several parts, with an old copy of one work."""
    old = Work(**{**as_fields(works[1]), "title": "An old copy", "references": ()})
    return [
        write_snapshot(root, [*works[k::parts], *[old] * (k == 0)], f"2024-0{k + 1}-01")
        for k in range(parts)
    ]


def as_fields(work: Work) -> dict[str, Any]:
    return {name: getattr(work, name) for name in work.__slots__}


def write_pages(root: Path, works: Sequence[Work], size: int = 400) -> None:
    """Pages as `fetch_works` leaves them."""
    for k in range(0, len(works), size):
        lines = (json.dumps(as_openalex(work)) for work in works[k : k + size])
        write_part(root / f"page-{k // size + 1:06d}.jsonl.gz", lines)


def write_tables(
    root: Path, rows: Sequence[dict[str, Any]], edges: Sequence[tuple[str, str]], group: int = 500
) -> None:
    """SciSciNet-v2 tables in row groups of `group` rows."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    root.mkdir(parents=True, exist_ok=True)
    table = [{"citing_paperid": a, "cited_paperid": b, "year": 0, "ref_year": 0} for a, b in edges]
    for name, listed in (("sciscinet_papers", list(rows)), ("sciscinet_paperrefs", table)):
        path = root / f"{name}.parquet"
        parquet.write_table(pyarrow.Table.from_pylist(listed), path, row_group_size=group)


WORKS = literature()


def recipe(source: Path, **changes: Any) -> Recipe:
    base: dict[str, Any] = {"last_year": LAST_YEAR, "shuffles": 5, "balance": "split"}
    return Recipe(source=source, **(base | changes))


def tree(folder: Path) -> dict[str, str]:
    """Hash of every file below a folder."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def papers_in(folder: Path) -> dict[str, tuple[Paper, ...]]:
    return dict(load_papers(folder).papers)


class Library:
    """Answers as OpenAlex does: a key, filters by year, type, citations and ids, pages of 100.

    Attributes:
        troubles: status and body that are answered first, one a call.
        calls: the queries so far.
        address: where it is served.
    """

    def __init__(self) -> None:
        self.troubles: list[tuple[int, str]] = []
        self.calls: list[dict[str, str]] = []
        self.address = ""

    def answer(self, query: dict[str, str]) -> tuple[int, str]:
        self.calls.append(query)
        if self.troubles:
            return self.troubles.pop(0)
        if "api_key" not in query:
            said = {"error": "Unauthorized", "message": "cursor paging needs an API key"}
            return 401, json.dumps(said)
        matching = matching_works(query["filter"])
        if matching is None:
            return 400, json.dumps({"message": "Maximum number of values exceeded for filter"})
        begin = 0 if query["cursor"] == "*" else int(query["cursor"])
        selected = query["select"].split(",")
        results = [
            {name: value for name, value in as_openalex(work).items() if name in selected}
            for work in matching[begin : begin + 100]
        ]
        meta = {"count": len(matching), "next_cursor": str(begin + 100) if results else None}
        return 200, json.dumps({"meta": meta, "results": results})


def matching_works(conditions: str) -> list[Work] | None:
    """The works that a filter asks for; `None` where it has too many values."""
    matching = WORKS
    for condition in conditions.split(","):
        name, _, value = condition.partition(":")
        if value.count("|") >= 100:
            return None
        matching = [work for work in matching if _matches(work, name, value)]
    return matching


def _matches(work: Work, name: str, value: str) -> bool:
    if name == "publication_year":
        first, _, last = value.partition("-")
        return int(first) <= work.year <= int(last or first)
    named = value.split("|")
    return {
        "type": lambda: work.type in named,
        "cites": lambda: bool({*named} & {*work.references}),
        "openalex": lambda: work.id in named,
    }[name]()


@contextmanager
def served_library() -> Iterator[Library]:
    """Serve it on a free port."""
    library = Library()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            query = {name: value for name, (value,) in parse_qs(urlsplit(self.path).query).items()}
            status, body = library.answer(query)
            self.send_response(status)
            self.send_header("Retry-After", "0")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:
            """Keep the test's output clean."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        library.address = f"http://127.0.0.1:{server.server_port}"
        yield library
        server.shutdown()
        thread.join()
