"""Reading the rows of a Parquet file, with pyarrow from the extra `data`."""

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from tokengym.envs.core.errors import DataError

_BATCH = 256
"""Rows held in memory at once."""


def parquet_rows(path: Path) -> Iterator[object]:
    """Yield the rows of a Parquet file in the types of JSON; times as ISO 8601.

    Raises:
        DataError: if it cannot be read, or pyarrow is not installed.
    """
    try:
        import pyarrow as pa  # type: ignore[import-untyped]
        from pyarrow import parquet
    except ImportError as error:
        raise DataError(f"{path}: Parquet needs pyarrow: pip install 'tokengym[data]'") from error
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_BATCH):
                yield from map(_plain, batch.to_pylist())
    except pa.ArrowException as error:
        raise DataError(f"{path}: cannot be read: {error}") from error


def _plain(value: Any) -> object:
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, date):  # a datetime is one too
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
