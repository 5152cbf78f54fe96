"""Reading text files of order batching: a layout and its orders, in words or in numbers.

The instances of Henn and Wäscher, European Journal of Operational Research 222 (2012):

- layout: `no_aisles_: 10`, `no_cells__: 45` and other settings, a line each;
- orders: `Order <order> number of articles <articles>`, then a line `<article> Aisle <side>
  Location <location>` each; two sides an aisle.

The same in numbers, as https://github.com/lorencifelipe/JOBPRP has them:

- layout, a number a line: aisles, locations on a side of an aisle, three lengths, the distance of
  the depot, articles a trip carries, orders;
- orders: `<order> <articles>`, then a line `<article> <side> <location>` each.
"""

import re
from collections.abc import Iterator

from tokengym.envs.core.errors import DataError, TaskError
from tokengym.envs.core.tables import Source, read_text
from tokengym.envs.warehouse.data.batching import Article, Listed, order_book
from tokengym.envs.warehouse.data.records import OrderBook
from tokengym.envs.warehouse.layout import AisleLayout

_SIDES = 2
_SETTING = re.compile(r"no_(aisles|cells)_+:\s*(\d+)")
_HEAD = re.compile(r"Order\s+(\d+)\s+number of articles\s+(\d+)|(\d+)\s+(\d+)")
_ARTICLE = re.compile(r"\d+\s+Aisle\s+(\d+)\s+Location\s+(\d+)|\d+\s+(\d+)\s+(\d+)")


def read_jobprp(layout_path: Source, orders_path: Source) -> OrderBook:
    """Read an instance as orders to pick.

    Rows are one step, aisles two, as in all layouts of aisles; both sides of a row are one slot; an
    article is a unit, worth 1. The files have no times: `order_book` has the rule that makes them.

    Raises:
        DataError: naming file, line and reason: if a file has another form, or no order is left.
    """
    text = read_text(layout_path)
    settings = {found[1]: found[2] for found in map(_SETTING.match, text.splitlines()) if found}
    numbers = [settings.get("aisles", ""), settings.get("cells", "")] if settings else text.split()
    try:
        layout = AisleLayout(int(numbers[0]), int(numbers[1]))
    except (IndexError, ValueError, TaskError) as error:
        raise DataError(
            f"{layout_path}: no aisles and locations in lines 1 and 2: {error}"
        ) from None
    return order_book(orders_path, layout, list(_orders(orders_path)))


def _orders(path: Source) -> Iterator[Listed]:
    """Yield the orders of a file; one without articles ends it."""
    lines = [
        (number, line.strip())
        for number, line in enumerate(read_text(path).splitlines(), start=1)
        if line.strip()
    ]
    at = 0
    while at < len(lines):
        number, text = lines[at]
        name, count = _numbers(path, number, text, _HEAD, "<order> <articles>")
        if not count:
            return
        articles = []
        for place, line in lines[at + 1 : at + 1 + count]:
            side, location = _numbers(path, place, line, _ARTICLE, "<article> <side> <location>")
            articles.append(Article(f"line {place}", side // _SIDES, location))
        if len(articles) < count:
            raise DataError(f"{path}: the last order lacks {count - len(articles)} articles")
        yield Listed(number, str(name), articles)
        at += 1 + count


def _numbers(
    path: Source, line: int, text: str, pattern: re.Pattern[str], form: str
) -> tuple[int, int]:
    match = pattern.fullmatch(text) if text.isascii() else None
    if match is None:
        raise DataError(f"{path}, line {line}: {form} is expected, got {text!r}")
    first, second = (int(group) for group in match.groups() if group is not None)
    return first, second
