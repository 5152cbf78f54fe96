"""Reading the instances of order batching of Henn and Wäscher, as many as a folder has.

Format: Henn and Wäscher, European Journal of Operational Research 222 (2012). `sett29.txt` has a
setting a line, `no_aisles_: 10`; `29s-40-30-0.txt` has the orders of that setting, `Order <order>
number of articles <articles>`, then a line `<article> Aisle <side> Location <location>` each; two
sides an aisle, both counted from 0.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tokengym.envs.core.errors import DataError
from tokengym.envs.intake.tables import Source, read_text
from tokengym.envs.warehouse.data.columns import refuse_file
from tokengym.envs.warehouse.data.records import (
    Entries,
    Entry,
    Records,
    digest_of,
    refuse_all,
    windows_of,
)
from tokengym.envs.warehouse.games.batching.generator import instance_of
from tokengym.envs.warehouse.games.batching.rules import Pool
from tokengym.envs.warehouse.levels import BatchLevel

_SIDES = 2
_ORDERS = re.compile(r"(\d+)[a-z]-\d+-\d+-\d+\.txt")
_SETTING = re.compile(r"(\w{10}):\s*(\S+)", re.ASCII)
_HEAD = re.compile(r"Order\s+\d+\s+number of articles\s+(\d{1,4})", re.ASCII)
_ARTICLE = re.compile(r"\d+\s+Aisle\s+(\d{1,3})\s+Location\s+(\d{1,3})", re.ASCII)


@dataclass(frozen=True)
class BatchingInstances(Records):
    """Instances of order batching, each a Task at the level `batch`.

    Attributes:
        instances: the instances, in an order that a hash decides.
    """

    instances: tuple[Mapping[str, Any], ...]

    mode: ClassVar[str] = "batch"
    purpose: ClassVar[str] = "instances of order batching are data for the level batch only"

    def entries(self, level: BatchLevel) -> Entries:
        """Return the instances by split.

        Raises:
            DataError: if they are fewer than the splits.
        """
        return windows_of(range(len(self.instances)), "instances of order batching")

    def instance(self, rng: np.random.Generator, level: BatchLevel, entry: Entry) -> dict[str, Any]:
        """Return an instance as its file has it."""
        return dict(self.instances[entry.start])


def read_batching(folder: Source) -> BatchingInstances:
    """Read every file of orders in a folder, with its settings.

    Lengths are in the files' units. An aisle is `aisle_widt` and two `cell_width` from the next, an
    article lies in the middle of its location, the depot is at the front of the first aisle.

    Raises:
        DataError: if no instance is left.
    """
    instances, refused = [], []
    for path in sorted(Path(folder).iterdir()):
        if found := _ORDERS.fullmatch(path.name):
            try:
                instances.append(_instance(path, path.with_name(f"sett{found[1]}.txt")))
            except DataError as error:
                refused.append(refuse_file(path, error))
    if not instances:
        raise DataError(refuse_all(folder, "instance of order batching", refused))
    instances.sort(key=digest_of)
    kept = sum(1 + len(places) for instance in instances for places in instance["orders"])
    return BatchingInstances(
        str(folder),
        tuple(instances),
        refused=tuple(refused),
        read=kept + sum(one.rows for one in refused),
    )


def _instance(path: Path, setting: Path) -> dict[str, Any]:
    settings = {found[1]: found[2] for found in map(_SETTING.match, _lines(setting)) if found}
    if settings.get("routing___") != "s":
        raise DataError(f"{path}: tours are walked in S-shape, {setting.name} says otherwise")
    orders = list(_orders(path))
    try:
        floor = {
            "aisles": int(settings["no_aisles_"]),
            "rows": int(settings["no_cells__"]),
            "cell": float(settings["cell_lengt"]),
            "pitch": float(settings["aisle_widt"]) + _SIDES * float(settings["cell_width"]),
            "margin": float(settings["dis_ais_wa"]),
        }
        instance = instance_of(floor, int(settings["m_no_a_p_b"]), orders)
        Pool.of(instance)
    except (KeyError, ValueError) as error:
        raise DataError(f"{path}, with {setting.name}: {error!r}") from None
    return {**instance, "name": path.stem}


def _orders(path: Path) -> Iterator[list[list[int]]]:
    """Yield aisle and row of the articles of every order."""
    left, places = 0, list[list[int]]()
    for number, line in enumerate(_lines(path), start=1):
        found = (_ARTICLE if left else _HEAD).fullmatch(line)
        if found is None:
            form = "<article> Aisle <side> Location" if left else "Order <order> number of articles"
            raise DataError(f"{path}, line {number}: '{form} <number>' is expected, got {line!r}")
        if left:
            places.append([int(found[1]) // _SIDES, int(found[2]) + 1])
            left -= 1
        else:
            left, places = int(found[1]), []
        if not left:
            yield places
    if left:
        raise DataError(f"{path}: the last order lacks {left} articles")


def _lines(path: Path) -> list[str]:
    return [line.strip() for line in read_text(path).strip().splitlines()]
