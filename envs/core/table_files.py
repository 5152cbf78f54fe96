"""Tables of results as files: CSV, or Parquet by pyarrow from the extra `data`."""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tokengym.atomic_write import replacing
from tokengym.envs.core.errors import OptionError

SUFFIXES = (".csv", ".parquet")

_TYPES = {str: "string", int: "int64", float: "float64", bool: "bool"}


def require_table(path: Path) -> None:
    """Refuse a name of a table that cannot be written.

    Raises:
        OptionError: if it ends in something else, or pyarrow is missing for Parquet.
    """
    if path.suffix not in SUFFIXES:
        raise OptionError(f"the name of a table ends in {' or '.join(SUFFIXES)}, got {path}")
    if path.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise OptionError(f"{path} needs pyarrow: pip install 'tokengym[data]', or write .csv")


@contextmanager
def open_table(
    path: Path, types: Mapping[str, type]
) -> Iterator[Callable[[Sequence[Sequence[Any]]], None]]:
    """Yield a writer of some rows, by columns, into a table that appears once it is complete.

    Args:
        path: the table, in a folder that is made if necessary.
        types: of the values of each column, of which any may be `None`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part, ExitStack() as opened:
        if path.suffix == ".csv":
            file = opened.enter_context(part.open("w", encoding="utf-8", newline=""))
            lines = csv.writer(file, lineterminator="\n")
            lines.writerow(types)
            yield lambda columns: lines.writerows(zip(*columns, strict=True))
        else:
            import pyarrow as pa  # type: ignore[import-untyped]
            from pyarrow import parquet

            schema = pa.schema([pa.field(name, _TYPES[kind]) for name, kind in types.items()])
            table = opened.enter_context(parquet.ParquetWriter(part, schema))
            yield lambda columns: table.write_table(pa.table([*columns], schema=schema))
