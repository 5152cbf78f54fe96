"""Laws of prices whose steps change within a series, as Europe's did on 1 October 2025.

A row holds until it ends or the next one begins; a step of the load has the mean by time.
"""

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.energy.days import BERLIN, HOUR, Price, price_file
from tokengym.envs.core.errors import DataError
from tokengym.envs.energy.data import TimeSeries, read

SWITCH = datetime(2025, 9, 30, 22, tzinfo=UTC)
QUARTER = timedelta(minutes=15)


def steps(begin: datetime, end: datetime, step: timedelta) -> list[datetime]:
    return [begin + k * step for k in range((end - begin) // step)]


def priced(begin: datetime, end: datetime, step: timedelta) -> list[Price]:
    """A price for every step, different from those around it."""
    return [(t, step, 10.0 * (int(t.timestamp()) // 900 % 37)) for t in steps(begin, end, step)]


def load_file(path: Path, times: Sequence[datetime]) -> Path:
    """A load in times with the offset that Berlin has then."""
    lines = [f"{t.astimezone(BERLIN).isoformat()},0.5,0.1" for t in times]
    path.write_text("\n".join(["time,load_kw,pv_kw", *lines]))
    return path


def plain_prices(path: Path, prices: Sequence[Price]) -> Path:
    """Prices per kWh at their times, which state no end."""
    lines = [f"{t.isoformat()},{float(cell) / 1000}" for t, _, cell in prices]
    path.write_text("\n".join(["time,price_import", *lines]))
    return path


def joined(*files: Path) -> TimeSeries:
    return read(files, zone=BERLIN)


def mean(prices: Sequence[Price], begin: datetime, step: timedelta) -> float:
    """The mean price by the minute."""
    minutes = [begin + timedelta(minutes=k) for k in range(step // timedelta(minutes=1))]
    found = [next(float(c) for t, v, c in prices if t <= m < t + v) for m in minutes]
    return sum(found) / len(found) / 1000


@pytest.mark.nightly
@settings(max_examples=12)
@given(data=st.data())
def test_every_step_has_the_mean_by_time(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("steps")
    minutes = st.sampled_from([15, 30, 60])
    days = data.draw(st.lists(minutes, min_size=2, max_size=3))
    ends = [SWITCH + 24 * k * HOUR for k in range(len(days) + 1)]
    parts = [
        priced(a, b, timedelta(minutes=step))
        for (a, b), step in zip(itertools.pairwise(ends), days, strict=True)
    ]
    prices = [price for part in parts for price in part]
    step = timedelta(minutes=data.draw(minutes))
    load = load_file(folder / "load.csv", steps(ends[0], ends[-1], step))
    how = data.draw(st.sampled_from(["one file", "a file a day", "plain"]))
    files = [price_file(folder / "p.csv", data.draw(st.permutations(prices)))]
    if how == "plain":
        files = [plain_prices(folder / "p.csv", prices)]
    elif how == "a file a day":
        files = [price_file(folder / f"{k}.csv", part) for k, part in enumerate(parts)]
    series = joined(*data.draw(st.permutations([load, *files])))
    assert series.steps == (ends[-1] - ends[0]) // step
    assert series.report.refused == 0
    for at, price in enumerate(series.price):
        assert price == pytest.approx(mean(prices, ends[0] + at * step, step), abs=5.1e-4)


def test_the_report_gives_the_steps_by_period(tmp_path: Path) -> None:
    begin, end = SWITCH - 72 * HOUR, SWITCH + 48 * HOUR
    prices = priced(begin, SWITCH, HOUR) + priced(SWITCH, end, QUARTER)
    load = load_file(tmp_path / "load.csv", steps(begin, end, HOUR))
    for file in (price_file(tmp_path / "p.csv", prices), plain_prices(tmp_path / "q.csv", prices)):
        at = SWITCH.astimezone(BERLIN)
        said = f"price: steps of 60 min until {at}, 15 min from {at}"
        assert said in joined(load, file).report.notes


@pytest.mark.parametrize("switch", [datetime(2025, 3, 30, 1, tzinfo=UTC),
                                    datetime(2025, 10, 26, 1, tzinfo=UTC)])  # fmt: skip
@pytest.mark.parametrize("step", [HOUR, QUARTER])
def test_a_load_with_offsets_loses_nothing_when_clocks_change(
    switch: datetime, step: timedelta, tmp_path: Path
) -> None:
    begin, end = switch - 25 * HOUR, switch + 30 * HOUR
    prices = priced(begin, switch - HOUR, HOUR) + priced(switch - HOUR, end, QUARTER)
    load = load_file(tmp_path / "load.csv", steps(begin, end, step))
    series = joined(load, price_file(tmp_path / "p.csv", prices))
    assert (series.steps, series.report.refused) == (55 * HOUR // step, 0)
    for at, price in enumerate(series.price):
        assert price == pytest.approx(mean(prices, begin + at * step, step), abs=5.1e-4)


@pytest.mark.parametrize("step", [HOUR, QUARTER])
@pytest.mark.parametrize("stated", [True, False])
def test_omitted_quarters_repeat_the_one_before(
    step: timedelta, stated: bool, tmp_path: Path
) -> None:
    end = SWITCH + 24 * HOUR
    every = priced(SWITCH, end, QUARTER)
    kept = [price for price in every if price[0].minute not in (15, 30)]
    stops = [*(t for t, _, _ in kept[1:]), end]
    held = [(t, stop - t, cell) for (t, _, cell), stop in zip(kept, stops, strict=True)]
    write = price_file if stated else plain_prices
    series = joined(
        load_file(tmp_path / "load.csv", steps(SWITCH, end, step)), write(tmp_path / "p.csv", kept)
    )
    assert (series.steps, series.report.refused) == (24 * HOUR // step, 0)
    for at, price in enumerate(series.price):
        assert price == pytest.approx(mean(held, SWITCH + at * step, step), abs=5.1e-4)


@pytest.mark.parametrize(
    ("step", "gone"), [(HOUR, range(5, 6)), (HOUR, range(5, 9)), (QUARTER, range(20, 28))]
)
@pytest.mark.parametrize("stated", [True, False])
def test_no_price_is_carried_over_a_longer_gap(
    step: timedelta, gone: range, stated: bool, tmp_path: Path
) -> None:
    prices = priced(SWITCH, SWITCH + 24 * HOUR, step)
    kept = [price for at, price in enumerate(prices) if at not in gone]
    write = price_file if stated else plain_prices
    series = joined(
        load_file(tmp_path / "load.csv", steps(SWITCH, SWITCH + 24 * HOUR, HOUR)),
        write(tmp_path / "p.csv", kept),
    )
    lost = len(gone) * step // HOUR
    assert [(row.rows, row.why) for row in series.report.dropped] == [(lost, "price missing")]
    assert series.steps == 24 - lost


def test_an_empty_quarter_leaves_its_hour_out(tmp_path: Path) -> None:
    prices = priced(SWITCH, SWITCH + 24 * HOUR, QUARTER)
    prices[21] = (*prices[21][:2], "n/e")
    load = load_file(tmp_path / "load.csv", steps(SWITCH, SWITCH + 24 * HOUR, HOUR))
    series = joined(load, price_file(tmp_path / "p.csv", prices))
    assert [(row.rows, row.why) for row in series.report.dropped] == [(1, "price missing")]
    (said,) = (note for note in series.report.notes if "the first is" in note)
    assert "the first is 'n/e' in line 23" in said


def test_files_may_overlap_where_they_agree(tmp_path: Path) -> None:
    end = SWITCH + 24 * HOUR
    prices = priced(SWITCH, end, QUARTER)
    load = load_file(tmp_path / "load.csv", steps(SWITCH, end, HOUR))
    whole = joined(load, price_file(tmp_path / "p.csv", prices))
    early = [*prices[:60], *((t, v, "-") for t, v, _ in prices[60:])]
    files = [
        price_file(tmp_path / "a.csv", early),
        price_file(tmp_path / "b.csv", prices[40:], "Sequence 1"),
    ]
    for order in (files, files[::-1]):
        series = joined(load, *order)
        assert series.price == whole.price
        (again,) = series.report.dropped
        assert (again.rows, again.why) == (56, "prices at times that another row has")
    other = [(t, v, 999.0) for t, v, _ in prices[40:]]
    with pytest.raises(
        DataError,
        match=r"the price at 2025-10-01 10:00.* is 999\.0 in .*b\.csv, line 2, and .*a\.csv",
    ):
        joined(load, files[0], price_file(files[1], other))


def test_a_file_of_later_auctions_alone_is_refused(tmp_path: Path) -> None:
    end = SWITCH + 24 * HOUR
    load = load_file(tmp_path / "load.csv", steps(SWITCH, end, HOUR))
    path = price_file(tmp_path / "p.csv", priced(SWITCH, end, QUARTER), "Sequence Sequence 2")
    with pytest.raises(DataError, match=r"p\.csv: no row with a readable mtu_.* is left"):
        joined(load, path)


def test_later_auctions_are_left_out_under_every_name(tmp_path: Path) -> None:
    end = SWITCH + 24 * HOUR
    load = load_file(tmp_path / "load.csv", steps(SWITCH, end, HOUR))
    prices, other = priced(SWITCH, end, HOUR), [(t, HOUR, 1.0) for t in steps(SWITCH, end, HOUR)]
    path = tmp_path / "p.csv"
    expected = joined(load, price_file(path, prices)).price
    for first in ("Without Sequence", "Sequence 1", "1", "Sequence Sequence 1", ""):
        for second in ("Sequence 2", "Sequence Sequence 2", "Sequence Sequence 12"):
            lines = price_file(path, other, second).read_text().splitlines()[1:]
            path.write_text("\n".join([price_file(path, prices, first).read_text(), *lines]))
            series = joined(load, path)
            assert series.price == expected
            assert series.report.refused == 24


def test_the_grid_is_up_only_throughout_a_step(tmp_path: Path) -> None:
    times = steps(SWITCH, SWITCH + 24 * HOUR, QUARTER)
    path = tmp_path / "grid.csv"
    lines = [f"{t.isoformat()},{int(k != 17)}" for k, t in enumerate(times)]
    path.write_text("\n".join(["time,grid_up", *lines]))
    series = joined(load_file(tmp_path / "load.csv", times[::4]), path)
    assert [at for at, up in enumerate(series.up) if not up] == [4]
