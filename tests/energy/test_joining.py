"""Laws of files joined by time: a load, PVWatts, ENTSO-E's prices, in any order of files and rows.

The rows are made up; headers, preamble and marks are those that PVWatts 8 and the Transparency
Platform write.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.energy import days
from tests.energy.days import BERLIN, HOUR
from tests.energy.drawn import world_of
from tokengym.envs.core.errors import DataError, OptionError
from tokengym.envs.core.play import play
from tokengym.envs.energy.data import TimeSeries, read
from tokengym.envs.registry import baselines

START = datetime(2024, 3, 26, tzinfo=UTC)
PREAMBLE = """"PVWatts: Hourly PV Performance Data"
"Requested Location:","Berlin"
"Latitude (deg N):","52.53"
"DC System Size (kW):","4"
"Monthly Irradiance Loss (%)",""
"","Jan","0"

"Month","Day","Hour","Beam Irradiance (W/m2)","AC System Output (W)"
"""


def load_file(
    path: Path, values: Mapping[datetime, float], *, zone: ZoneInfo | None = None
) -> Path:
    """A load in times with an offset, or in those that a clock on the wall shows."""
    times = {t: t if zone is None else t.astimezone(zone).replace(tzinfo=None) for t in values}
    lines = [f"{times[t].isoformat()},{value}" for t, value in values.items()]
    path.write_text("\n".join(["time,load_kw", *lines]))
    return path


def watts(month: int, day: int, hour: int) -> int:
    return (100 * month + 10 * day) * (8 <= hour <= 16) + hour


def sun_file(path: Path, first: datetime = datetime(2023, 3, 20), days: int = 30) -> Path:
    """PVWatts writes a whole year; a part of it is read too."""
    hours = [first + k * HOUR for k in range(days * 24)]
    lines = [
        f'"{t.month}","{t.day}","{t.hour}","0","{watts(t.month, t.day, t.hour)}"' for t in hours
    ]
    path.write_text(PREAMBLE + "\n".join([*lines, '"Totals","","","0","4711"\n']))
    return path


def price_file(path: Path, values: Mapping[datetime, float], *, marked: bool = True) -> Path:
    return days.price_file(path, [(t, HOUR, price) for t, price in values.items()], marked=marked)


def hourly(count: int, first: datetime = START) -> list[datetime]:
    return [first + k * HOUR for k in range(count)]


def entries(series: TimeSeries) -> list[tuple[float, float, float]]:
    return list(zip(series.load, series.pv, series.price, strict=True))


@pytest.mark.nightly
@settings(max_examples=10)
@given(data=st.data())
def test_files_and_rows_are_read_in_any_order(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Across the clock change of 31 March, with gaps in either file."""
    folder = tmp_path_factory.mktemp("joined")
    times = hourly(24 * 8)
    absent = st.sets(st.sampled_from(times), max_size=12)
    loads = {t: round(0.5 + k % 11 / 10, 2) for k, t in enumerate(times)}
    prices = {t: float(k % 90) for k, t in enumerate(times)}
    for values in (loads, prices):
        for time in data.draw(absent):
            del values[time]
    shuffled = st.permutations
    local = data.draw(st.booleans())
    loads = {t: loads[t] for t in (loads if local else data.draw(shuffled(list(loads))))}
    prices = {t: prices[t] for t in data.draw(shuffled(list(prices)))}
    files = [
        load_file(folder / "load.csv", loads, zone=BERLIN if local else None),
        sun_file(folder / "pvwatts_hourly.csv"),
        price_file(folder / "prices.csv", prices),
    ]
    if data.draw(st.booleans()):  # of two periods, or mixed
        second = set(data.draw(shuffled(list(prices)))[::3])
        for name, chosen in (("prices", prices.keys() - second), ("more", second)):
            path = price_file(folder / f"{name}.csv", {t: prices[t] for t in sorted(chosen)})
        files.append(path)
    series = read(data.draw(shuffled(files)), zone=BERLIN)
    expected = []
    for time in sorted(loads.keys() & prices.keys()):
        standard = time + HOUR
        sun = watts(standard.month, standard.day, standard.hour) / 1000
        expected.append((loads[time], round(sun, 2), round(prices[time] / 1000, 3)))
    assert entries(series) == expected
    lost = [row.why for row in series.report.dropped if row.rows]
    inside = [t for t in loads if min(loads.keys() & prices) <= t <= max(loads.keys() & prices)]
    assert ("price missing" in lost) == any(t not in prices for t in inside)
    common = sorted(loads.keys() & prices.keys())
    for at, minute in series.cuts:
        local_time = common[at].astimezone(BERLIN)
        assert minute == 60 * local_time.hour + local_time.minute


