"""Reading a user's own files, recognised by their first lines. Errors name file, line, reason.

- A layout: text in the characters of RWARE's layouts (https://github.com/semitable/robotic-warehouse),
  `x` shelf, `g` goal, `.` walkway; blanks are dropped, capitals allowed.
- `slots.csv`: `sku,aisle,row,qty`, one slot an article.
- `orders.csv`: `order_id,release_min,due_min,sku,qty,value`, a row a line; values of lines add up.
- `demand.csv`: `period,sku,qty`, a row for every article and period.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path

from tokengym.envs.core.errors import DataError
from tokengym.envs.intake.tables import Source
from tokengym.envs.warehouse.data.columns import describe, kind_of, quote_refusals
from tokengym.envs.warehouse.data.orders_file import read_layout, read_orders
from tokengym.envs.warehouse.data.records import WarehouseRecords
from tokengym.envs.warehouse.data.sales_file import read_demand


def read(paths: Source | Sequence[Source]) -> WarehouseRecords:
    """Read files of demand, or of slots and orders, recognised by their first lines.

    Unusable rows of a file are left out, with a warning; `refused` of the records
    lists it.

    Args:
        paths: the file of demand; or those of slots and orders, in any order, and a layout if
            there are other than parallel aisles.

    Raises:
        DataError: if the files do not fit together or one of them is refused.
    """
    files = [paths] if isinstance(paths, str | Path) else list(paths)
    records = _read(files)
    if records.refused:
        rows = sum(refusal.rows for refusal in records.refused)
        reasons = quote_refusals(records.refused)
        text = f"{rows} rows are left out: {reasons}; `refused` of the records lists all"
        warnings.warn(text, UserWarning, stacklevel=3)
    return records


def _read(files: Sequence[Source]) -> WarehouseRecords:
    kinds: dict[str, Source] = {}
    for file in files:
        kind = kind_of(file)
        if not kind:
            raise DataError(describe(file))
        kinds[kind] = file
    if len(kinds) == len(files):
        if set(kinds) == {"demand"}:
            return read_demand(kinds["demand"])
        if {"slots", "orders"} <= set(kinds) <= {"slots", "orders", "layout"}:
            layout = read_layout(kinds["layout"]) if "layout" in kinds else None
            return read_orders(kinds["orders"], kinds["slots"], layout)
    raise DataError(
        "data are a file of demand, or files of slots and of orders with or without a layout; got "
        f"{[f'{file}: {kind_of(file)}' for file in files]}"
    )
