"""A user's own questions and papers, and corrections of them."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tokengym.envs import make_world

Rows = Sequence[dict[str, Any]]


def questions(count: int = 120) -> Rows:
    return [
        {
            "id": f"q{n}",
            "question": f"Will bridge {n} open?",
            "asked_at": f"2023-{n % 12 + 1:02}-01",
            "resolves_at": f"2023-{n % 12 + 1:02}-20",
            "outcome": "yes" if n % 3 else "no",
        }
        for n in range(count)
    ]


def papers(count: int = 120) -> Rows:
    return [
        {
            "openalex_id": f"W{n}",
            "title": f"A map of lake {n}",
            "abstract": "We chart it.",
            "publication_year": 2000 + n % 10,
            "cited_by_count": 31,
            "cd_index": [0.32, -0.4, 0.0][n % 3],
            "novelty_score": None,
            "conventionality_score": None,
            "disruption_label": ["disruptive", "consolidating", "neutral"][n % 3],
            "novelty_label": None,
            "primary_field": "Geology",
            "references": {"count": 12, "age": 7, "venues": 5, "fields": 2},
            "first_year": {"n_i": 3, "n_j": 1, "n_k": 2},
        }
        for n in range(count)
    ]


def write(path: Path, rows: Rows) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def correct(path: Path, world: str, split: str, tasks: int | Iterable[int]) -> None:
    """Correct the answers of some Tasks of a split: so many of the first, or those at indices."""
    made = make_world(world, data=str(path))
    indices = [*range(tasks)] if isinstance(tasks, int) else [*tasks]
    answers = [made.task(split, index).answer for index in indices]
    wrong = {answer.get("key") or answer["source"] for answer in answers}
    assert len(wrong) == len(indices)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    write(
        path,
        [
            _corrected(row) if {row.get("id"), row.get("openalex_id")} & wrong else row
            for row in rows
        ],
    )


def _corrected(row: dict[str, Any]) -> dict[str, Any]:
    if "outcome" in row:
        return {**row, "outcome": "no" if row["outcome"] == "yes" else "yes"}
    label, index = ("disruptive", 0.32) if row["cd_index"] < 0.1 else ("consolidating", -0.4)
    return {**row, "disruption_label": label, "cd_index": index}
