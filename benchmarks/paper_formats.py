"""Table of the formats of papers: rows read, rows refused, and why, with files made on the spot.

    python benchmarks/paper_formats.py --markdown docs/worlds/disruption.md

Every file has 60 works and the same faulty rows, read with `--on-corrupt skip`; by default the
first faulty row is refused by name.
"""

import argparse
import csv
import gzip
import json
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tokengym.agents.analysis.markdown import markdown_table, write_block
from tokengym.envs.core.errors import TokengymError
from tokengym.envs.disruption.data import Recipe, build_papers, detect_kind, score_works

BLOCK = "paper_formats.py"
WORKS = 60
FAULTY: Mapping[str, Any] = {
    "no publication_year": {"id": "https://openalex.org/W900"},
    "publication_year 99999": {"id": "https://openalex.org/W901", "publication_year": 99999},
    "not the id of a work": {"id": "https://openalex.org/A5", "publication_year": 2001},
    "a list": [1, 2],
}
_PLACE = re.compile(r"^[^ ]*:\d+(?:, \w+ \d+)?: |(?<=not JSON): .*|^[^ ]*(?=sciscinet_)")
"""Of a reason, where the row stands, and how the decoder put it."""
BROKEN = '{"id": "https://openalex.org/W902", '


def make_works() -> list[dict[str, Any]]:
    """Return works that cite the nine before them."""
    return [
        {
            "id": f"https://openalex.org/W{k}",
            "title": f"Study {k}",
            "publication_year": 1990 + k // 20,
            "type": "article",
            "primary_location": {"source": {"id": f"https://openalex.org/S{1 + k % 4}"}},
            "referenced_works": [f"https://openalex.org/W{r}" for r in range(max(1, k - 9), k)],
        }
        for k in range(1, WORKS + 1)
    ]


