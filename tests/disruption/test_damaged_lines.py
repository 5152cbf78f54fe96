"""One damaged line of papers is one refused line, or one that is skipped; bounds are stated."""

import dataclasses
import json
from pathlib import Path

import pytest

from tests.disruption.test_sources import PAPER
from tokengym.envs.core.errors import DataError
from tokengym.envs.disruption.data.jsonl import read_papers

GOOD = dataclasses.asdict(PAPER)
DEEP = "[" * 100_000 + "]" * 100_000
HUGE = int("1" + "0" * 400)

DAMAGED: list[bytes] = [
    json.dumps({**GOOD, "publication_year": HUGE}).encode(),
    json.dumps({**GOOD, "publication_year": float("inf")}).encode(),
    json.dumps({**GOOD, "cited_by_count": float("nan")}).encode(),
    json.dumps({**GOOD, "novelty_score": float("inf")}).encode(),
    json.dumps({**GOOD, "cd_index": "high"}).encode(),
    json.dumps({**GOOD, "title": None}).encode(),
    json.dumps({**GOOD, "title": "\ud83d"}).encode(),
    json.dumps({**GOOD, "references": [1, 2]}).encode(),
    json.dumps({**GOOD, "references": {**GOOD["references"], "count": "9"}}).encode(),
    json.dumps({"openalex_id": "W1"}).encode(),
    *(
        json.dumps({**GOOD, **change}).encode()
        for change in (
            {"cd_index": 0.0},
            {"unknown": 1},
            {"references": {"count": 1}},
            {"references": 3},
            {"first_year": [1]},
            {"cd_by_window": "x"},
        )
    ),
    f'{{"openalex_id": {DEEP}}}'.encode(),
    b'{"openalex_id": "W\xff"}',
]


@pytest.mark.parametrize("line", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_paper_is_refused_by_its_line_or_skipped(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "papers.jsonl"
    path.write_bytes(b"\n".join([json.dumps(GOOD).encode(), line, json.dumps(GOOD).encode()]))
    with pytest.raises(DataError, match=r"papers\.jsonl:2: "):
        list(read_papers(path))
    skipped: list[str] = []
    assert list(read_papers(path, skipped)) == [PAPER, PAPER]
    assert len(skipped) == 1
    assert len(skipped[0]) < 400
