"""Reading InventoryBench: folders that each hold a `train.csv` and a `test.csv`.

Format, rules and score: Baek, Fu, Ma and Peng (2025), https://github.com/TianyiPeng/InventoryBench.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tokengym.envs.core.errors import DataError
from tokengym.envs.core.split_windows import Windows
from tokengym.envs.intake.tables import CsvTable, Row, Source, read_text
from tokengym.envs.intake.text import clean_line
from tokengym.envs.warehouse.data.columns import refuse_file
from tokengym.envs.warehouse.data.records import (
    Entries,
    Entry,
    Records,
    by_split,
    digest_of,
    refuse_all,
)
from tokengym.envs.warehouse.games.buying.rules import MOST_UNITS
from tokengym.envs.warehouse.levels import BuyingLevel

_DEMAND = "demand_"
_NUMBERED = re.compile(r"period_\d+", re.IGNORECASE)
_POINTER = "version https://git-lfs"
_LONGEST_TEXT = 300


class Instance(NamedTuple):
    """One instance.

    Attributes:
        plain: the article, its past and its costs.
        demand: units asked for by period, from `test.csv`.
        leads: periods to arrival of an order placed then; `None` if it never arrives.
    """

    plain: Mapping[str, Any]
    demand: tuple[int, ...]
    leads: tuple[int | None, ...]


@dataclass(frozen=True)
class InventoryBench(Records):
    """Instances of InventoryBench.

    Attributes:
        instances: the instances, by folder.
    """

    instances: tuple[Instance, ...]

    mode: ClassVar[str] = "supply"
    purpose: ClassVar[str] = "InventoryBench is data for the levels inventory_* only"

    def entries(self, level: BuyingLevel) -> Entries:
        """Return the instances with the level's lead times.

        Instances that differ in costs or lead times alone share their demand and lie in one split,
        whatever the level; which one is decided by a hash of it.

        Raises:
            DataError: if an instance or a split is missing.
        """
        fits = [
            at
            for at, instance in enumerate(self.instances)
            if [instance.plain[term] for term in ("promised", "reliable")]
            == [level.promised, level.reliable]
            and len(instance.demand) <= level.periods
        ]
        if not fits:
            trust = "kept" if level.reliable else "not kept"
            raise DataError(
                f"{self.name}: the level has a promised lead time of {level.promised}, {trust}, "
                f"and at most {level.periods} periods; none of {len(self.instances)} instances does"
            )
        paths = sorted({instance.demand for instance in self.instances}, key=digest_of)
        numbers = {path: number for number, path in enumerate(paths)}
        windows = Windows(range(len(paths)), "instances with demand of their own")
        return by_split((windows[numbers[self.instances[at].demand]], Entry(at)) for at in fits)

    def instance(
        self, rng: np.random.Generator, level: BuyingLevel, entry: Entry
    ) -> dict[str, Any]:
        """Return an instance without its outcomes."""
        return dict(self.instances[entry.start].plain)

    def outcomes(self, at: int, _instance: Mapping[str, Any]) -> dict[str, Any]:
        """Return demand and lead times by period."""
        found = self.instances[at]
        return {"demand": list(found.demand), "leads": list(found.leads)}


def read_inventory_bench(folder: Source) -> InventoryBench:
    """Read all instances below a folder; those that cannot be used are left out.

    Args:
        folder: a folder with instances at any depth, such as `benchmark`.

    Raises:
        DataError: if there is no instance that can be used.
    """
    instances: list[Instance] = []
    refused = []
    notes: dict[str, None] = {}
    for test in sorted(Path(folder).rglob("test.csv")):
        name = test.parent.relative_to(folder).as_posix()
        try:
            found, unused = _instances(name, test.with_name("train.csv"), test)
            instances += found
            notes |= dict.fromkeys([f"columns that are not used: {unused}"] if unused else [])
        except DataError as error:
            refused.append(refuse_file(test, error, headers=1))
    if not instances:
        raise DataError(
            refuse_all(folder, "instance (folder with train.csv and test.csv)", refused)
        )
    return InventoryBench(
        str(folder),
        tuple(instances),
        refused=tuple(refused),
        read=sum(len(one.demand) for one in instances) + sum(one.rows for one in refused),
        notes=tuple(notes),
    )


def _instances(name: str, train: Path, test: Path) -> tuple[list[Instance], str]:
    """Return the instances of a folder, one per article, and the columns that are not used."""
    for path in (train, test):
        if read_text(path).startswith(_POINTER):
            raise DataError(f"{path}: a Git LFS pointer, not the file; run git lfs pull")
    past, future = CsvTable(train), CsvTable(test)
    articles = [column[len(_DEMAND) :] for column in future.header if column.startswith(_DEMAND)]
    if not articles:
        raise DataError(
            f"{test}, line 1: the columns exact_dates_X,demand_X,lead_time_X,profit_X,"
            f"holding_cost_X of an article X are expected, got {future.header}"
        )
    read = [
        _instance(name if len(articles) == 1 else f"{name} {x}", past, future, x) for x in articles
    ]
    future.asked.update(f"{_DEMAND}{article}" for article in articles)
    return read, future.name_unused()


def _instance(name: str, past: CsvTable, future: CsvTable, article: str) -> Instance:
    about, demand = f"description_{article}", f"{_DEMAND}{article}"
    text = next((t.texts(about)[0] for t in (future, past) if t.has(about)), "")
    dated = future.has(f"exact_dates_{article}")
    dates = future.texts(dated) if dated else []
    lead = future.require(f"lead_time_{article}")
    leads = tuple(_lead(row, lead) for row in future.rows)
    if set(leads) == {None}:
        raise DataError(f"{future.path}: no order ever arrives")
    promised = round(fmean(lead for lead in leads if lead is not None))
    plain = {
        "mode": "supply",
        "periods": len(leads),
        "promised": promised,
        "reliable": set(leads) == {promised},
        "profit": _constant(future, f"profit_{article}"),
        "holding": _constant(future, f"holding_cost_{article}"),
        "history": _units(past, demand),
        "about": clean_line(text)[:_LONGEST_TEXT],
        "dates": [] if all(map(_NUMBERED.fullmatch, dates)) else list(map(clean_line, dates)),
        "name": name,
    }
    return Instance(plain, tuple(_units(future, demand)), leads)


def _constant(table: CsvTable, column: str) -> float:
    """Return the number that is in every row of a column."""
    values = sorted(set(table.numbers(column)))
    if len(values) > 1:
        raise DataError(f"{table.path}: {column} changes between periods: {values}")
    return values[0]


def _units(table: CsvTable, column: str) -> list[int]:
    name = table.require(column)
    return [row.whole(name, 0, MOST_UNITS) for row in table.rows]


def _lead(row: Row, column: str) -> int | None:
    return None if row.cells[column].lower() == "inf" else row.whole(column, 0, MOST_UNITS)
