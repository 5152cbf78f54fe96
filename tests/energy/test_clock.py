"""Laws of the clock: gaps, changes of clocks and other steps cut or resample, and are reported."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from tests.energy.days import days_file
from tests.energy.drawn import world_of
from tokengym.envs.core.errors import DataError, OptionError
from tokengym.envs.energy.data import TimeSeries, read, resample_to
from tokengym.envs.energy.levels import LEVELS


def edit(path: Path, change: Callable[[list[str]], list[str]]) -> Path:
    """Change the lines of a file below its header."""
    header, *lines = path.read_text().splitlines()
    path.write_text("\n".join([header, *change(lines)]) + "\n")
    return path


def test_no_window_crosses_missing_rows(tmp_path: Path) -> None:
    def spoil(lines: list[str]) -> list[str]:
        cells = lines[300].split(",")
        lines[300] = ",".join([cells[0], "", *cells[2:]])
        lines[301] = ",".join([*cells[:2], "NaN", *cells[3:]]).replace("12:00", "13:00")
        return lines[:100] + lines[103:]

    series = read(edit(days_file(tmp_path / "home.csv"), spoil))
    assert [str(part) for part in series.report.dropped] == [
        f"cut: a gap of 3 steps of 1:00:00 ({tmp_path}/home.csv, line 102)",
        f"1 row left out: load missing ({tmp_path}/home.csv, line 299)",
        f"1 row left out: pv missing ({tmp_path}/home.csv, line 300)",
    ]
    assert series.report.rows == {"home.csv": 477}
    assert series.steps == 475
    assert series.cuts == ((100, 7 * 60), (297, 14 * 60))
    assert series.minute_at(100) == 7 * 60
    for name in ("small", "day"):
        level = LEVELS[name]
        for start in series.windows(level):
            for cut, _ in series.cuts:
                assert not start - level.history < cut < start + level.steps


@pytest.mark.nightly
def test_a_window_shows_the_hours_of_its_own_stretch(tmp_path: Path) -> None:
    path = edit(days_file(tmp_path / "home.csv"), lambda lines: lines[:100] + lines[105:])
    world, series = world_of("day", data=path), read(path)
    for task in world.first_tasks("train", 8):
        at = int(task.instance["source"].partition(":")[2])
        assert world.data_report == series.report
        assert task.instance["start"] == (at if at < 100 else at + 5) % 24 * 60
        assert tuple(task.instance["pv"]) == series.pv[at : at + 24]


SPRING, AUTUMN = datetime(2024, 3, 30), datetime(2024, 10, 26)


@pytest.mark.parametrize(
    ("begin", "minutes", "lost", "why"),
    [
        (SPRING, 60, slice(26, 27), "clocks go forward and times have no offset from UTC"),
        (SPRING, 15, slice(104, 108), "clocks go forward and times have no offset from UTC"),
        (AUTUMN, 60, slice(0, 0), "clocks go back and times have no offset from UTC"),
        (AUTUMN, 15, slice(0, 0), "clocks go back and times have no offset from UTC"),
    ],
)
def test_a_change_of_clocks_in_naive_times_is_named(
    begin: datetime, minutes: int, lost: slice, why: str, tmp_path: Path
) -> None:
    def change(lines: list[str]) -> list[str]:
        hour = 60 // minutes
        if begin == AUTUMN:  # the hour from 2 to 3 comes twice
            return lines[: 27 * hour] + lines[26 * hour :]
        return lines[: lost.start] + lines[lost.stop :]

    series = read(edit(days_file(tmp_path / "home.csv", 5, minutes, begin=begin), change))
    (cut,) = series.report.dropped
    assert cut.why == why
    assert series.cuts[0][1] == (180 if begin == SPRING else 120)


def test_clock_changes_in_times_with_an_offset_are_cuts(tmp_path: Path) -> None:
    def local(lines: list[str]) -> list[str]:
        shown = []
        for line in lines:
            time, _, rest = line.partition(",")
            hours = 1 if time < "2024-03-31T01:00" else 2
            at = datetime.fromisoformat(f"{time}+00:00")
            stamp = at.timestamp() + hours * 3600
            wall = datetime.utcfromtimestamp(stamp).isoformat()
            shown.append(f"{wall}+0{hours}:00,{rest}")
        return shown

    series = read(edit(days_file(tmp_path / "home.csv", 5, begin=SPRING), local))
    (cut,) = series.report.dropped
    assert cut.why == "clocks go forward"
    assert series.cuts == ((25, 180),)
    assert series.steps == 120


@pytest.mark.nightly
def test_other_steps_are_named_or_resampled(tmp_path: Path) -> None:
    quarters = days_file(tmp_path / "quarters.csv", minutes=15)
    with pytest.raises(DataError, match=r"data 15: play them at 'soma', or give resample=True"):
        world_of("day", data=quarters)
    halves = days_file(tmp_path / "halves.csv", minutes=30)
    with pytest.raises(DataError, match=r"minutes, the data 30: give resample=True"):
        world_of("soma", data=halves)
    task = world_of("day", data=quarters, resample=True).task("train", 0)
    at = int(task.instance["source"].partition(":")[2])
    fine = read(quarters)
    assert task.instance["load"][0] == round(sum(fine.load[4 * at : 4 * at + 4]) / 4, 2)
    coarse = resample_to(read(halves), 15)
    assert coarse.load[:4] == (*read(halves).load[:1] * 2, *read(halves).load[1:2] * 2)
    assert coarse.report.notes[-1] == "steps of 30 minutes are repeated to 15"
    with pytest.raises(OptionError, match="resample and zone are for data of your own"):
        world_of("day", resample=True)
    with pytest.raises(DataError, match="must be a multiple"):
        resample_to(TimeSeries(0, 25, (0.1,) * 50), 60)


def test_resampling_keeps_hours_whole_and_an_outage_down() -> None:
    up = (1,) * 5 + (0,) + (1,) * 6
    series = TimeSeries(30, 15, (0.1,) * 12, up=up, cuts=((9, 30),))
    assert resample_to(series, 60).up == (0,)
    assert resample_to(series, 60).start == 60
    assert "rows fill no whole step" in resample_to(series, 60).report.notes[-1]


def test_semicolons_and_decimal_commas_are_understood(tmp_path: Path) -> None:
    plain = days_file(tmp_path / "home.csv")
    german = tmp_path / "german.csv"
    german.write_text(plain.read_text().replace(",", ";").replace(".", ","))
    assert read(german) == read(plain)