def test_price_files_share_an_area_and_no_period(tmp_path: Path) -> None:
    files = [load_file(tmp_path / "load.csv", dict.fromkeys(hourly(48), 0.7))]
    files.append(sun_file(tmp_path / "sun.csv"))
    files.append(price_file(tmp_path / "one.csv", dict.fromkeys(hourly(24), 80.0)))
    other = price_file(tmp_path / "two.csv", dict.fromkeys(hourly(24, START + 24 * HOUR), 90.0))
    assert len(read([*files, other], zone=BERLIN).price) == 48
    price_file(other, dict.fromkeys(hourly(24, START + 23 * HOUR), 90.0))
    with pytest.raises(DataError, match=r"two\.csv"):
        read([*files, other], zone=BERLIN)
    text = price_file(other, dict.fromkeys(hourly(24, START + 24 * HOUR), 90.0)).read_text()
    other.write_text(text.replace("DE-LU", "FR"))
    with pytest.raises(DataError, match=r"prices of one area are needed"):
        read([*files, other], zone=BERLIN)


def test_the_report_names_overlaps_and_omissions(tmp_path: Path) -> None:
    load = load_file(tmp_path / "load.csv", dict.fromkeys(hourly(96), 0.7))
    prices = price_file(tmp_path / "prices.csv", dict.fromkeys(hourly(96, START + 30 * HOUR), 81.5))
    series = read([prices, load, sun_file(tmp_path / "sun.csv")], zone=BERLIN)
    said = next(note for note in series.report.notes if note.startswith("joined by time"))
    assert "all have 66 of 96 steps, from 2024-03-27 07:00:00+01:00 to " in said
    assert "load.csv from 2024-03-26 01:00:00+01:00 to 2024-03-30 00:00:00+01:00" in said
    assert "no price of sales: what is sold earns nothing" in series.report.notes
    assert series.report.rows == {"prices.csv": 96, "load.csv": 96, "sun.csv": 720}
    (outside,) = (row for row in series.report.dropped if row.rows)
    assert (outside.rows, outside.why) == (60, "at times that not all files have")
    assert series.start == 7 * 60


STATED = {
    "CET/CEST": "Europe/Brussels",
    "EET/EEST": "Europe/Athens",
    "GMT/BST": "Europe/London",
    "GMT/IST": "Europe/Dublin",
    "UTC": "UTC",
}


@pytest.mark.parametrize("stated", STATED)
def test_prices_begin_when_the_clocks_of_the_header_say_so(stated: str, tmp_path: Path) -> None:
    zone, times = ZoneInfo(STATED[stated]), hourly(24 * 8)
    written = [t.astimezone(zone).replace(tzinfo=None) for t in times]
    lines = [
        f'"{t:%d/%m/%Y %H:%M:%S} - {t + HOUR:%d/%m/%Y %H:%M:%S}","BZN|X","Sequence 1","{k}"'
        for k, t in enumerate(written)
    ]
    header = f'"MTU ({stated})","Area","Sequence","Day-ahead Price (EUR/MWh)"'
    prices = tmp_path / "p.csv"
    prices.write_text("\n".join([header, *lines]))
    load = load_file(tmp_path / "l.csv", dict.fromkeys(times, 0.5))
    series = read([load, sun_file(tmp_path / "s.csv"), prices], zone=ZoneInfo("UTC"))
    assert series.price == pytest.approx([k / 1000 for k in range(len(times))])


