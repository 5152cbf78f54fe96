"""Reading Parquet files by row groups, with pyarrow from the extra `data`."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from tokengym.envs.core.errors import DataError
from tokengym.envs.intake.names import repeated

_BATCH = 256
"""Rows held in memory at once."""


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """Open a Parquet file; damage found while it is read raises too.

    Raises:
        DataError: if it cannot be read, names a column twice, or pyarrow is not installed.
    """
    try:
        import pyarrow as pa  # type: ignore[import-untyped]
        from pyarrow import parquet
    except ImportError as error:
        raise DataError(f"{path}: Parquet needs pyarrow: pip install 'tokengym[data]'") from error
    try:
        with parquet.ParquetFile(path) as table:
            if twice := repeated(table.schema_arrow.names):
                raise DataError(f"{path}: the column {twice!r} comes twice")
            yield table
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path} cannot be read as a Parquet table: {error}") from error


def parquet_rows(path: Path) -> Iterator[object]:
    """Yield the rows of a Parquet file in the types of JSON; times as ISO 8601.

    Raises:
        DataError: as `open_parquet` does.
    """
    with open_parquet(path) as table:
        for batch in table.iter_batches(batch_size=_BATCH):
            yield from map(_plain, batch.to_pylist())


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