def make_papers() -> list[dict[str, Any]]:
    """Return labelled papers over 20 years."""
    labels = {0.4: "disruptive", -0.4: "consolidating", 0.0: "neutral"}
    return [
        {
            "openalex_id": f"W{k}",
            "title": f"Study {k}",
            "abstract": "",
            "publication_year": 1990 + k // 3,
            "cited_by_count": 3,
            "cd_index": score,
            "novelty_score": None,
            "conventionality_score": None,
            "disruption_label": labels[score],
            "novelty_label": None,
            "primary_field": "Biology",
        }
        for k, score in enumerate([*labels] * (WORKS // 3), start=1)
    ]


def write_lines(path: Path, rows: Sequence[Any], *, broken: bool = True) -> None:
    """Write JSON lines, gzipped if the name says so."""
    text = "".join(json.dumps(row) + "\n" for row in rows) + (BROKEN if broken else "")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def write_snapshot(folder: Path) -> None:
    """A snapshot's layout, with the table of merged ids."""
    write_lines(folder / "works" / "updated_date=2024-01-01" / "part_000.gz", rows_of_works())
    table = "merge_date,id,merge_into_id\n2024-01-01,W7,W8\n"
    merged = folder / "merged_ids" / "works" / "2024-01-01.csv.gz"
    merged.parent.mkdir(parents=True)
    merged.write_bytes(gzip.compress(table.encode()))


def write_folder(folder: Path) -> None:
    """Lines and a page of the API in files of any name, and a file of something else."""
    rows = rows_of_works()
    write_lines(folder / "first", rows[:30], broken=False)
    page = {"meta": {"count": len(rows)}, "results": rows[30:]}
    (folder / "second.txt").write_text(json.dumps(page, indent=1))
    (folder / "notes.md").write_text("From a search.\n")


def write_tables(folder: Path) -> None:
    """Tables of SciSciNet, with an author's id among the papers and among the references."""
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow import parquet

    folder.mkdir()
    works = make_works()
    papers = [
        {
            "paperid": work["id"].rpartition("/")[2],
            "doi": "",
            "year": work["publication_year"],
            "Atyp_10pct_Z": -1.0,
            "Atyp_Median_Z": 2.0,
        }
        for work in works
    ]
    papers.append({**papers[0], "paperid": "A5"})
    references = [
        {"citing_paperid": work["id"], "cited_paperid": reference}
        for work in works
        for reference in work["referenced_works"]
    ]
    references.append({"citing_paperid": "W1", "cited_paperid": "A5"})
    for name, rows in (("sciscinet_papers", papers), ("sciscinet_paperrefs", references)):
        parquet.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet")


def write_papers(path: Path) -> None:
    """Labelled papers, with labels that contradict their scores and a missing field."""
    rows = make_papers()
    short = {name: value for name, value in rows[0].items() if name != "title"}
    write_lines(path, [*rows, {**rows[0], "cd_index": 0.0}, {**rows[0], "cd_index": 7}, short])


def write_export(path: Path) -> None:
    """The table that OpenAlex's web page exports, which has no references."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "title", "publication_year"])
        writer.writerows(
            (work["id"], work["title"], work["publication_year"]) for work in make_works()
        )


def rows_of_works() -> list[Any]:
    """Return all works, then the faulty rows."""
    return [*make_works(), *FAULTY.values()]


FORMATS: Mapping[str, tuple[str, Callable[[Path], None]]] = {
    "OpenAlex snapshot": ("snapshot", write_snapshot),
    "works, a line each": ("works.jsonl", lambda path: write_lines(path, rows_of_works())),
    "the same, gzipped": ("works.jsonl.gz", lambda path: write_lines(path, rows_of_works())),
    "works, one array": ("works.json", lambda path: _write_json(path, rows_of_works())),
    "a page of the API": ("page", lambda path: _write_json(path, {"results": rows_of_works()})),
    "a folder of any names": ("folder", write_folder),
    "SciSciNet-v2": ("sciscinet", write_tables),
    "labelled papers": ("papers.jsonl", write_papers),
    "CSV of OpenAlex's web page": ("works.csv", write_export),
}


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value))


def measure(root: Path, name: str, write: Callable[[Path], None]) -> tuple[int, int, list[str]]:
    """Return rows read, rows refused, and the reasons or why the whole file is refused."""
    source = root / name
    write(source)
    try:
        kind = detect_kind(source)
        recipe = Recipe(kind=kind, source=source, shuffles=2, balance="none", skip_corrupt=True)
        if kind == "jsonl":
            manifest = build_papers(recipe, root / f"{name}.set")
            skipped, found = manifest["skipped"], manifest["source"]
            read, refused = found["records"], found["refused"]
        else:
            summary = score_works(recipe, [root / f"{name}.csv"])
            skipped, read, refused = summary.skipped, summary.records, summary.refused
    except TokengymError as error:
        return 0, WORKS, [str(error).replace(f"{root}/", "")]
    return read, refused, [one for reasons in skipped.values() for one in reasons]


def table() -> str:
    """Return the table as Markdown."""
    rows: list[tuple[str, ...]] = []
    before = ""
    with tempfile.TemporaryDirectory() as folder:
        for what, (name, write) in FORMATS.items():
            read, refused, reasons = measure(Path(folder), name, write)
            why = "; ".join(_PLACE.sub("", reason).replace("|", "/") for reason in reasons)
            shown = "as above" if why == before else why
            rows.append((what, f"`{name}`", str(read), str(refused), shown))
            before = why
    return markdown_table(("format", "source", "rows read", "rows refused", "why"), rows)


def print_or_write(description: str | None, block: str, text: Callable[[], str]) -> None:
    """Print a text, or write it into the block of the page that the command line names."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--markdown", type=Path, help="a page with a block for the table")
    page = parser.parse_args().markdown
    if page is None:
        print(text())
    else:
        write_block(page, block, text())


if __name__ == "__main__":
    print_or_write(__doc__, BLOCK, table)
