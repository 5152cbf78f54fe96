"""Works of OpenAlex as JSON objects, from a snapshot, pages of the API or any other files."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tokengym.envs.core.errors import DataError
from tokengym.envs.disruption.paper import LAST_YEAR, MOST_CITATIONS
from tokengym.envs.intake.numbers import whole_number
from tokengym.envs.intake.quoting import quoted
from tokengym.envs.intake.rows import begins_as_json, read_objects, refuse
from tokengym.envs.intake.text import clean, clean_line

_WORK_ID = re.compile(r"W([0-9]{1,18})")
_COUNTS = {"publication_year": LAST_YEAR, "cited_by_count": MOST_CITATIONS}
MOST_AUTHORS = 100
"""Authorships after which a page of the API cuts off a work's list."""
FETCHED_AS = "fetched_as"
"""Field of a record that was fetched for the citations of others, see `fetch_works`."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Work:
    """One bibliographic record.

    Attributes:
        id: OpenAlex id without its address, such as `W2741809807`.
        title: title, possibly empty.
        abstract: abstract, possibly empty.
        year: publication year.
        type: such as `article`.
        venue: id of the journal or conference, the empty string if unknown.
        field: primary field, the empty string if unknown.
        cited_by_count: citations to date.
        references: ids of the works it cites.
        withheld: why it is no paper to judge, `retracted`, `paratext`, or as what it was fetched
            for other works; empty if it is one.
        authors: how many wrote it, 0 if unknown: lists of the API end after `MOST_AUTHORS`.
    """

    id: str
    title: str
    abstract: str
    year: int
    type: str
    venue: str
    field: str
    cited_by_count: int
    references: tuple[str, ...]
    withheld: str = ""
    authors: int = 0


def find_works(source: Path) -> tuple[list[Path], list[str]]:
    """Find the files of works in a source: a file, a snapshot, or a folder of JSON.

    Returns:
        the files in the order in which their records count, the newest part of a snapshot first;
        the names of files in a folder that do not begin like JSON and are not read.

    Raises:
        DataError: if there are none.
    """
    if not source.exists():
        raise DataError(f"there is no {source}")
    parts = [p for p in source.rglob("updated_date=*/*.gz") if p.resolve().parts[-3] == "works"]
    if parts:
        return sorted(parts, key=lambda part: (part.parent.name, part.name), reverse=True), []
    held = {source.name: source}
    if source.is_dir():
        found = {path.relative_to(source).as_posix(): path for path in sorted(source.rglob("*"))}
        held = {n: path for n, path in found.items() if "/." not in f"/{n}" and path.is_file()}
    works = [path for path in held.values() if begins_as_json(path)]
    if not works:
        raise DataError(
            f"{source} holds no JSON: works of OpenAlex are read as JSON of its API or snapshot, "
            "which names their references; SciSciNet as its Parquet tables. It has "
            f"{', '.join([*held][:5]) or 'no files'}"
        )
    return works, [name for name, path in held.items() if path not in works]


def read_works(parts: Iterable[Path], skipped: list[str] | None = None) -> Iterator[Work]:
    """Yield the works of files of JSON, each id once, from the first part that holds it.

    Works without a publication year are left out.

    Args:
        parts: the files.
        skipped: collects what is wrong with damaged lines and parts, which are then skipped.

    Raises:
        DataError: if a part is damaged and `skipped` is `None`.
    """
    seen: set[str] = set()
    for part in parts:
        for where, fields in read_objects(part, skipped):
            try:
                work = _parse_work(fields)
            except (KeyError, ValueError) as error:
                refuse(f"{where}: not a work: {_explain(error)}", skipped, error)
                continue
            if work is not None and work.id not in seen:
                seen.add(work.id)
                yield work


def rebuild_abstract(inverted_index: Mapping[str, Any]) -> str:
    """Rebuild an abstract from the positions of its words.

    Raises:
        ValueError: if they are no lists of whole numbers.
    """
    try:
        words = [(place, word) for word, places in inverted_index.items() for place in places]
    except TypeError:
        words = [("", "")]
    if not {type(place) for place, _ in words} <= {int}:
        raise ValueError(f"the places of words in its abstract are {quoted(inverted_index)}")
    return " ".join(word for _, word in sorted(words))


def shorten_id(address: str) -> str:
    """Return `W2741809807` for `https://openalex.org/W2741809807`."""
    return address.rpartition("/")[2].upper()


def parse_work_id(work_id: str) -> int | None:
    """Return the number of a work id such as `W2741809807`, `None` for anything else."""
    match = _WORK_ID.fullmatch(work_id)
    return None if match is None else int(match[1])


def _explain(error: Exception) -> str:
    return f"it has no {error.args[0]}" if isinstance(error, KeyError) else str(error)


def _parse_work(fields: Mapping[str, Any]) -> Work | None:
    """Read one work object of the snapshot or the API; `None` if it has no publication year."""
    if fields["publication_year"] is None:
        return None
    source = _field(_field(fields, "primary_location", dict), "source", dict)
    field = _field(_field(fields, "primary_topic", dict), "field", dict)
    references = _field(fields, "referenced_works", list)
    if not all(isinstance(reference, str) for reference in references):
        raise ValueError(f"referenced_works must list ids, got {quoted(references)}")
    short = shorten_id(fields["id"] if isinstance(fields["id"], str) else "")
    if parse_work_id(short) is None:
        raise ValueError(f"its id must read W and digits, got {quoted(fields['id'])}")
    kind = _field(fields, "type", str)
    paratext = _field(fields, "is_paratext", bool) or kind == "paratext"
    retracted = _field(fields, "is_retracted", bool)
    authors = len(_field(fields, "authorships", list))
    return Work(
        id=short,
        title=clean_line(_field(fields, "title", str) or _field(fields, "display_name", str)),
        abstract=clean(rebuild_abstract(_field(fields, "abstract_inverted_index", dict))),
        year=_count(fields, "publication_year"),
        type=kind,
        venue=shorten_id(_field(source, "id", str)),
        field=clean_line(_field(field, "display_name", str)),
        cited_by_count=_count(fields, "cited_by_count"),
        references=tuple(map(shorten_id, references)),
        withheld=_field(fields, FETCHED_AS, str)
        or ("retracted" if retracted else "paratext" if paratext else ""),
        authors=0 if authors == MOST_AUTHORS else authors,
    )


def _field(fields: Mapping[str, Any], name: str, kind: type[T]) -> T:
    """Return a field that may be missing or null, which is an empty value.

    Raises:
        ValueError: if it is of another type.
    """
    value = fields.get(name)
    if value is None:
        return kind()
    if not isinstance(value, kind):
        raise ValueError(f"{name} must be of type {kind.__name__}, got {quoted(value)}")
    return value


def _count(fields: Mapping[str, Any], name: str) -> int:
    most = _COUNTS[name]
    value = whole_number(fields.get(name) or 0)
    if value is None or not 0 <= value <= most or isinstance(fields.get(name), bool):
        got = quoted(fields.get(name))
        raise ValueError(f"{name} must be a whole number from 0 to {most}, got {got}")
    return value
