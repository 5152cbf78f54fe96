"""Laws of a user's own data: what is read is what is played; a refusal names file, line, reason."""

import re
from pathlib import Path

import numpy as np
import pytest

from tokengym.envs.core.errors import DataError
from tokengym.envs.core.play import play
from tokengym.envs.core.seeding import SPLITS
from tokengym.envs.registry import baselines, make_world
from tokengym.envs.warehouse.data import OrderBook, SalesHistory, read
from tokengym.envs.warehouse.data.orders_file import read_layout, read_orders, read_slots
from tokengym.envs.warehouse.data.records import LEAST_HISTORY
from tokengym.envs.warehouse.data.sales_file import read_demand
from tokengym.envs.warehouse.layout import AisleLayout, MapLayout
from tokengym.envs.warehouse.world import WarehouseWorld

MAP = """
. . . . .
. x x X .
. x x x .
. . G . g
"""
SLOTS = "sku,aisle,row,qty\nnut,1,1,40\nbolt,3,1,40\ngear,2,2,40\n"


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def orders_csv(count: int) -> str:
    rows = ["order_id,release_min,due_min,sku,qty,value"]
    for number in range(count):
        release = 7 * number
        rows.append(f"W-{number},{release},{release + 12},{('nut', 'bolt')[number % 2]},1,4.5")
        if number % 3 == 0:
            rows.append(f"W-{number},{release},{release + 12},gear,1,3")
    return "\n".join(rows) + "\n"


def demand_csv(periods: int) -> str:
    rng = np.random.default_rng(5)
    rows = [
        f"{t},{sku},{rng.poisson(3)}" for t in range(10, 10 + periods) for sku in ("a", "b", "c")
    ]
    return "\n".join(["period,sku,qty", *rows]) + "\n"


def test_a_layout_is_read_without_blanks_and_case(tmp_path: Path) -> None:
    layout = read_layout(write(tmp_path, "floor.txt", MAP))
    assert layout == MapLayout((".....", ".xxx.", ".xxx.", "..g.g"))
    assert layout.depot == (2, 3)


def test_slots_without_layout_lie_in_the_smallest_floor(tmp_path: Path) -> None:
    layout, slots, _, _ = read_slots(write(tmp_path, "slots.csv", SLOTS))
    assert layout == AisleLayout(4, 2)
    assert slots["gear"] == ("A2-2", 40)


def test_the_lines_of_an_order_are_put_together(tmp_path: Path) -> None:
    slots = write(tmp_path, "slots.csv", SLOTS)
    book = read_orders(write(tmp_path, "orders.csv", orders_csv(4)), slots)
    first = book.orders[0]
    assert first.lines == (("A1-1", 1), ("A2-2", 1))
    assert (first.value, first.due, first.release) == (7.5, 12, 0)
    assert [order.release for order in book.orders] == [0, 7, 14, 21]


@pytest.mark.parametrize(
    ("level", "mapped"),
    [("pick", False), ("pick", True), ("pick_clauses", False), ("pick_online", True)],
)
def test_a_user_s_orders_are_played_window_by_window(
    tmp_path: Path, level: str, mapped: bool
) -> None:
    files = [write(tmp_path, "orders.csv", orders_csv(150)), write(tmp_path, "slots.csv", SLOTS)]
    if mapped:
        files.append(write(tmp_path, "floor.txt", MAP))
    world = make_world("warehouse", level, data=files)
    seen: dict[str, set[int]] = {}
    for split in SPLITS:
        for task in world.first_tasks(split, 3):
            seen.setdefault(split, set()).add(task.instance["window"])
            record = play(world, task, baselines("warehouse")["oracle"])
            assert record.returns["lead"] == pytest.approx(1.0, abs=1e-4)
            assert ("Floor, Ac-r" in record.turns[0].text) == mapped
    assert max(seen["train"]) < min(seen["validation"]) < min(seen["test"])


def test_windows_with_an_optimal_reference_can_be_played(tmp_path: Path) -> None:
    """Each order fills a trip and none is late in any order: there is nothing to gain."""
    rows = [f"W-{number},0,900,nut,7,5" for number in range(24)]
    header = "order_id,release_min,due_min,sku,qty,value"
    orders = write(tmp_path, "orders.csv", "\n".join([header, *rows]))
    world = make_world("warehouse", "pick", data=[orders, write(tmp_path, "s.csv", SLOTS)])
    task = world.task("train", 0)
    assert task.answer["optimum"] >= task.answer["reference"] + 0.05
    for name in ("oracle", "fcfs"):
        record = play(world, task, baselines("warehouse")[name])
        assert record.returns["lead"] == pytest.approx(1.0, abs=1e-4)


