"""Reading a user's own days: a plain CSV, CityLearn's files, pymgrid's files.

Every refusal names file, line and reason. Sources of the formats: CityLearn (buildings, pricing,
weather; https://github.com/intelligent-environments-lab/CityLearn) and pymgrid
(https://github.com/Total-RD/pymgrid).
"""

import itertools
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from tokengym.envs.core.errors import DataError
from tokengym.envs.core.tables import Source, Table
from tokengym.envs.energy.data.time_series import TimeSeries, time_series_of

_PLAIN = ("load_kw", "pv_kw", "price_import", "price_export", "grid_up")
_FIELDS = ("load", "pv", "price", "resale", "up")
_LOADS = ("non_shiftable_load", "equipment_electric_power")
_OUTSIDE = ("outdoor_dry_bulb_temperature", "outdoor_drybulb_temperature")
_LARGEST_YIELD = 1500.0
_GRID = ("import_price", "export_price", "co2_per_kwh", "grid_status")


def read(paths: Source | Sequence[Source]) -> TimeSeries:
    """Read files of any of the formats, told apart by their number and headers.

    Args:
        paths: one plain CSV; or CityLearn's building and pricing, or weather and pricing; or
            pymgrid's load, sun and grid.

    Raises:
        DataError: if no reader fits or the chosen one refuses.
    """
    files = [paths] if isinstance(paths, str | Path) else list(paths)
    if len(files) == 1:
        return read_plain(files[0])
    headers = [Table(file).header for file in files]
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


def read_plain(path: Source) -> TimeSeries:
    """Read `time,load_kw,pv_kw,price_import,price_export,grid_up`.

    The time is ISO 8601, in even steps; powers are means in kW, prices money per kWh.

    Raises:
        DataError: naming file, line and reason.
    """
    table = Table(path)
    columns = {name: table.numbers(title) for name, title in zip(_FIELDS, _PLAIN, strict=True)}
    times = []
    for row, cell in zip(table.rows, table.texts("time"), strict=True):
        try:
            times.append(datetime.fromisoformat(cell))
        except ValueError as error:
            raise DataError(f"{row.place}: time is {cell!r}, not ISO 8601") from error
    if len(times) < 2:
        raise DataError(f"{path}: two rows at least are needed to know the length of a step")
    step = times[1] - times[0]
    minutes, rest = divmod(step.total_seconds(), 60.0)
    if minutes <= 0 or rest:
        place = table.rows[1].place
        raise DataError(f"{place}: a step of {step} is no positive number of minutes")
    for row, (earlier, later) in zip(table.rows[1:], itertools.pairwise(times), strict=True):
        if later - earlier != step:
            raise DataError(
                f"{row.place}: a gap: {later - earlier} after the row before, not {step}"
            )
    return time_series_of(
        columns, dict.fromkeys(columns, table), times[0].hour * 60 + times[0].minute, int(minutes)
    )


def read_citylearn(
    building: Source, pricing: Source, *, nominal_power: float = 4.0, resale: float = 0.0
) -> TimeSeries:
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
    table, prices = Table(building), Table(pricing)
    yields = table.numbers("solar_generation")
    most = max(yields)
    if most > _LARGEST_YIELD or 0.0 < most < 2.0:
        raise DataError(
            f"{table.rows[yields.index(most)].place}: solar_generation reaches {most!r}; it must "
            "be in W per kW of panels"
        )
    columns = {
        "load": table.numbers(*_LOADS),
        "pv": [nominal_power * value / 1000.0 for value in yields],
        "price": prices.numbers("electricity_pricing"),
    }
    columns["resale"] = [resale] * len(columns["price"])
    if table.has("power_outage"):
        columns["up"] = [1.0 - out for out in table.numbers("power_outage")]
    tables = dict.fromkeys(columns, table) | {"price": prices}
    return time_series_of(columns, tables, _first_hour(table), 60)


def read_citylearn_weather(weather: Source, pricing: Source, *, first_hour: int = 24) -> TimeSeries:
    """Read CityLearn's outdoor temperatures and prices, hourly, for a heated house.

    Args:
        weather: the CSV with `outdoor_dry_bulb_temperature` in °C.
        pricing: the CSV with `electricity_pricing` in money per kWh.
        first_hour: hour (1 to 24) of the first row, which the files lack; CityLearn's own data
            begin with hour 24.

    Raises:
        DataError: naming file, line and reason.
    """
    tables = {"outside": Table(weather), "price": Table(pricing)}
    columns = {
        "outside": tables["outside"].numbers(*_OUTSIDE),
        "price": tables["price"].numbers("electricity_pricing"),
    }
    return time_series_of(columns, tables, 60 * (first_hour - 1), 60)


def read_pymgrid(load: Source, pv: Source, grid: Source, *, scale: float = 1.0) -> TimeSeries:
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
    load_table, pv_table, grid_table = Table(load), Table(pv), Table(grid)
    for table in (load_table, pv_table, grid_table):
        _check_hours_counted(table)
    grid_columns = {name: (name, str(number)) for number, name in enumerate(_GRID)}
    columns = {
        "load": [scale * value for value in load_table.numbers("0", "load")],
        "pv": [scale * value for value in pv_table.numbers("0", "renewable", "pv")],
        "price": grid_table.numbers(*grid_columns["import_price"]),
        "resale": grid_table.numbers(*grid_columns["export_price"]),
        "up": grid_table.numbers(*grid_columns["grid_status"]),
    }
    tables = dict.fromkeys(columns, grid_table) | {"load": load_table, "pv": pv_table}
    return time_series_of(columns, tables, 0, 60)


def _first_hour(table: Table) -> int:
    """Return the minute of the day of the first row; check the hours (1 to 24) for gaps."""
    hours = table.numbers("hour")
    for row, hour in zip(table.rows, hours, strict=True):
        if hour not in range(1, 25):
            raise DataError(f"{row.place}: hour is {hour:g}, not one of 1 to 24")
    for row, (earlier, later) in zip(table.rows[1:], itertools.pairwise(hours), strict=True):
        if later != earlier % 24 + 1:
            raise DataError(f"{row.place}: a gap: hour {later:g} follows hour {earlier:g}")
    return 60 * (int(hours[0]) - 1)


def _check_hours_counted(table: Table) -> None:
    """Check that the unnamed first column, if there is one, counts the hours without a gap."""
    if table.header[0]:
        return
    numbers = table.numbers("")
    for row, (earlier, later) in zip(table.rows[1:], itertools.pairwise(numbers), strict=True):
        if later != earlier + 1:
            raise DataError(f"{row.place}: a gap: row {later:g} follows row {earlier:g}")
