"""Reading a user's own days: a plain CSV, CityLearn's files, pymgrid's files, files with times.

Every refusal names file, line and reason. Sources of the formats: CityLearn (buildings, pricing,
weather, carbon intensity; https://github.com/intelligent-environments-lab/CityLearn), pymgrid
(load, sun, grid, CO2; https://github.com/Total-RD/pymgrid), PVWatts (https://pvwatts.nrel.gov) and
the Transparency Platform of ENTSO-E (https://transparency.entsoe.eu).
"""

import itertools
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from zoneinfo import ZoneInfo

from tokengym.envs.core.errors import DataError
from tokengym.envs.energy.data import citylearn, joining
from tokengym.envs.energy.data.citylearn import NOMINAL_POWER
from tokengym.envs.energy.data.clock import read_clock
from tokengym.envs.energy.data.columns import LARGEST_LOAD, FileColumns
from tokengym.envs.energy.data.time_series import TimeSeries, time_series_of
from tokengym.envs.intake.tables import CsvTable, Source

_PLAIN = {
    "load": "load_kw",
    "pv": "pv_kw",
    "price": "price_import",
    "resale": "price_export",
    "up": "grid_up",
    "carbon": "carbon_kg_per_kwh",
}
_OPTIONAL = ("carbon",)
_OUTSIDE = ("outdoor_dry_bulb_temperature", "outdoor_drybulb_temperature")
_CARBON = ("kg_co2/kwh", "carbon_intensity", "co2_ciso_i_kwh", "co2_duk_i_kwh")
_FACILITY = "electricity:facility"
_ILLUMINANCE = "gh_illum_(lx)"
_GRID = ("import_price", "export_price", "co2_per_kwh", "grid_status")
_ABOVE = "month"
"""The first column of PVWatts, above whose header stands what its numbers are of."""
_DAY = 1440
_WEATHER_FROM = _DAY - 60
"""Minute of the day at which CityLearn's weather begins."""
_DEMAND = re.compile(r"demand|load|consumption|heating|cooling|dhw|hot_water|charging|heat_pump")
_NO_DEMAND = re.compile(r"setpoint|temperature|difference|predict|forecast|mode|efficiency|status")
"""Names of columns with demand, and of those that have such a word in them and none."""
_KNOWN = (
    "one plain CSV with load_kw and pv_kw; files to join by time (load_kw, pv_kw, PVWatts, prices "
    "of ENTSO-E); CityLearn's building, maybe with pricing and carbon intensity, or for a house "
    "its weather, maybe with pricing; or pymgrid's load and sun, maybe with grid and CO2"
)
_Reader = Callable[[CsvTable, FileColumns], None]


def read(
    paths: Source | Sequence[Source],
    *,
    zone: ZoneInfo | None = None,
    most_load: float = LARGEST_LOAD,
) -> TimeSeries:
    """Read files in any of the formats, in any order; their columns determine the format.

    Args:
        paths: one plain CSV; several with times, such as a load, PVWatts and ENTSO-E's prices;
            CityLearn's building or weather, maybe with pricing and carbon intensity; or pymgrid's
            load and sun, maybe with grid and CO2. A building's panels are those that `schema.json`
            in its folder has, else of 4 kW.
        zone: the time zone of the home: of times without an offset, and of the hours played.
        most_load: kW above which a load or sun is taken for a slip of units.

    Raises:
        DataError: if no reader fits or the chosen one refuses, naming file, line and reason.
    """
    sources = [paths] if isinstance(paths, str | Path) else list(paths)
    if not sources:
        raise DataError(f"data are {_KNOWN}; got no file")
    files = FileColumns(most_load, zone, alone=len(sources) == 1)
    for source in sources:
        table = CsvTable(source, _ABOVE)
        name = Path(source).name
        files.counts[name] = len(table.rows)
        kind, reader = _kind_of(table, files)
        files.formats.append(f"{name}: {kind}")
        reader(table, files)
        unused = table.name_unused()
        if unused:
            files.notes.append(f"{name}: columns that are not used: {unused}")
        files.notes += [f"{name}: {note}" for note in table.notes]
        files.omissions += table.dropped
        if files.tables.get("load") is table:
            _note_uncounted(table, files)
    if "load" in files.columns and "pv" not in files.columns:
        raise DataError(f"{files.tables['load'].path}: a load needs its sun; data are {_KNOWN}")
    if not {"load", "outside"} & set(files.columns):
        raise DataError(f"data are {_KNOWN}; got {files.formats}")
    _align(files)
    if "price" not in files.columns:
        files.notes.append("no prices: each Task has a tariff drawn as at the levels without data")
    elif "load" in files.columns and "resale" not in files.columns:
        files.notes.append("no price of sales: what is sold earns nothing")
    return time_series_of(files)


