"""Reading InventoryBench: folders that each hold a `train.csv` and a `test.csv`.

Format, rules and score: Baek, Fu, Ma and Peng (2025), https://github.com/TianyiPeng/InventoryBench.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

import numpy as np

from tokengym.envs.core.errors import DataError
from tokengym.envs.core.immutable import Immutable
from tokengym.envs.core.split_windows import Windows
from tokengym.envs.core.tables import CsvTable, Row, Source, read_text
from tokengym.envs.warehouse.data.columns import Refusal
from tokengym.envs.warehouse.data.records import Entries, Entry, by_split, digest_of, refuse_all
from tokengym.envs.warehouse.games.buying.generator import BuyingLevel
from tokengym.envs.warehouse.games.buying.rules import MOST_UNITS

_DEMAND = "demand_"
_NUMBERED = re.compile(r"period_\d+", re.IGNORECASE)
_POINTER = "version https://git-lfs"
_LONGEST_TEXT = 300


@dataclass(frozen=True)
class Instance(Immutable):
    """One instance: an article with its past, its future and its costs.

    Attributes:
        name: its folder, and its article where a folder has several.
        history: units asked for in `train.csv`.
        demand: units asked for by period, from `test.csv`.
        leads: periods to arrival of an order placed then; `None` if it never arrives.
        profit: what a unit sold earns.
        holding: cost of a unit left at the end of a period.
        about: description of the article; empty if there is none.
        dates: dates of the periods; empty if they are only numbered.
    """

    name: str
    history: tuple[int, ...]
    demand: tuple[int, ...]
    leads: tuple[int | None, ...]
    profit: float
    holding: float
    about: str
    dates: tuple[str, ...]

    @property
    def promised(self) -> int:
        """The lead time that the supplier promises: the usual one of orders that arrive."""
        return round(fmean(lead for lead in self.leads if lead is not None))

    @property
    def reliable(self) -> bool:
        """Whether every order arrives as promised."""
        return set(self.leads) == {self.promised}


@dataclass(frozen=True)
class InventoryBench(Immutable):
    """Instances of InventoryBench.

    Attributes:
        name: folder they come from, for refusals.
        instances: the instances, by folder.
        refused: what the reader left out.
        digest: name of the contents.
    """

    name: str
    instances: tuple[Instance, ...]
    refused: tuple[Refusal, ...] = ()
    digest: str = field(init=False)

    mode: ClassVar[str] = "supply"
    purpose: ClassVar[str] = "InventoryBench is data for the levels inventory_* only"

    def __post_init__(self) -> None:
        """Name the contents by their hash."""
        object.__setattr__(self, "digest", digest_of(self.instances))

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
            if (instance.promised, instance.reliable) == (level.promised, level.reliable)
            and len(instance.demand) <= level.periods
        ]
        if not fits:
            trust = "kept" if level.reliable else "not kept"
            raise DataError(
                f"{self.name}: the level has a promised lead time of {level.promised}, {trust}, "
                f"and at most {level.periods} periods; none of {len(self.instances)} instances does"
            )
        paths = sorted({instance.demand for instance in self.instances}, key=_key)
        numbers = {path: number for number, path in enumerate(paths)}
        windows = Windows(range(len(paths)), "instances with demand of their own")
        return by_split((windows[numbers[self.instances[at].demand]], Entry(at)) for at in fits)

    def instance(
        self, _rng: np.random.Generator, _level: BuyingLevel, entry: Entry
    ) -> dict[str, Any]:
        """Return an instance without its outcomes."""
        found = self.instances[entry.start]
        return {
            "mode": "supply",
            "periods": len(found.demand),
            "promised": found.promised,
            "reliable": found.reliable,
            "profit": found.profit,
            "holding": found.holding,
            "history": list(found.history),
            "about": found.about,
            "dates": list(found.dates),
            "name": found.name,
        }

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
    for test in sorted(Path(folder).rglob("test.csv")):
        name = test.parent.relative_to(folder).as_posix()
        try:
            instances += _instances(name, test.with_name("train.csv"), test)
        except DataError as error:
            refused.append(Refusal(max(0, len(read_text(test).splitlines()) - 1), str(error)))
    if not instances:
        if not refused:
            raise DataError(f"{folder}: no folder below it holds a test.csv and a train.csv")
        raise DataError(refuse_all(folder, "instance", refused))
    return InventoryBench(str(folder), tuple(instances), tuple(refused))


def _instances(name: str, train: Path, test: Path) -> list[Instance]:
    """Read the instances of a folder, one per article."""
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
    return [
        _instance(name if len(articles) == 1 else f"{name} {x}", past, future, x) for x in articles
    ]


def _instance(name: str, past: CsvTable, future: CsvTable, article: str) -> Instance:
    about = f"description_{article}"
    text = next((t.texts(about)[0] for t in (future, past) if t.has(about)), "")
    dated = future.has(f"exact_dates_{article}")
    dates = future.texts(dated) if dated else []
    lead = future.require(f"lead_time_{article}")
    leads = tuple(_lead(row, lead) for row in future.rows)
    if set(leads) == {None}:
        raise DataError(f"{future.path}: no order ever arrives")
    return Instance(
        name,
        tuple(_units(row, past.require(f"{_DEMAND}{article}")) for row in past.rows),
        tuple(_units(row, f"{_DEMAND}{article}") for row in future.rows),
        leads,
        _constant(future, f"profit_{article}"),
        _constant(future, f"holding_cost_{article}"),
        " ".join(text.split())[:_LONGEST_TEXT],
        () if all(map(_NUMBERED.fullmatch, dates)) else tuple(dates),
    )


def _constant(table: CsvTable, column: str) -> float:
    """Return the number that is in every row of a column."""
    values = sorted(set(table.numbers(column)))
    if len(values) > 1:
        raise DataError(f"{table.path}: {column} changes between periods: {values}")
    return values[0]


def _units(row: Row, column: str) -> int:
    """Return a whole number of units, also where it is written `108.0`."""
    value = row.number(column)
    if not value.is_integer() or not 0 <= value <= MOST_UNITS:
        raise DataError(
            f"{row.place}: {column} is {row.cells[column]!r}, not a whole number from 0 to "
            f"{MOST_UNITS}"
        )
    return int(value)


def _lead(row: Row, column: str) -> int | None:
    return None if row.cells[column].lower() == "inf" else _units(row, column)


def _key(path: Sequence[int]) -> bytes:
    return hashlib.sha256(repr(path).encode()).digest()
