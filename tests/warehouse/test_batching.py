"""Instances of order batching and picker routing are read as orders of a floor of aisles."""

from pathlib import Path

import numpy as np
import pytest

from tokengym.envs.core.errors import DataError
from tokengym.envs.core.rollout import play
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
        (["0 2", "0 0 1", "1 9 9"], "no order is left: .*line 3: there is no location 9 9"),
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
