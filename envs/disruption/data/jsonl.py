"""Papers as JSON lines, one object a paper with the fields of `Paper`."""

import dataclasses
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tokengym.envs.core.errors import DataError
from tokengym.envs.disruption.data.parts import json_lines, refuse
from tokengym.envs.disruption.paper import FirstYear, Paper, ReferenceFacts


def write_papers(path: Path | str, papers: Iterable[Paper]) -> int:
    """Write papers, and return how many. The file appears only once it is complete."""
    target = Path(path)
    part = target.with_name(target.name + ".part")
    count = 0
    with part.open("w", encoding="utf-8") as file:
        for paper in papers:
            file.write(json.dumps(dataclasses.asdict(paper), ensure_ascii=False) + "\n")
            count += 1
    part.replace(target)
    return count


def read_papers(path: Path | str, skipped: list[str] | None = None) -> Iterator[Paper]:
    """Yield the papers of a file written by `write_papers` or by hand, gzipped or not.

    Args:
        path: the file.
        skipped: where to note damaged records, which are then passed over.

    Raises:
        DataError: if a record is damaged and `skipped` is `None`; it names the line.
    """
    for where, fields in json_lines(Path(path), skipped):
        try:
            yield _paper(fields)
        except (DataError, TypeError) as error:
            refuse(f"{where}: {error}", skipped, error)


def _paper(fields: dict[str, Any]) -> Paper:
    nested: dict[str, Any] = {}
    if fields.get("references") is not None:
        nested["references"] = ReferenceFacts(**fields["references"])
    if fields.get("first_year") is not None:
        nested["first_year"] = FirstYear(**fields["first_year"])
    return Paper(**{**fields, **nested})
