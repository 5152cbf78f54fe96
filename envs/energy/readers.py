"""Reading a user's own days: a plain CSV, CityLearn's files, pymgrid's files.

Every refusal names file, line and reason. Sources of the formats: CityLearn (buildings, pricing,
weather; https://github.com/intelligent-environments-lab/CityLearn) and pymgrid
(https://github.com/Total-RD/pymgrid).
"""

import csv
import itertools
import math
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from tokengym.envs.core.errors import DataError
from tokengym.envs.energy.series import Series, checked

Source = str | Path

_PLAIN = ("load_kw", "pv_kw", "price_import", "price_export", "grid_up")
_FIELDS = ("load", "pv", "price", "resale", "up")
_LOADS = ("non_shiftable_load", "equipment_electric_power")
_OUTSIDE = ("outdoor_dry_bulb_temperature", "outdoor_drybulb_temperature")
_LARGEST_YIELD = 1500.0
_GRID = ("import_price", "export_price", "co2_per_kwh", "grid_status")


class _Table:
    """A CSV file with a header, read as text; cells become numbers where asked for."""

    def __init__(self, path: Source) -> None:
        self.name = str(path)
        try:
            with Path(path).open(newline="", encoding="utf-8-sig") as file:
                rows = list(csv.reader(file))
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise DataError(f"{path}: cannot be read: {error}") from error
        while rows and not rows[-1]:
            rows.pop()
        if len(rows) < 2:
            raise DataError(f"{path}: a header and at least one row are needed, got {len(rows)}")
        self.header = [_plain(cell) for cell in rows[0]]
        self.rows = rows[1:]
        for line, row in enumerate(self.rows, start=2):
            if len(row) != len(self.header):
                raise DataError(
                    f"{path}, line {line}: {len(row)} cells under {len(self.header)} columns"
                )

    def has(self, *names: str) -> str | None:
        """The first of `names` that is a column."""
        return next((name for name in names if name in self.header), None)

    def cells(self, *names: str) -> list[str]:
        """The column that bears one of `names`."""
        name = self.has(*names)
        if name is None:
            raise DataError(
                f"{self.name}, line 1: the column {names[0]!r} is missing, got {self.header}"
            )
        at = self.header.index(name)
        return [row[at].strip() for row in self.rows]

    def numbers(self, *names: str) -> list[float]:
        """The column that bears one of `names`, as finite numbers."""
        values = []
        for line, cell in enumerate(self.cells(*names), start=2):
            try:
                value = float(cell)
            except ValueError:
                value = math.nan
            if not math.isfinite(value):
                what = repr(cell) if cell else "an empty cell"
                raise DataError(f"{self.name}, line {line}: {names[0]} is {what}, no number")
            values.append(value)
        return values


def read(paths: Source | Sequence[Source]) -> Series:
    """Read whatever the headers say the files are.

    Args:
        paths: one plain CSV; or CityLearn's building and pricing, or weather and pricing; or
            pymgrid's load, sun and grid.

    Raises:
        DataError: if no reader fits or the chosen one refuses.
    """
    files = [paths] if isinstance(paths, str | Path) else list(paths)
    if len(files) == 1:
        return read_plain(files[0])
    headers = [_Table(file).header for file in files]
    if len(files) == 2 and "electricity_pricing" in headers[1]:
        if any(name in headers[0] for name in _OUTSIDE):
            return read_citylearn_weather(*files)
        return read_citylearn(*files)
    if len(files) == 3:
        return read_pymgrid(*files)
    raise DataError(
        "data are one plain CSV, CityLearn's building or weather and then its pricing, or "
        f"pymgrid's load, sun and grid; got {[str(file) for file in files]}"
    )


def read_plain(path: Source) -> Series:
    """Read `time,load_kw,pv_kw,price_import,price_export,grid_up`.

    The time is ISO 8601, in even steps; powers are means in kW, prices money per kWh.

    Raises:
        DataError: naming file, line and reason.
    """
    table = _Table(path)
    columns = {name: table.numbers(title) for name, title in zip(_FIELDS, _PLAIN, strict=True)}
    times = []
    for line, cell in enumerate(table.cells("time"), start=2):
        try:
            times.append(datetime.fromisoformat(cell))
        except ValueError as error:
            raise DataError(f"{path}, line {line}: time is {cell!r}, not ISO 8601") from error
    if len(times) < 2:
        raise DataError(f"{path}: two rows at least are needed to know the length of a step")
    step = times[1] - times[0]
    minutes, rest = divmod(step.total_seconds(), 60.0)
    if minutes <= 0 or rest:
        raise DataError(f"{path}, line 3: a step of {step} is no positive number of minutes")
    for line, (earlier, later) in enumerate(itertools.pairwise(times), start=3):
        if later - earlier != step:
            raise DataError(
                f"{path}, line {line}: a gap: {later - earlier} after the row before, not {step}"
            )
    where = dict.fromkeys(columns, (str(path), 2))
    return checked(columns, where, times[0].hour * 60 + times[0].minute, int(minutes))


