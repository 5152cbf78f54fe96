"""Papers with the fields of `Paper` as JSON, read and written."""

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from tokengym.atomic_write import replacing
from tokengym.envs.core.errors import DataError
from tokengym.envs.disruption.paper import FirstYear, Paper, ReferenceFacts
from tokengym.envs.intake.names import name_unknown
from tokengym.envs.intake.numbers import is_missing
from tokengym.envs.intake.quoting import quoted
from tokengym.envs.intake.rows import read_objects, read_rows, refuse

_MARKS = frozenset({"openalex_id", "publication_year"})
"""Fields that distinguish papers from other rows, among the first `_LOOKED_AT`."""
_LOOKED_AT = 20
_FIELDS = dataclasses.fields(Paper)
_KNOWN = {field.name for field in _FIELDS}
_COUNTS = ("publication_year", "cited_by_count", "authors")
_REQUIRED = {field.name for field in _FIELDS if field.default is dataclasses.MISSING}
_OPTIONAL = {field.name for field in _FIELDS if "None" in str(field.type)}


def read_papers(path: Path | str, skipped: list[str] | None = None) -> Iterator[Paper]:
    """Yield the papers of a file written by `write_papers` or by hand; see `read_objects`.

    Args:
        path: the file.
        skipped: collects what is wrong with damaged records, which are then skipped.

    Raises:
        DataError: if a record is damaged and `skipped` is `None`; it names the line.
    """
    for where, fields in read_objects(Path(path), skipped):
        try:
            _check_names(fields, _REQUIRED, _KNOWN)
            fields |= {name: None for name in _OPTIONAL & fields.keys() if is_missing(fields[name])}
            for name, kind in (("references", ReferenceFacts), ("first_year", FirstYear)):
                if fields.get(name) is not None:
                    facts = _object(name, fields[name])
                    _check_names(facts, kind.__slots__, kind.__slots__)
                    fields[name] = kind(**_with_whole(facts, kind.__slots__))
            windows = _object("cd_by_window", fields.get("cd_by_window") or {})
            fields["cd_by_window"] = tuple((int(years), cd) for years, cd in windows.items())
            yield Paper(**_with_whole(fields, _COUNTS))
        except (DataError, TypeError, ValueError, OverflowError) as error:
            refuse(f"{where}: {error}", skipped, error)


def holds_papers(path: Path) -> bool:
    """Return whether a file of JSON begins with papers."""
    with suppress(DataError):
        rows = islice(read_rows(path, common=False, tables=False), _LOOKED_AT)
        return any(read.row is not None and read.row.keys() >= _MARKS for read in rows)
    return False


def _object(name: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DataError(f"{name} must be an object, got {quoted(value)}")
    return value


def _check_names(fields: Mapping[str, Any], required: Iterable[str], known: Iterable[str]) -> None:
    missing, unknown = sorted({*required} - fields.keys()), name_unknown(fields, known)
    if missing:
        raise DataError(
            f"it has no {', '.join(missing)}{unknown and f'; unknown: {unknown}'}"[:300]
        )
    if unknown:
        raise DataError(f"unknown fields: {unknown[:200]}")


def _with_whole(fields: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return fields with numbers such as 3.0 whole, as tools write a column that has gaps."""
    whole = {n: int(v) for n in names if isinstance(v := fields.get(n), float) and v.is_integer()}
    return {**fields, **whole}


def write_papers(path: Path | str, papers: Iterable[Paper]) -> int:
    """Write papers and return how many. The file appears only once it is complete."""
    count = 0
    with replacing(Path(path)) as part, part.open("w", encoding="utf-8") as file:
        for paper in papers:
            fields = dataclasses.asdict(paper) | {"cd_by_window": dict(paper.cd_by_window)}
            file.write(json.dumps(fields, ensure_ascii=False) + "\n")
            count += 1
    return count