def _align(files: FileColumns) -> None:
    """Join what has times; rows without any are hours, weather's from one o'clock on."""
    if files.clocks:
        joining.join(files)
    elif not files.minutes_of_day:
        rows = max(map(len, files.columns.values()))
        start = _WEATHER_FROM if "outside" in files.columns else 0
        files.minutes_of_day = [(start + 60 * row) % _DAY for row in range(rows)]


def recognises(path: Source) -> bool:
    """Return whether a file has the columns of one of the formats.

    Raises:
        DataError: if it is no table.
    """
    table = CsvTable(path, _ABOVE)
    try:
        _kind_of(table, FileColumns())
    except DataError:
        return False
    return True


def _kind_of(table: CsvTable, files: FileColumns) -> tuple[str, _Reader]:
    """Return the name of the format that a file has by its columns, and its reader."""
    if table.has(*citylearn.LOADS) and table.has(citylearn.SUN):
        return "CityLearn building", citylearn.read_building
    if table.has(*citylearn.DEVICES):
        return "CityLearn, a device that is not played", _ignore
    if table.has(joining.PVWATTS):
        return "PVWatts", joining.read_pvwatts
    if joining.find_prices(table):
        return "ENTSO-E prices", joining.read_prices
    if table.has("electricity_pricing"):
        return "CityLearn pricing", _column("price", "electricity_pricing")
    if table.has(*_OUTSIDE):
        return "CityLearn weather", _column("outside", *_OUTSIDE)
    if kind := _pymgrid(table, files):
        return kind
    if len(table.header) == 1 and table.has(*_CARBON):
        return "carbon intensity", _column("carbon", *_CARBON)
    if table.has("time", *_PLAIN.values()):
        return "plain", _read_plain
    raise DataError(f"{table.path}: the columns {table.header} are of no format: data are {_KNOWN}")


def _pymgrid(table: CsvTable, files: FileColumns) -> tuple[str, _Reader] | None:
    """Return which of pymgrid's files it is; `None` if none."""
    if table.has(_GRID[0]) or table.header == ["", "0", "1", "2", "3"]:
        return "pymgrid grid", _read_grid
    if table.has(_FACILITY):
        return "pymgrid load", _read_load
    if table.has(_ILLUMINANCE):
        return "pymgrid illuminance", _read_sun
    if table.header in (["", "0"], ["", "load"], ["", "renewable"], ["", "pv"]):
        files.unnamed += 1
        is_load = "load" in table.header or (table.header[1] == "0" and files.unnamed == 1)
        return ("pymgrid load", _read_load) if is_load else ("pymgrid sun", _read_sun)
    return None


def _read_plain(table: CsvTable, files: FileColumns) -> None:
    """`time` and the columns of `_PLAIN`: all but the last in a file that comes alone."""
    clock = files.clocks[table.path] = read_clock(table, files.zone)
    files.minutes = clock.minutes
    for name, title in _PLAIN.items():
        if table.has(title) or (files.alone and name not in _OPTIONAL):
            files.add(name, table, table.readings(title))


