"""Worlds over a user's own data keep the laws too: finite splits, windows, records."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.disruption.literature_files import label_works, literature
from tests.forecasting.questions_file import plain, write_lines
from tokengym.envs.core.world import World
from tokengym.envs.disruption.data import write_papers
from tokengym.envs.registry import make_world
from tokengym.testing import check_world


def questions(folder: Path) -> World:
    path = write_lines(folder / "questions.jsonl", [plain(number) for number in range(60)])
    return make_world("forecast", data=path)


def papers(folder: Path) -> World:
    write_papers(folder / "papers.jsonl", label_works(literature(400), last_year=2009))
    return make_world("disruption", data=folder / "papers.jsonl")


def home(folder: Path) -> World:
    rows = ["time,load_kw,pv_kw,price_import,price_export,grid_up"]
    for at in range(20 * 24):
        day, hour = divmod(at, 24)
        sun, price = max(0, 3 - abs(hour - 12)), 0.5 if 16 <= hour < 20 else 0.2
        rows.append(f"2026-01-{day + 1:02}T{hour:02}:00,{0.5 + at % 7 / 5},{sun},{price},0.05,1")
    (folder / "home.csv").write_text("\n".join(rows) + "\n")
    return make_world("energy", "small", data=folder / "home.csv")


def orders(folder: Path) -> World:
    rows = ["order_id,release_min,due_min,sku,qty,value"]
    rows += [f"W{n},{7 * n},{7 * n + 12},{('nut', 'bolt')[n % 2]},1,4.5" for n in range(150)]
    (folder / "orders.csv").write_text("\n".join(rows) + "\n")
    (folder / "slots.csv").write_text("sku,aisle,row,qty\nnut,1,1,40\nbolt,3,1,40\n")
    return make_world("warehouse", "pick", data=[folder / "orders.csv", folder / "slots.csv"])


@pytest.mark.nightly
@pytest.mark.parametrize("made", [questions, papers, home, orders])
def test_a_world_over_own_data_keeps_every_law(
    made: Callable[[Path], World], tmp_path: Path
) -> None:
    assert check_world(made(tmp_path), tasks=4)
