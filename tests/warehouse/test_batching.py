"""Instances of order batching are read as orders of a floor of aisles."""

import json
from pathlib import Path

import numpy as np
import pytest

from tokengym.envs.core.errors import DataError
from tokengym.envs.core.play import play
from tokengym.envs.registry import baselines, make_world
from tokengym.envs.warehouse.data import OrderBook, read
from tokengym.envs.warehouse.layout import AisleLayout

LAYOUT = "3\n5\n1\n2.5\n2\n1\n30\n12\n"


def write(folder: Path, layout: str, orders: list[str]) -> list[Path]:
    paths = [folder / "a.lyt", folder / "a.ord"]
    paths[0].write_text(layout)
    paths[1].write_text("\n".join(orders) + "\n")
    return paths


def test_an_instance_is_played_in_trips(tmp_path: Path) -> None:
    orders = [
        line
        for n in range(14)
        for line in (f"{n} 2", f"0 {n % 6} {n % 5}", f"1 {(n + 3) % 6} {(n + 1) % 5}")
    ]
    book = read(write(tmp_path, LAYOUT, [*orders, "14 0"]))
    assert isinstance(book, OrderBook)
    assert book.layout == AisleLayout(3, 5)
    assert len(book.orders) == 14
    # Sides 0 and 3 are aisles 0 and 1: up to row 1, over to row 2 of A1, back; two units.
    assert book.orders[0].lines == (("A0-1", 1), ("A1-2", 1))
    alone = 1 + (2 + 3) + (2 + 2) + 2
    assert (book.orders[0].due, book.orders[0].value) == (round(0.6 * alone), 2.0)
    assert book.orders[0].release == 0
    assert book.orders[1].release == book.orders[0].due
    world = make_world("warehouse", "pick_small", data=book)
    assert world.size("train") == 1
    task = world.task("train")
    record = play(world, task, baselines("warehouse")["oracle"], np.random.default_rng(0))
    assert record.returns["lead"] == pytest.approx(1.0, abs=1e-4)


def test_articles_on_both_sides_of_a_row_add_up(tmp_path: Path) -> None:
    book = read(write(tmp_path, LAYOUT, ["7 3", "0 4 2", "1 5 2", "2 0 0"]))
    assert isinstance(book, OrderBook)
    assert book.orders[0].lines == (("A2-3", 2), ("A0-1", 1))
    assert [order.units for order in book.trips(2)] == [2, 1]