def test_the_same_files_give_the_same_tasks_and_others_others(tmp_path: Path) -> None:
    slots = write(tmp_path, "slots.csv", SLOTS)
    one = [write(tmp_path, "one.csv", orders_csv(60)), slots]
    two = [write(tmp_path, "two.csv", orders_csv(60).replace("4.5", "4.6")), slots]
    tasks = [make_world("warehouse", "pick", data=d).task() for d in (one, one[::-1], two)]
    assert tasks[0] == tasks[1] != tasks[2]


@pytest.mark.parametrize("level", ["stock"])
def test_a_user_s_sales_are_what_customers_ask_for(tmp_path: Path, level: str) -> None:
    path = write(tmp_path, "demand.csv", demand_csv(LEAST_HISTORY + 40))
    history = read_demand(path)
    world = make_world("warehouse", level, data=path)
    for split in SPLITS:
        task = world.task(split, 1)
        at = task.instance["window"]
        assert at >= LEAST_HISTORY
        for item, asked in zip(task.instance["items"], task.answer["demand"], strict=True):
            past = history.demand[item["article"]]
            assert list(past[at : at + len(asked)]) == asked
            shares = np.bincount(past[:at]) / at
            assert item["demand"]["shares"] == pytest.approx(shares.tolist(), abs=0.01)
            assert sum(item["demand"]["shares"]) == pytest.approx(1.0)
        record = play(world, task, baselines("warehouse")["oracle"])
        assert record.returns["lead"] == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("..\n.x?\n", r"floor.txt, line 2: \['\?'\]"),
        ("...\n.x\n", "floor.txt, line 2: 2 cells"),
        ("...\n.x.\n", "goal"),
        ("gxx", "A2-0"),
        ("", "floor.txt, line 1: a map needs a goal"),
    ],
)
def test_a_damaged_layout_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        read_layout(write(tmp_path, "floor.txt", text))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("nut,0,1,5", r"slots.csv, line 5: 'nut' has a slot already"),
        ("cog,2,2,5", "slots.csv, line 5: slot A2-2 is taken"),
        ("cog,0,0,5", "slots.csv, line 5: row is '0'"),
        ("cog,0,1,-1", "slots.csv, line 5: qty is '-1'"),
        (",0,1,1", "slots.csv, line 5: sku is empty"),
        ("cog,0,1", "slots.csv, line 5: 3 cells under 4 columns"),
        ("cog,200,1,1", "1 to 99"),
    ],
)
def test_a_damaged_slot_is_refused(tmp_path: Path, row: str, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        read_slots(write(tmp_path, "slots.csv", SLOTS + row + "\n"))


def test_a_slot_off_the_map_is_refused(tmp_path: Path) -> None:
    layout = read_layout(write(tmp_path, "floor.txt", MAP))
    with pytest.raises(DataError, match=r"line 5: there is no shelf at A0-0"):
        read_slots(write(tmp_path, "slots.csv", SLOTS + "cog,0,0,1\n"), layout)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("X,0,9,cog,1,2", "orders.csv, line 5: 'cog' has no slot"),
        ("X,9,3,nut,1,2", "orders.csv, line 5: due at 3, before its release at 9"),
        ("X,0,9,nut,0,2", "orders.csv, line 5: qty is '0'"),
        ("X,0,9,nut,1,nan", "orders.csv, line 5: value is 'nan'"),
        ("X,0,9,nut,1,inf", "orders.csv, line 5: value is 'inf'"),
        ("W-0,0,13,bolt,1,2", "orders.csv, line 5: the times of order 'W-0' differ"),
        ("W-0,0,12,nut,1,2", "orders.csv, line 5: order 'W-0' asks for 'nut' twice"),
    ],
)
def test_a_damaged_order_alone_is_left_out(tmp_path: Path, row: str, reason: str) -> None:
    slots = write(tmp_path, "slots.csv", SLOTS)
    path = write(tmp_path, "orders.csv", orders_csv(2) + row + "\n")
    with pytest.warns(UserWarning, match=rf"rows are left out: .*{reason}"):
        book = read([path, slots])
    assert isinstance(book, OrderBook)
    (refusal,) = book.refused
    assert re.search(reason, refusal.reason)
    refused_id = row.split(",")[0]
    assert {order.id for order in book.orders} == {"W-0", "W-1"} - {refused_id}
    assert refusal.rows == (3 if refused_id == "W-0" else 1)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ("0,a,1\n0,a,2\n", "demand.csv, line 3: period 0 of 'a' comes twice"),
        ("0,a,1\n2,a,2\n", "'a' has no row for period after 0"),
        ("0,a,-1\n", "demand.csv, line 2: qty is '-1'"),
        ("0,a,1.5\n", "demand.csv, line 2: qty is '1.5'"),
        ("", "at least one row"),
    ],
)
def test_damaged_sales_are_refused(tmp_path: Path, rows: str, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        read_demand(write(tmp_path, "demand.csv", "period,sku,qty\n" + rows))


@pytest.mark.parametrize(
    ("periods", "missing"),
    [
        (["7", "8", "9"], "8"),
        (["2024-W52", "2025-W01", "2025-W02"], "2025-W01"),
        (["2020W52", "2020W53", "2021W01"], "2020W53"),
        (["2024-12-30", "2025-01-06", "2025-01-13"], "2025-01-06"),
        (["2024-02-28", "2024-02-29", "2024-03-01"], "2024-02-29"),
        (["2024-11", "2024-12", "2025-01"], "2024-12"),
        (["2023-12-01", "2024-01-01", "2024-02-01"], "2024-01-01"),
        (["2024-05-03 22:00", "2024-05-03 23:00", "2024-05-04T00:00"], "2024-05-03 23:00"),
    ],
)
def test_periods_are_read_as_files_write_them(
    tmp_path: Path, periods: list[str], missing: str
) -> None:
    rows = [f"{period},{sku},{n}" for n, period in enumerate(periods) for sku in ("a", "b")]
    history = read_demand(write(tmp_path, "all.csv", "\n".join(["Week,Article,Quantity", *rows])))
    assert history.demand == {"a": (0, 1, 2), "b": (0, 1, 2)}
    del rows[3]
    history = read_demand(write(tmp_path, "gap.csv", "\n".join(["period,sku,qty", *rows])))
    assert history.demand == {"a": (0, 1, 2)}
    (refusal,) = history.refused
    assert refusal.rows == 2
    assert f"'b' has no row for period {missing};" in refusal.reason


def test_timestamps_of_orders_are_minutes_of_the_first_day(tmp_path: Path) -> None:
    slots = write(tmp_path, "slots.csv", SLOTS)
    rows = [
        *("order,release,due,sku,qty,value", "A,2024-05-03 08:15,2024-05-03T09:00,nut,1,4"),
        "B,2024-05-04 00:05:59,2024-05-04 00:20,bolt,1,4",
        *("C,2024-05-03 10:00,yesterday,nut,1,4", "D,610,700,nut,1,4"),
        *("E,2024-05-03 10:00+02:00,2024-05-03 11:00+02:00,nut,1,4", "F,2024-W18,2024-W19,nut,1,4"),
    ]
    book = read_orders(write(tmp_path, "orders.csv", "\n".join(rows)), slots)
    assert [(o.id, o.release, o.due) for o in book.orders] == [("A", 495, 540), ("B", 1445, 1460)]
    reasons = [refusal.reason for refusal in book.refused]
    assert "line 4: due_min: 'yesterday' is not a whole number, a time like" in reasons[0]
    assert all("written unlike others of the file" in reason for reason in reasons[1:])
    with pytest.raises(DataError, match="release_min is '2024-W18', not a time of day"):
        read_orders(write(tmp_path, "weeks.csv", "\n".join([rows[0], rows[-1]])), slots)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            "week,article,amount",
            r"a file of demand has the columns period,sku,qty; missing: qty or",
        ),
        (
            "order_id,release,sku,qty,value",
            r"a file of orders has .*; missing: due_min or due; got",
        ),
        ("sku;aisle;row;qty", r"data are a file of demand, or files of slots and of orders"),
        ("W1 100 orders", r"a map of a floor; got 'W1 100"),
    ],
)
def test_a_wrong_header_names_the_columns_expected(
    tmp_path: Path, header: str, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        read(write(tmp_path, "file.csv", header + "\n1,2,3,4,5\n"))


def test_data_that_do_not_suit_the_level_are_refused(tmp_path: Path) -> None:
    slots = write(tmp_path, "slots.csv", SLOTS)
    orders = [slots, write(tmp_path, "orders.csv", orders_csv(60))]
    demand = write(tmp_path, "demand.csv", demand_csv(60))
    few = write(tmp_path, "few.csv", re.sub(r"\n\d+,c,\d+", "", demand_csv(60)))
    assert isinstance(read(orders), OrderBook)
    assert isinstance(read(demand), SalesHistory)
    for level, data, reason in [
        ("stock", orders, "levels that pick only"),
        ("lease", orders, "levels that pick only"),
        ("pick", demand, "levels that keep stock only"),
        ("stock_large", few, "the level keeps 3 items, got 2"),
        ("stock", write(tmp_path, "short.csv", demand_csv(LEAST_HISTORY + 25)), "2 windows of 10"),
        ("pick", [slots, slots], "data are"),
        ("pick", slots, "data are"),
        ("pick", tmp_path / "nowhere.csv", "cannot be read"),
        ("pick", tmp_path, "cannot be read"),
    ]:
        with pytest.raises(DataError, match=reason):
            make_world("warehouse", level, data=data)


def test_an_order_larger_than_a_trip_becomes_several(tmp_path: Path) -> None:
    slots = write(tmp_path, "slots.csv", SLOTS)
    heavy = write(tmp_path, "orders.csv", orders_csv(24) + "X,0,9,nut,7,1\nX,0,9,bolt,7,1\n")
    book = read_orders(heavy, slots)
    parts = [order for order in book.trips(6) if order.id == "X"]
    assert [order.lines for order in parts] == [
        (("A1-1", 6),),
        (("A1-1", 1), ("A3-1", 5)),
        (("A3-1", 2),),
    ]
    assert [order.value for order in parts] == [0.86, 0.86, 0.28]
    assert all(order.units == sum(n for _, n in order.lines) for order in parts)
    world = make_world("warehouse", "pick", data=[heavy, slots])
    orders = [order for task in world.first_tasks("train", 9) for order in task.instance["orders"]]
    assert max(sum(n for _, n in order["lines"]) for order in orders) == 7


def test_size_counts_windows(tmp_path: Path) -> None:
    slots = write(tmp_path, "slots.csv", SLOTS)
    orders = write(tmp_path, "orders.csv", orders_csv(43))
    world = WarehouseWorld.cast(make_world("warehouse", "pick", data=[orders, slots]))
    assert [world.size(split) for split in SPLITS] == [3, 1, 1]
    assert world.records == read([orders, slots])
    windows = [t.instance["window"] for split in SPLITS for t in world.first_tasks(split, 99)]
    assert windows == list(range(0, 40, 8))
    demand = write(tmp_path, "demand.csv", demand_csv(LEAST_HISTORY + 35))
    sold = make_world("warehouse", "stock", data=demand)
    assert [sold.size(split) for split in SPLITS] == [3, 3, 3]
    assert [t.instance["items"][0]["article"] for t in sold.first_tasks("test", 9)] == [*"abc"]


@pytest.mark.parametrize("quantity", ["1000000000", "10001", "9" * 400, "9" * 5000])
def test_a_quantity_that_no_memory_holds_is_refused(tmp_path: Path, quantity: str) -> None:
    path = write(tmp_path, "demand.csv", f"period,sku,qty\n1,nut,3\n2,nut,{quantity}\n")
    with pytest.raises(DataError, match="line 3: qty is") as caught:
        read_demand(path)
    assert "10000" in str(caught.value) or "not a whole number" in str(caught.value)


def test_an_order_worth_more_than_numbers_hold_is_refused(tmp_path: Path) -> None:
    slots = write(tmp_path, "slots.csv", SLOTS)
    orders = write(
        tmp_path, "orders.csv", "order_id,release_min,due_min,sku,qty,value\nW,0,9,nut,1,1e308\n"
    )
    with pytest.raises(DataError, match=r"no order is left: .*worth more than"):
        read_orders(orders, slots)
