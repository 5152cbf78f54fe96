"""Detecting the kind of a source by its records, whatever its files are called."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Literal, get_args

from tokengym.envs.core.errors import DataError
from tokengym.envs.disruption.data.openalex import find_snapshot_parts
from tokengym.envs.intake.rows import begins_as_json, read_rows

Kind = Literal["openalex", "sciscinet", "jsonl"]
KINDS: tuple[Kind, ...] = get_args(Kind)

Content = Literal["works", "papers", "other", "damaged", "none"]
"""Works of OpenAlex, labelled papers, other objects of JSON, damaged JSON, or no JSON."""

SCORES, CITATIONS = "sciscinet_papers", "sciscinet_paperrefs"
WORK_FIELDS = frozenset({"id", "publication_year"})
PAPER_FIELDS = frozenset({"openalex_id", "publication_year"})

_KIND_OF: Mapping[Content, Kind] = {"works": "openalex", "papers": "jsonl"}
_WANTED: Mapping[Content, str] = {
    "works": "works of OpenAlex: objects of JSON with at least id and publication_year",
    "papers": "labelled papers: objects of JSON with openalex_id and the other fields of a paper",
}
_MEANING: Mapping[Content, str] = {
    "works": "works of OpenAlex, kind openalex",
    "papers": "labelled papers, kind jsonl",
    "other": "JSON with other fields",
    "damaged": "damaged JSON",
    "none": "not JSON",
}
_LOOKED_AT = 20
_LISTED = 5


def detect_kind(source: Path) -> Kind:
    """Return what a file or folder holds.

    Raises:
        DataError: if it is none of the kinds, or holds files of several.
    """
    if any(source.glob(f"{SCORES}*")):
        return "sciscinet"
    if find_snapshot_parts(source):
        return "openalex"
    contents = _contents_of(source)
    kinds: set[Kind] = {kind for content, kind in _KIND_OF.items() if content in contents.values()}
    if len(kinds) == 1:
        return kinds.pop()
    rule = "files of several kinds, name one" if kinds else f"none of the kinds {list(KINDS)}"
    raise DataError(
        f"{source} holds {rule}: {_describe(source, contents)}. Works of OpenAlex are read as JSON "
        "of its API or snapshot, which names their references; SciSciNet as its Parquet tables"
    )


def find_files(
    source: Path, content: Literal["works", "papers"]
) -> tuple[Sequence[Path], Mapping[str, str]]:
    """Find the files of a source that hold works or papers, damaged ones included.

    A snapshot of OpenAlex has its parts, newest first; other files come in the order of their
    names.

    Returns:
        files in the order in which their records count; what else lies in the folder, by name, and
        what it holds.

    Raises:
        DataError: if there are none.
    """
    if source.is_file():
        return [source], {}
    if content == "works" and (parts := find_snapshot_parts(source)):
        return parts, {}
    contents = _contents_of(source)
    if content not in contents.values():
        held = _describe(source, contents)
        raise DataError(f"{source} holds no {_WANTED[content]}. It has {held}")
    files = [path for path, held in contents.items() if held in (content, "damaged")]
    ignored = {
        path.relative_to(source).as_posix(): _MEANING[held]
        for path, held in contents.items()
        if path not in files
    }
    return files, ignored


def content_of(path: Path) -> Content:
    """Return what a file holds, by the first of its records that can be read."""
    if not begins_as_json(path):
        return "none"
    with suppress(DataError):
        for one in islice(read_rows(path, common=False, tables=False), _LOOKED_AT):
            if one.row is not None:
                if one.row.keys() >= WORK_FIELDS:
                    return "works"
                return "papers" if one.row.keys() >= PAPER_FIELDS else "other"
    return "damaged"


def _contents_of(source: Path) -> dict[Path, Content]:
    """Return what a file, or each file of a folder at any depth, holds; dotted names are left out.

    Raises:
        DataError: if there is no such file or folder.
    """
    if source.is_file():
        return {source: content_of(source)}
    if not source.exists():
        raise DataError(f"there is no {source}")
    return {
        path: content_of(path)
        for path in sorted(source.rglob("*"))
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(source).parts)
    }


def _describe(source: Path, contents: Mapping[Path, Content]) -> str:
    """Name some files and what they hold."""
    if not contents:
        return "no files"
    listed = [
        f"{path.name if path == source else path.relative_to(source)} ({_MEANING[held]})"
        for path, held in list(contents.items())[:_LISTED]
    ]
    more = len(contents) - len(listed)
    return ", ".join([*listed, f"and {more} more"] if more else listed)
