"""Laws of the readers: good files are played, bad ones refused with file, line and reason."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from tests.energy.drawn import world_of
from tokengym.envs.core.errors import DataError
from tokengym.envs.core.play import play
from tokengym.envs.core.task import Task
from tokengym.envs.energy.data import TimeSeries, read
from tokengym.envs.energy.world import EnergyWorld
from tokengym.envs.registry import baselines

Rows = list[list[object]]

PLAIN = ["time", "load_kw", "pv_kw", "price_import", "price_export", "grid_up"]
BUILDING = ["month", "hour", "non_shiftable_load [kWh]", "solar_generation [W/kW]"]
DAYS = 20


def write(path: Path, header: list[str], rows: Rows) -> Path:
    table: Rows = [list(header), *rows]
    lines = [",".join(str(cell) for cell in row) for row in table]
    path.write_text("\n".join(lines) + "\n")
    return path


def plain_rows(days: int = DAYS, minutes: int = 60) -> Rows:
    rng = np.random.default_rng(0)
    rows: Rows = []
    for at in range(0, days * 1440, minutes):
        day, hour = 1 + at // 1440, at % 1440 / 60
        time = f"2026-01-{day:02d}T{int(hour):02d}:{int(hour % 1 * 60):02d}"
        sun = max(0.0, 3.0 * np.sin((hour - 6) / 12 * np.pi))
        price = 0.5 if 16 <= hour < 20 else 0.2
        rows.append([time, f"{rng.uniform(0.3, 2):.3f}", f"{sun:.3f}", price, 0.05, 1])
    return rows


def building_rows(days: int = DAYS) -> Rows:
    return [
        [1, hour % 24 + 1, f"{0.5 + 0.1 * (hour % 7):.2f}", 400.0 if 7 < hour % 24 < 17 else 0.0]
        for hour in range(days * 24)
    ]


def pricing(path: Path, days: int = DAYS) -> Path:
    header = ["electricity_pricing [$/kWh]", "electricity_pricing_predicted_1 [$/kWh]"]
    rows: Rows = [[0.54 if 15 < hour % 24 < 20 else 0.22, 0.22] for hour in range(days * 24)]
    return write(path, header, rows)


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    return write(tmp_path / "home.csv", PLAIN, plain_rows())


@pytest.fixture
def citylearn(tmp_path: Path) -> tuple[Path, Path]:
    building = write(tmp_path / "Building_1.csv", BUILDING, building_rows())
    return building, pricing(tmp_path / "pricing.csv")


@pytest.fixture
def pymgrid(tmp_path: Path) -> tuple[Path, Path, Path]:
    hours = range(DAYS * 24)
    return (
        write(tmp_path / "load.csv", ["", "0"], [[h, 300 + h % 24 * 10] for h in hours]),
        write(tmp_path / "pv.csv", ["", "0"], [[h, 200.0 * (8 < h % 24 < 16)] for h in hours]),
        write(
            tmp_path / "grid.csv",
            ["", "0", "1", "2", "3"],
            [[h, 0.59 if 12 <= h % 24 < 18 else 0.22, 0.0, 0.25, 1.0] for h in hours],
        ),
    )


def oracle_return(world: EnergyWorld, task: Task) -> float:
    return play(world, task, baselines("energy")["oracle"]).returns["operator"]


# Good files


@pytest.mark.parametrize("level", ["small", "day"])
def test_tasks_from_files_show_their_numbers(level: str, plain: Path) -> None:
    world, series = world_of(level, data=str(plain)), read(plain)
    task = world.task("train", 0)
    assert task == world_of(level, data=[plain]).task("train", 0)
    at = int(task.instance["source"].partition(":")[2])
    steps = len(task.instance["load"])
    assert tuple(task.instance["load"]) == series.load[at : at + steps]
    assert task.instance["start"] == at % 24 * 60
    assert f", load {series.load[at]:g}, sun {series.pv[at]:g}, " in world.start(task).text
    assert oracle_return(world, task) == 1.0


def test_epochs_are_times_too(tmp_path: Path) -> None:
    rows = plain_rows()
    start = datetime.fromisoformat(str(rows[0][0])).replace(tzinfo=UTC).timestamp()
    epochs = [[int(start) + 3600 * at, *row[1:]] for at, row in enumerate(rows)]
    assert (
        read(write(tmp_path / "epochs.csv", PLAIN, epochs)).load
        == read(write(tmp_path / "iso.csv", PLAIN, rows)).load
    )


def test_citylearn_outages_are_read(tmp_path: Path) -> None:
    rows = [[*row, int(at == 30)] for at, row in enumerate(building_rows())]
    building = write(tmp_path / "Building_1.csv", [*BUILDING, "power_outage"], rows)
    series = read([building, pricing(tmp_path / "pricing.csv")])
    assert [at for at, up in enumerate(series.up) if not up] == [30]


def test_pymgrid_columns_may_bear_their_names(pymgrid: tuple[Path, Path, Path]) -> None:
    by_order = read(pymgrid, most_load=1000.0)
    lines = pymgrid[2].read_text().splitlines()
    names = ",import_price,export_price,co2_per_kwh,grid_status"
    pymgrid[2].write_text("\n".join([names, *lines[1:]]))
    assert read(pymgrid, most_load=1000.0) == by_order
    for path in pymgrid:
        names, *rows = path.read_text().splitlines()
        path.write_text("\n".join([names, *rows[5:]]))
    assert read(pymgrid, most_load=1000.0).start == 5 * 60


def test_citylearn_weather_heats_a_house(citylearn: tuple[Path, Path], tmp_path: Path) -> None:
    rows: Rows = [[3.0 + hour % 24 / 4] for hour in range(DAYS * 24)]
    weather = write(tmp_path / "weather.csv", ["Outdoor Drybulb Temperature [C]"], rows)
    series = read([weather, *citylearn])
    world = world_of("household", data=[weather, *citylearn])
    task = world.task("train", 0)
    at = int(task.instance["source"].partition(":")[2])
    assert tuple(task.instance["outside"]) == series.outside[at : at + 24]
    assert tuple(task.instance["price"]) == series.price[at : at + 24]
    assert oracle_return(world, task) == 1.0


def test_a_load_beyond_a_home_needs_a_connection_to_match(pymgrid: tuple[Path, Path, Path]) -> None:
    with pytest.raises(DataError, match=r"load\.csv, line 2: load is 300\.0: .*import_cap_kw"):
        world_of("day", data=pymgrid)
    world = world_of(
        "day", data=pymgrid, import_cap_kw=900, export_cap_kw=90, battery_kwh=800, battery_kw=200
    )
    task = world.task("train", 0)
    assert max(task.instance["load"]) == 530.0
    assert task.instance["import_cap"] == 900.0
    assert oracle_return(world, task) == 1.0


def test_outages_in_data_are_played_at_stated_chances(tmp_path: Path) -> None:
    rows = plain_rows()
    for at in range(20, len(rows), 48):
        rows[at][5] = 0
    world = world_of("day", data=write(tmp_path / "weak.csv", PLAIN, rows))
    tasks = [world.task("train", index) for index in range(12)]
    assert any(0 in task.instance["up"] for task in tasks)
    stated = "An outage begins in each hour with a chance of 2.08% and lasts 1 hour on average."
    assert stated in world.start(tasks[0]).text


@pytest.mark.nightly
def test_sales_dearer_than_purchases_are_shown_and_solved(tmp_path: Path) -> None:
    rows = plain_rows()
    for row in rows:
        row[4] = 0.3 if row[3] == 0.2 else 0.1
    world = world_of("day", data=write(tmp_path / "feed_in.csv", PLAIN, rows))
    task = world.task("train", 0)
    shown = world.start(task).text
    for price, resale in zip(task.instance["price"], task.instance["resale"], strict=True):
        assert f"price {100 * price:g}, sale {100 * resale:g}, reserve" in shown
    assert oracle_return(world, task) == 1.0


@pytest.mark.nightly
def test_no_day_of_the_data_is_in_two_splits(plain: Path) -> None:
    world = world_of("day", data=plain)
    days = {
        split: {world.task(split, index).instance["source"] for index in range(25)}
        for split in ("train", "validation", "test")
    }
    assert not days["train"] & days["test"]
    assert not days["train"] & days["validation"]
    assert not days["validation"] & days["test"]


def test_windows_do_not_overlap_and_leave_earlier_hours(plain: Path) -> None:
    from tokengym.envs.energy.levels import LEVELS

    series = read(plain)
    for name in ("small", "day"):
        level = LEVELS[name]
        starts = list(series.windows(level))
        gaps = np.diff(starts)
        assert starts[0] >= level.history
        assert starts[-1] + level.steps <= len(series.load)
        assert all(gaps >= level.steps)


# Bad files


def spoiled(tmp_path: Path, line: int, column: int, value: object) -> Path:
    rows = plain_rows()
    rows[line - 2][column] = value
    return write(tmp_path / "bad.csv", PLAIN, rows)


@pytest.mark.parametrize(
    ("line", "column", "value", "reason"),
    [
        (5, 1, -0.5, "never negative"),
        (5, 1, 1450, "is it in W"),
        (6, 2, -1, "never negative"),
        (7, 3, 21.5, "is it in cents"),
        (7, 3, -21.5, "is it in cents"),
        (8, 5, 2, r"up \(1\) or down \(0\)"),
        (9, 1, "1,5", "7 cells under 6 columns .*semicolons"),
        (10, 0, "2026-01-01T06:00", "rows must be in order"),
        (10, 0, "2026-01-01T08:30", "not a multiple of the step"),
        (10, 0, "2026-01-01T08:00+01:00", "offset from UTC"),
    ],
)
def test_a_bad_cell_is_refused_with_file_line_and_reason(
    tmp_path: Path, line: int, column: int, value: object, reason: str
) -> None:
    with pytest.raises(DataError, match=rf"bad\.csv, line {line}: .*{reason}"):
        read(spoiled(tmp_path, line, column, value))


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    rows = [row[:-1] for row in plain_rows()]
    with pytest.raises(DataError, match=r"bad\.csv, line 1: the column 'grid_up' is missing"):
        read(write(tmp_path / "bad.csv", PLAIN[:-1], rows))


@pytest.mark.parametrize(
    ("line", "column", "value", "reason"),
    [
        (9, 1, 25, "line 9: hour is 25"),
        (9, 2, -1.0, "line 9: load is -1.0: a load is never negative"),
        (10, 3, 3000.0, "line 10: solar_generation reaches 3000.0"),
    ],
)
def test_a_bad_citylearn_building_is_refused(
    tmp_path: Path, line: int, column: int, value: object, reason: str
) -> None:
    rows = building_rows()
    rows[line - 2][column] = value
    building = write(tmp_path / "Building_1.csv", BUILDING, rows)
    with pytest.raises(DataError, match=r"Building_1\.csv, " + reason):
        read([building, pricing(tmp_path / "pricing.csv")])


def test_solar_generation_in_kilowatts_is_a_unit_slip(tmp_path: Path) -> None:
    rows = [[*row[:3], 0.4] for row in building_rows()]
    building = write(tmp_path / "Building_1.csv", BUILDING, rows)
    with pytest.raises(DataError, match="W per kW of panels"):
        read([building, pricing(tmp_path / "pricing.csv")])


def test_files_of_other_lengths_are_refused(citylearn: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(DataError, match="as many rows"):
        read([citylearn[0], pricing(tmp_path / "short.csv", days=3)])


def test_a_gap_in_one_file_of_pymgrid_alone_is_refused(pymgrid: tuple[Path, Path, Path]) -> None:
    lines = pymgrid[1].read_text().splitlines()
    pymgrid[1].write_text("\n".join([*lines[:5], *lines[6:]]))
    with pytest.raises(DataError, match=r"pv\.csv: its rows are of other hours"):
        read(pymgrid, most_load=1000.0)


def test_files_no_reader_knows_are_refused(tmp_path: Path, plain: Path) -> None:
    with pytest.raises(DataError, match="the column 'load' is already in"):
        read([plain, plain])
    with pytest.raises(DataError, match="are of no format: data are one plain CSV"):
        read(write(tmp_path / "other.csv", ["a", "b"], [[1, 2]]))
    with pytest.raises(DataError, match="cannot be read"):
        read(tmp_path / "absent.csv")
    with pytest.raises(DataError, match="a header and at least one row"):
        read(write(tmp_path / "empty.csv", PLAIN, []))


def test_a_level_is_refused_data_without_its_columns(plain: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="'outside'"):
        world_of("household", data=plain)
    short = write(tmp_path / "short.csv", PLAIN, plain_rows(1))
    with pytest.raises(DataError, match="0 windows of 24 steps"):
        world_of("day", data=short)


def test_series_of_equal_content_have_equal_names(plain: Path) -> None:
    one, other = read(plain), read(plain)
    assert one == other
    assert one.digest == other.digest
    changed = TimeSeries(one.start, one.minutes, one.price[:-1], one.load[:-1], one.pv[:-1])
    assert changed.digest != one.digest


def test_three_windows_are_enough_for_every_split(tmp_path: Path) -> None:
    world = world_of("day", data=write(tmp_path / "short.csv", PLAIN, plain_rows(4)))
    sources = {world.task(split).instance["source"] for split in ("train", "validation", "test")}
    assert len(sources) == 3
