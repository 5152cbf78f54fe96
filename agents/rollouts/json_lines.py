"""Rollouts as other tools' rows, and rows as files; `tokengym certify` reads the results back."""

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tokengym.agents.rollouts.record import RolloutRecord
from tokengym.agents.rollouts.selection import conversation


def prompts(records: Iterable[RolloutRecord]) -> Iterator[dict[str, Any]]:
    """Yield the first text of each Task once, as TRL's GRPO reads prompts, and where it is found.

    Args:
        records: rollouts; of a role that others' replies reach first, each text is a prompt.
    """
    seen = set()
    for record in records:
        first = conversation(record)[:1]
        key = (record.fingerprint, record.role, *(message["content"] for message in first))
        if first and key not in seen:
            seen.add(key)
            yield {"prompt": first, "split": record.split, "index": record.index}


def results(records: Iterable[RolloutRecord]) -> Iterator[dict[str, Any]]:
    """Yield rows like those of a `results.jsonl` of verifiers: a chat, its reward, its Task."""
    for record in records:
        messages = conversation(record)
        origin, replies = record.origin, max(len(record.own_turns), 1)
        yield {
            "example_id": record.index,
            "prompt": messages[:1],
            "completion": messages[1:],
            "reward": record.total,
            "split": record.split,
            "group": repr((origin.kind, origin.step, origin.group)),
            "info": {"task_id": record.fingerprint, "policy": origin.policy, "role": record.role},
            "metrics": {"well_formed": 1.0 - record.malformed / replies},
            "stop_condition": record.stop_reason,
        }


def write_rows(rows: Iterable[dict[str, Any]], path: Path | None) -> int:
    """Write rows as Parquet where the file's name ends so, else as JSON lines.

    Args:
        rows: plain values; in Parquet all with the same fields.
        path: the file; standard output if `None`, as JSON lines.

    Returns:
        the number of rows.

    Raises:
        ImportError: if Parquet is asked for without pyarrow, which the extra `data` installs.
    """
    if path is not None and path.suffix == ".parquet":
        from pyarrow import Table, parquet  # type: ignore[import-untyped]

        table = Table.from_pylist(list(rows))
        parquet.write_table(table, path)
        return int(table.num_rows)
    count = 0
    out = nullcontext(sys.stdout) if path is None else path.open("w", encoding="utf-8")
    with out as file:
        for row in rows:
            print(json.dumps(row, ensure_ascii=False, allow_nan=False), file=file)
            count += 1
    return count