def read_citylearn(
    building: Source, pricing: Source, *, nominal_power: float = 4.0, resale: float = 0.0
) -> Series:
    """Read a CityLearn building and its prices, hourly.

    Args:
        building: the CSV with `hour` (1 to 24), `non_shiftable_load` in kWh and
            `solar_generation` in W per kW of panels, maybe `power_outage` (1 in an outage).
        pricing: the CSV with `electricity_pricing` in money per kWh; predictions are not read.
        nominal_power: kW of panels.
        resale: money per kWh sold, which these files do not have.

    Raises:
        DataError: naming file, line and reason.
    """
    table, prices = _Table(building), _Table(pricing)
    yields = table.numbers("solar_generation")
    most = max(yields)
    if most > _LARGEST_YIELD or 0.0 < most < 2.0:
        raise DataError(
            f"{building}, line {yields.index(most) + 2}: solar_generation reaches {most!r}; it "
            "must be in W per kW of panels"
        )
    columns = {
        "load": table.numbers(*_LOADS),
        "pv": [nominal_power * value / 1000.0 for value in yields],
        "price": prices.numbers("electricity_pricing"),
    }
    columns["resale"] = [resale] * len(columns["price"])
    if table.has("power_outage"):
        columns["up"] = [1.0 - out for out in table.numbers("power_outage")]
    where = dict.fromkeys(columns, (str(building), 2)) | {"price": (str(pricing), 2)}
    return checked(columns, where, _first_hour(table), 60)


def read_citylearn_weather(weather: Source, pricing: Source, *, first_hour: int = 24) -> Series:
    """Read CityLearn's outdoor temperatures and prices, hourly, for a heated house.

    Args:
        weather: the CSV with `outdoor_dry_bulb_temperature` in °C.
        pricing: the CSV with `electricity_pricing` in money per kWh.
        first_hour: hour (1 to 24) of the first row, which these files do not say; CityLearn's own
            data begin with hour 24.

    Raises:
        DataError: naming file, line and reason.
    """
    columns = {
        "outside": _Table(weather).numbers(*_OUTSIDE),
        "price": _Table(pricing).numbers("electricity_pricing"),
    }
    where = {"outside": (str(weather), 2), "price": (str(pricing), 2)}
    return checked(columns, where, 60 * (first_hour - 1), 60)


def read_pymgrid(load: Source, pv: Source, grid: Source, *, scale: float = 1.0) -> Series:
    """Read the time series of a pymgrid scenario, hourly from midnight.

    Args:
        load: the CSV of the load module, in kW.
        pv: the CSV of the renewable module, in kW.
        grid: the CSV of the grid module: import_price, export_price, co2_per_kwh, grid_status, by
            name or in this order.
        scale: factor that brings load and sun to the size of a home.

    Raises:
        DataError: naming file, line and reason.
    """
    tables = [_Table(load), _Table(pv), _Table(grid)]
    for table in tables:
        _no_gap(table)
    grid_columns = {name: (name, str(number)) for number, name in enumerate(_GRID)}
    columns = {
        "load": [scale * value for value in tables[0].numbers("0", "load")],
        "pv": [scale * value for value in tables[1].numbers("0", "renewable", "pv")],
        "price": tables[2].numbers(*grid_columns["import_price"]),
        "resale": tables[2].numbers(*grid_columns["export_price"]),
        "up": tables[2].numbers(*grid_columns["grid_status"]),
    }
    where = dict.fromkeys(columns, (str(grid), 2)) | {"load": (str(load), 2), "pv": (str(pv), 2)}
    return checked(columns, where, 0, 60)


def _plain(cell: str) -> str:
    """A column's name without its unit, in lower case: `Solar Generation [W/kW]` and the like."""
    return "_".join(cell.partition("[")[0].strip().lower().split())


def _first_hour(table: _Table) -> int:
    """Minute of the day of the first row, the hours (1 to 24) checked for gaps."""
    hours = table.numbers("hour")
    for line, hour in enumerate(hours, start=2):
        if hour not in range(1, 25):
            raise DataError(f"{table.name}, line {line}: hour is {hour:g}, not one of 1 to 24")
    for line, (earlier, later) in enumerate(itertools.pairwise(hours), start=3):
        if later != earlier % 24 + 1:
            raise DataError(
                f"{table.name}, line {line}: a gap: hour {later:g} follows hour {earlier:g}"
            )
    return 60 * (int(hours[0]) - 1)


def _no_gap(table: _Table) -> None:
    """Check that the unnamed first column counts the hours."""
    if table.header[0]:
        return
    numbers = table.numbers("")
    for line, (earlier, later) in enumerate(itertools.pairwise(numbers), start=3):
        if later != earlier + 1:
            raise DataError(
                f"{table.name}, line {line}: a gap: row {later:g} follows row {earlier:g}"
            )