@pytest.mark.parametrize(
    ("orders", "reason"),
    [
        (["0 2", "0 0 1", "1 9 9"], "no order is left: .*line 3: aisle 4, location 9 is off"),
        (["0 1", "0 0"], "line 2: <article> <side> <location> is expected, got '0 0'"),
        (["0 1", "0 0 1", "1 x"], "line 3: <order> <articles> is expected"),
        (["0 3", "0 0 1"], "the last order lacks 2 articles"),
    ],
)
def test_damaged_orders_are_refused(tmp_path: Path, orders: list[str], reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        read(write(tmp_path, LAYOUT, orders))


def test_a_layout_without_aisles_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no aisles and locations in lines 1 and 2"):
        read(write(tmp_path, "3\n", ["0 1", "0 0 1"]))


def in_words(orders: list[str]) -> list[str]:
    """Write the orders of a numeric file as those of Henn and Wäscher are written."""
    lines, left = [], 0
    for line in orders:
        cells = line.split()
        if left:
            lines.append(f"{cells[0]}\tAisle {cells[1]}\tLocation {cells[2]}")
            left -= 1
        else:
            lines.append(f"Order {cells[0]}\tnumber of articles {cells[1]}")
            left = int(cells[1])
    return lines


def test_words_and_numbers_are_the_same_instance(tmp_path: Path) -> None:
    orders = ["0 2", "0 3 4", "1 0 0", "1 1", "0 5 2"]
    numeric = read(write(tmp_path, LAYOUT, orders))
    settings = "no_aisles_: 3\nno_cells__: 5\nopgrade___: 1\nrouting___: s\n"
    worded = read(write(tmp_path, settings, in_words(orders)))
    assert isinstance(numeric, OrderBook)
    assert isinstance(worded, OrderBook)
    assert (worded.layout, worded.orders) == (numeric.layout, numeric.orders)


def instance(orders: list[dict[str, object]], **layout: object) -> dict[str, object]:
    """Return an instance in the form of OBP-Instances: 3 aisles, 5 locations a side, 10 metres."""
    floor = {"numberOfAisles": 3, "numberOfSlots": 30, "shelfLength": 10.0, "crossAisles": 0}
    return {
        "NameInstanceSet": "W",
        "InstanceSet": [
            {"Layout": [floor | layout], "Orders": [{"numOrders": 1, "OrderList": orders}]}
        ],
    }


def an_order(name: int, due: float = 0, arrival: float = 0, **product: object) -> dict[str, object]:
    products = [{"id": 1, "aisle": 1, "side": 0, "heightPosition": 7.0, "weight": 1.0} | product]
    return {"id": name, "dueDate": due, "arrivalTime": arrival, "products": products}


def read_json(folder: Path, content: object) -> OrderBook:
    path = folder / "w.json"
    path.write_text(json.dumps(content, indent=1))
    book = read(path)
    assert isinstance(book, OrderBook)
    return book


def test_heights_are_locations_and_weights_units(tmp_path: Path) -> None:
    book = read_json(tmp_path, instance([an_order(7, heightPosition=9.9, weight=2.5)]))
    assert book.layout == AisleLayout(3, 5)
    assert book.orders[0].lines == (("A1-5", 3),)
    assert (book.orders[0].id, book.orders[0].value) == ("7", 3.0)


def test_due_dates_keep_their_ratios(tmp_path: Path) -> None:
    dues = [400, 100, 300, 200]
    now = 1_747_053_127_785  # all arrive in the milliseconds in which the file was written
    orders = [an_order(n, due=due, arrival=now + n) for n, due in enumerate(dues)]
    book = read_json(tmp_path, instance(orders))
    trip = 2 * (4 + 2) + 1  # to row 4 of the second aisle, back, and one unit
    last = 0.6 * 4 * trip
    assert [order.id for order in book.orders] == ["1", "3", "2", "0"]
    assert [order.due for order in book.orders] == [round(last * n / 4) for n in (1, 2, 3, 4)]
    assert [order.release for order in book.orders] == [
        max(0, round(last * n / 4 - trip)) for n in (1, 2, 3, 4)
    ]


def test_arrivals_apart_are_the_releases(tmp_path: Path) -> None:
    orders = [an_order(1, due=50, arrival=30), an_order(2, due=100, arrival=10)]
    book = read_json(tmp_path, instance(orders))
    trip = 2 * (4 + 2) + 1
    scale = 0.6 * 2 * trip / 100
    assert [(order.id, order.release) for order in book.orders] == [
        ("2", 0),
        ("1", round(20 * scale)),
    ]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ([1], "a file of data is a CSV of slots, orders or demand"),
        ({"a": 1}, "the file needs InstanceSet, a list of objects"),
        ({"InstanceSet": []}, "one InstanceSet is expected, got 0"),
        (instance([]), "no order is left"),
        (instance([an_order(1, aisle=3)]), "order 1: aisle 3, location 3 is off the floor"),
        (instance([an_order(1, due=-1)]), "order 1 needs dueDate, a number from 0, got -1"),
        (instance([an_order(1, weight="2")]), "order 1 needs weight, .* got '2'"),
        (
            instance([an_order(1, weight=1e9)]),
            "weight, a number from 0 to 1,000,000, got 1000000000.0",
        ),
        (instance([an_order(1)], numberOfAisles=500), "500 aisles"),
        (instance([an_order(1)], shelfLength=0), "shelfLength must be above 0"),
        (instance([an_order(1, due=float("nan"))]), "NaN is not a number"),
    ],
)
def test_damaged_instances_are_refused(tmp_path: Path, content: object, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        read_json(tmp_path, content)


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    path.write_text('{"InstanceSet":' + "[" * 100_000)
    with pytest.raises(DataError, match="nested too deep"):
        read(path)