@pytest.mark.parametrize("marked", [True, False])
def test_the_hour_that_clocks_repeat_has_two_prices(marked: bool, tmp_path: Path) -> None:
    times = hourly(72, datetime(2024, 10, 26, tzinfo=UTC))
    prices = {t: float(k) for k, t in enumerate(times)}
    load = load_file(tmp_path / "load.csv", dict.fromkeys(times, 0.7), zone=BERLIN)
    file = price_file(tmp_path / "p.csv", prices, marked=marked)
    series = read([load, sun_file(tmp_path / "s.csv", datetime(2023, 10, 20)), file], zone=BERLIN)
    assert series.price == tuple(round(k / 1000, 3) for k in range(72))
    assert series.cuts == ((25, 120),)


def test_the_old_form_of_the_platform_is_read(tmp_path: Path) -> None:
    load = load_file(tmp_path / "load.csv", dict.fromkeys(hourly(48), 0.7))
    sun = sun_file(tmp_path / "sun.csv")
    rows = [
        f'"{t:%d.%m.%Y %H:%M} - {t + HOUR:%d.%m.%Y %H:%M}","{k}.0","EUR",""'
        for k, t in enumerate(hourly(48))
    ]
    # An hour that clocks skip has a row and no price in files of CET.
    rows.append('"31.03.2024 02:00 - 31.03.2024 03:00","-","EUR",""')
    old = tmp_path / "old.csv"
    header = '"MTU (UTC)","Day-ahead Price [EUR/MWh]","Currency","BZN|DE-LU"'
    old.write_text("\n".join([header, *rows]))
    series = read([load, sun, old], zone=BERLIN)
    assert series.price[:3] == (0.0, 0.001, 0.002)


@pytest.fixture
def three(tmp_path: Path) -> list[Path]:
    """A load, its sun and its prices."""
    return [
        load_file(tmp_path / "l.csv", dict.fromkeys(hourly(48), 0.7)),
        sun_file(tmp_path / "s.csv"),
        price_file(tmp_path / "p.csv", dict.fromkeys(hourly(48), 50.0)),
    ]


UNFIT: Sequence[tuple[str, str, str, str]] = (
    ("p.csv", "DE-LU", "FR", r"p\.csv: prices of one area .*'BZN\|DE-LU', 'BZN\|FR'"),
    ("p.csv", '"50.0"', '"9e4"', r"p\.csv, line 2: price is 90\.0: beyond 5 per kWh"),
    ("p.csv", "CET/CEST", "Mars", r"p\.csv, line 1: 'MARS' is no zone"),
    ("l.csv", "T01:", "T00:", r"l\.csv, line 3: time 2024-03-26 01:00:00\+01:00 comes twice"),
    ("s.csv", '"3","20","0"', '"13","1","0"', r"s\.csv, line 9: month, day and hour are no time"),
    ("s.csv", '"3","20","0"', '"x","1","0"', r"s\.csv, line 9: month is 'x', not a whole number"),
)


UNREADABLE: Sequence[tuple[str, str, str, str]] = (
    ("26/03/2024", "2024-03-26", r"p\.csv, line 2: '2024-03-26 01:00:00 - .* 31/12/2025", "mtu_"),
    ('"50.0"', '"x"', r"p\.csv, line 2: day-ahead.* is 'x', not a number; 48 of 48 rows", "price"),
)


@pytest.mark.parametrize(("old", "new", "reason", "why"), UNREADABLE)
def test_an_unreadable_cell_costs_its_row_and_many_the_file(
    old: str, new: str, reason: str, why: str, three: list[Path]
) -> None:
    text = three[2].read_text()
    at = text.index(old, 300)
    three[2].write_text(text[:at] + text[at:].replace(old, new, 1))
    series = read(three, zone=BERLIN)
    assert series.steps == 47
    assert any(dropped.why.startswith(why) for dropped in series.report.dropped)
    assert "the first is '2" in str(series.report) or "the first is 'x' in line" in str(
        series.report
    )
    three[2].write_text(text.replace(old, new))
    with pytest.raises(DataError, match=reason):
        read(three, zone=BERLIN)


