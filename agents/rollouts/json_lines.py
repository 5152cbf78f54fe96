"""Rows written as JSON lines, one object a line."""

import json
import sys
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any


def write_rows(rows: Iterable[dict[str, Any]], path: Path | None) -> int:
    """Write rows to a file, or to standard output if there is none; returns their number."""
    count = 0
    out = nullcontext(sys.stdout) if path is None else path.open("w", encoding="utf-8")
    with out as file:
        for row in rows:
            print(json.dumps(row, ensure_ascii=False, allow_nan=False), file=file)
            count += 1
    return count
