"""Reading the JSON files of OBP-Instances, a collection of published order batching instances.

https://github.com/SergioGilBorras/instancesOBP; its instances W1 to W4 have due dates. A file holds
a layout, `{"numberOfAisles", "numberOfSlots", "shelfLength"}`, and orders, `{"id", "arrivalTime",
"dueDate", "products": [{"aisle", "heightPosition", "weight"}]}`.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Never

from tokengym.envs.core.errors import DataError, TaskError
from tokengym.envs.core.tables import MOST_WHOLE, Source, read_text
from tokengym.envs.warehouse.data.batching import Article, Listed, order_book
from tokengym.envs.warehouse.data.records import OrderBook
from tokengym.envs.warehouse.layout import AisleLayout

_SIDES = 2
_LARGEST = 1e15
"""Largest number of any field; times are milliseconds since 1970 at most."""


def read_obp(path: Source) -> OrderBook:
    """Read an instance as orders to pick.

    The locations of a side are `numberOfSlots` shared out to the sides of all aisles, and as many
    rows; a product's height says in which it lies; both sides of a row are one slot. A product is
    as many units as it weighs, rounded up. Rows are one step and aisles two, whatever the file's
    lengths; cross-aisles in the middle are not walked. `order_book` has the rule of the times.

    Raises:
        DataError: naming the file, and the order where there is one: if it has another form, or no
            order is left.
    """
    (instance,) = _only(path, _loaded(path), "InstanceSet")
    (floor,) = _only(path, instance, "Layout")
    (orders,) = _only(path, instance, "Orders")
    aisles = int(_number(path, "the layout", floor, "numberOfAisles", most=MOST_WHOLE))
    slots = int(_number(path, "the layout", floor, "numberOfSlots", most=MOST_WHOLE))
    length = _number(path, "the layout", floor, "shelfLength")
    try:
        layout = AisleLayout(aisles, slots // (_SIDES * max(1, aisles)))
    except TaskError as error:
        raise DataError(f"{path}: {error}") from None
    if not length > 0.0:
        raise DataError(f"{path}: the layout's shelfLength must be above 0, got {length}")
    rows = layout.rows
    listed = []
    for number, order in enumerate(_list(path, "the orders", orders, "OrderList"), start=1):
        where = f"order {number}"
        articles = [
            Article(
                where,
                int(_number(path, where, product, "aisle", most=MOST_WHOLE)),
                math.floor(_number(path, where, product, "heightPosition") / length * rows),
                max(1, math.ceil(_number(path, where, product, "weight", most=MOST_WHOLE))),
            )
            for product in _list(path, where, order, "products")
        ]
        arrival, due = (_number(path, where, order, key) for key in ("arrivalTime", "dueDate"))
        listed.append(Listed(number, str(order.get("id", number)), articles, arrival, due))
    return order_book(path, layout, listed)


def _loaded(path: Source) -> Mapping[str, Any]:
    try:
        loaded = json.loads(read_text(path), parse_constant=_no_number)
    except RecursionError:
        raise DataError(f"{path}: it is nested too deep") from None
    except ValueError as error:
        raise DataError(f"{path}: not JSON: {error}") from None
    if not isinstance(loaded, dict):
        raise DataError(f"{path}: an object is expected, got {type(loaded).__name__}")
    return loaded


def _no_number(text: str) -> Never:
    raise ValueError(f"{text} is not a number")


def _only(path: Source, holder: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    found = _list(path, "the file", holder, key)
    if len(found) != 1:
        raise DataError(f"{path}: one {key} is expected, got {len(found)}")
    return found


def _list(
    path: Source, where: str, holder: Mapping[str, Any], key: str
) -> Sequence[Mapping[str, Any]]:
    found = holder.get(key)
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise DataError(f"{path}: {where} needs {key}, a list of objects")
    return found


def _number(
    path: Source, where: str, holder: Mapping[str, Any], key: str, *, most: float = math.inf
) -> float:
    value = holder.get(key)
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value) if value <= _LARGEST else math.inf
        if 0.0 <= number <= most and number < math.inf:
            return number
    bound = "" if most == math.inf else f" to {most:,}"
    raise DataError(f"{path}: {where} needs {key}, a number from 0{bound}, got {value!r}")