@pytest.mark.parametrize(("name", "old", "new", "reason"), UNFIT)
def test_a_file_that_does_not_fit_is_refused_by_row(
    name: str, old: str, new: str, reason: str, three: list[Path], tmp_path: Path
) -> None:
    text = (tmp_path / name).read_text()
    assert old in text
    (tmp_path / name).write_text(text.replace(old, new, 1))
    with pytest.raises(DataError, match=reason):
        read(three, zone=BERLIN)


def test_files_without_a_common_time_or_clock_are_refused(tmp_path: Path) -> None:
    load = load_file(tmp_path / "load.csv", dict.fromkeys(hourly(48), 0.7))
    naive = load_file(tmp_path / "naive.csv", dict.fromkeys(hourly(48), 0.7), zone=BERLIN)
    flat, sun = tmp_path / "flat.csv", sun_file(tmp_path / "sun.csv")
    flat.write_text("\n".join(["time,pv_kw", *(f"{t.isoformat()},1" for t in hourly(48))]))
    later = price_file(tmp_path / "p.csv", dict.fromkeys(hourly(48, START + 400 * HOUR), 50.0))
    building = tmp_path / "Building_1.csv"
    building.write_text("hour,non_shiftable_load,solar_generation\n1,0.5,0\n2,0.5,400\n")
    with pytest.raises(DataError, match=r"no time is in all files: load\.csv from 2024-03-26 01:"):
        read([load, sun, later], zone=BERLIN)
    with pytest.raises(DataError, match=r"naive\.csv: its times have no offset from UTC: give"):
        read([naive, flat])
    with pytest.raises(DataError, match=r"sun\.csv: its hours are standard time .* give its zone"):
        read([load, sun])
    with pytest.raises(DataError, match=r"Building_1\.csv: its rows have no times"):
        read([building, later], zone=BERLIN)


def test_a_local_time_that_clocks_skip_is_refused(tmp_path: Path) -> None:
    lines = [f"2024-03-31T{hour:02}:30,0.5,0,0.2,0.05,1" for hour in range(6)]
    path = tmp_path / "home.csv"
    header = "time,load_kw,pv_kw,price_import,price_export,grid_up"
    path.write_text("\n".join([header, *lines]))
    with pytest.raises(DataError, match=r"home\.csv, line 4: .*which the clocks of .*Berlin skip"):
        read(path, zone=BERLIN)


def test_joined_files_are_played_in_the_hours_of_the_home(tmp_path: Path) -> None:
    times = hourly(24 * 20)
    loads = {t: 0.5 + (1.4 if 16 <= t.hour <= 19 else 0.0) for t in times}
    files = [
        load_file(tmp_path / "load.csv", loads),
        sun_file(tmp_path / "sun.csv"),
        price_file(tmp_path / "p.csv", {t: 480.0 if 16 <= t.hour <= 19 else 190.0 for t in times}),
    ]
    world = world_of("day", data=files, zone="Europe/Berlin")
    task = world.task("train", 0)
    found = play(world, task, baselines("energy")["oracle"])
    assert found.returns["operator"] == 1.0
    dear = {(task.instance["start"] // 60 + at) % 24 for at, p in enumerate(task.instance["price"])
            if p > 0.4}  # fmt: skip
    assert dear in ({17, 18, 19, 20}, {18, 19, 20, 21})
    with pytest.raises(OptionError, match="a name of the time zone database, got 'Berlin'"):
        world_of("day", data=files, zone="Berlin")
    with pytest.raises(OptionError, match="for data of your own"):
        world_of("day", zone="Europe/Berlin")