def _note_uncounted(table: CsvTable, files: FileColumns) -> None:
    """Note how much demand the columns of a load's file hold that are not part of the load."""
    hours = files.minutes / 60.0
    # CityLearn has energies, others have powers.
    length = 1.0 if table.has(citylearn.SUN) else hours
    others = {
        name: length * sum(value for row in table.rows if (value := row.find_number(name)) > 0.0)
        for name in table.header
        if name not in table.asked and _DEMAND.search(name) and not _NO_DEMAND.search(name)
    }
    others = {name: total for name, total in others.items() if total > 0.0}
    if others:
        lost = sum(others.values())
        total = lost + hours * sum(filter(math.isfinite, files.columns["load"]))
        each = ", ".join(f"{name} {amount:,.0f}" for name, amount in others.items())
        said = f"{lost:,.0f} of {total:,.0f} kWh of demand are not counted: {each}"
        files.lost.insert(0, said)


def _ignore(table: CsvTable, _: FileColumns) -> None:
    table.asked.update(table.header)


def _column(name: str, *titles: str) -> _Reader:
    """Return the reader of a file whose only relevant column has one of `titles`."""
    return lambda table, files: files.add(name, table, table.readings(*titles))


def _read_load(table: CsvTable, files: FileColumns) -> None:
    """A load in kW, hourly from midnight; pymgrid's scenarios store it negative."""
    values = table.readings("0", "load", _FACILITY)
    if max((value for value in values if not math.isnan(value)), default=1.0) <= 0.0:
        values = [-value for value in values]
        files.notes.append("the load is negative in the file, as pymgrid's scenarios store it")
    files.add("load", table, values)
    _count_hours(table, files)


def _read_sun(table: CsvTable, files: FileColumns) -> None:
    """Sun in kW, or illuminance in lux, whose highest value is the panels', as in pymgrid."""
    values = table.readings("0", "renewable", "pv", _ILLUMINANCE)
    if table.has(_ILLUMINANCE):
        most = max((value for value in values if not math.isnan(value)), default=0.0)
        if most <= 0.0:
            raise DataError(f"{table.path}: {_ILLUMINANCE} is never above 0")
        values = [NOMINAL_POWER * value / most for value in values]
        files.notes.append(
            f"illuminance is scaled to panels of {NOMINAL_POWER:g} kW at its highest value"
        )
    files.add("pv", table, values)
    _count_hours(table, files)


def _read_grid(table: CsvTable, files: FileColumns) -> None:
    """`import_price, export_price, co2_per_kwh, grid_status`, by name or in this order."""
    titles = {name: (name, str(number)) for number, name in enumerate(_GRID)}
    names = zip(("price", "resale", "carbon", "up"), _GRID, strict=True)
    for name, title in names:
        if name != "carbon" or table.has(*titles[title]):
            files.add(name, table, table.readings(*titles[title]))
    _count_hours(table, files)


def _count_hours(table: CsvTable, files: FileColumns) -> None:
    """Take the hours from the unnamed first column, if there is one; a missing hour is a gap."""
    numbers = table.numbers("") if not table.header[0] else []
    numbers = numbers or [float(row) for row in range(len(table.rows))]
    minutes_of_day = [int(60 * number) % _DAY for number in numbers]
    if files.minutes_of_day and files.minutes_of_day != minutes_of_day:
        raise DataError(
            f"{table.path}: its rows are of other hours than those of the file before it; both "
            "must have as many rows and the same hours"
        )
    files.minutes_of_day = minutes_of_day
    for at, (earlier, later) in enumerate(itertools.pairwise(numbers), 1):
        if later != earlier + 1:
            if later <= earlier:
                place = table.rows[at].place
                raise DataError(f"{place}: row {later:g} follows row {earlier:g}")
            files.breaks[at] = f"a gap: row {later:g} follows row {earlier:g}"
