"""Reading a user's own days: a plain CSV, CityLearn's files, pymgrid's files.

Every refusal names file, line and reason. Sources of the formats: CityLearn (buildings, pricing,
weather, carbon intensity; https://github.com/intelligent-environments-lab/CityLearn) and pymgrid
(load, sun, grid, CO2; https://github.com/Total-RD/pymgrid).
"""

import itertools
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tokengym.envs.core.errors import DataError
from tokengym.envs.energy.data.clock import read_clock
from tokengym.envs.energy.data.time_series import LARGEST_LOAD, TimeSeries, time_series_of
from tokengym.envs.intake.tables import CsvTable, Row, Source, read_text

_PLAIN = ("load_kw", "pv_kw", "price_import", "price_export", "grid_up")
_FIELDS = ("load", "pv", "price", "resale", "up")
_PLAIN_CARBON = "carbon_kg_per_kwh"
_LOADS = ("non_shiftable_load", "equipment_electric_power")
_OUTSIDE = ("outdoor_dry_bulb_temperature", "outdoor_drybulb_temperature")
_CARBON = ("kg_co2/kwh", "carbon_intensity", "co2_ciso_i_kwh", "co2_duk_i_kwh")
_FACILITY = "electricity:facility"
_ILLUMINANCE = "gh_illum_(lx)"
_GRID = ("import_price", "export_price", "co2_per_kwh", "grid_status")
_NOMINAL_POWER = 4.0
"""kW of panels where no file says how many there are."""
_LARGEST_YIELD = 1500.0
_DAY = 1440
_DEMAND = re.compile(r"demand|load|consumption|heating|cooling|dhw|hot_water|charging|heat_pump")
_NO_DEMAND = re.compile(r"setpoint|temperature|difference|predict|forecast|mode|efficiency|status")
"""Names of columns with demand, and of those that have such a word in them and none."""
_MISSING = {"", "nan", "na", "n/a", "null", "none", "-"}
_KNOWN = (
    "one plain CSV with load_kw and pv_kw; CityLearn's building, maybe with its pricing and carbon "
    "intensity, or for a house its weather, maybe with pricing; or pymgrid's load and sun, maybe "
    "with grid and CO2"
)


@dataclass
class _Files:
    """The columns of all files together.

    Attributes:
        columns: by field of `TimeSeries`, its numbers; NaN where one is missing.
        tables: by field, the table they come from.
        minutes_of_day: of each row; empty until a file says it.
        minutes: length of a step.
        breaks: why the series is cut before a row, by its number.
        formats: by file, what it was taken for.
        notes: what was understood.
        unnamed: files of pymgrid with an unnamed column, so far.
        uncounted: the demand beside the load that a file has and no level plays.
    """

    columns: dict[str, list[float]] = field(default_factory=dict)
    tables: dict[str, CsvTable] = field(default_factory=dict)
    minutes_of_day: list[int] = field(default_factory=list)
    minutes: int = 60
    breaks: dict[int, str] = field(default_factory=dict)
    formats: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unnamed: int = 0
    uncounted: str = ""

    def add(self, name: str, table: CsvTable, values: list[float]) -> None:
        if name in self.columns:
            raise DataError(
                f"{table.path}: the column {name!r} is already in {self.tables[name].path}"
            )
        self.columns[name], self.tables[name] = values, table


def read(
    paths: Source | Sequence[Source], *, first_hour: int = 24, most_load: float = LARGEST_LOAD
) -> TimeSeries:
    """Read files in any of the formats, in any order; their columns determine the format.

    Args:
        paths: one plain CSV; CityLearn's building or weather, maybe with pricing and carbon
            intensity; or pymgrid's load and sun, maybe with grid and CO2. A building's panels are
            those that `schema.json` in its folder has, else of 4 kW.
        first_hour: hour (1 to 24) of the first row where only files without hours are given, as
            CityLearn's weather is; its own data begin with hour 24.
        most_load: kW above which a load or sun is taken for a slip of units.

    Raises:
        DataError: if no reader fits or the chosen one refuses, naming file, line and reason.
    """
    sources = [paths] if isinstance(paths, str | Path) else list(paths)
    if not sources:
        raise DataError(f"data are {_KNOWN}; got no file")
    files = _Files()
    for source in sources:
        table = CsvTable(source)
        kind, reader = _kind_of(table, files)
        files.formats.append((str(source), kind))
        reader(table, files)
        unused = table.name_unused()
        if unused:
            files.notes.append(f"{Path(source).name}: columns that are not used: {unused}")
        if "load" in files.columns and files.tables["load"] is table:
            files.uncounted = _describe_uncounted(table, files)
    if "load" in files.columns and "pv" not in files.columns:
        raise DataError(f"{files.tables['load'].path}: a load needs its sun; data are {_KNOWN}")
    if not {"load", "outside"} & set(files.columns):
        raise DataError(f"data are {_KNOWN}; got {[kind for _, kind in files.formats]}")
    rows = max(len(values) for values in files.columns.values())
    if not files.minutes_of_day:
        start = 0 if "outside" not in files.columns else 60 * (first_hour - 1)
        files.minutes_of_day = [(start + 60 * row) % _DAY for row in range(rows)]
    if "price" not in files.columns:
        files.notes.append("no prices: each Task has a tariff drawn as at the levels without data")
    elif "load" in files.columns and "resale" not in files.columns:
        files.notes.append("no price of sales: what is sold earns nothing")
    series = time_series_of(
        files.columns,
        files.tables,
        files.minutes_of_day,
        files.minutes,
        files.breaks,
        most_load=most_load,
    )
    formats = [f"{Path(path).name}: {kind}" for path, kind in files.formats]
    lost = [files.uncounted] if files.uncounted else []
    notes = (*lost, *formats, *files.notes, *series.report.notes)
    report = replace(series.report, notes=notes)
    return replace(series, report=report)


def recognises(path: Source) -> bool:
    """Return whether a file has the columns of one of the formats.

    Raises:
        DataError: if it is no table.
    """
    table = CsvTable(path)
    try:
        _kind_of(table, _Files())
    except DataError:
        return False
    return True


def _kind_of(table: CsvTable, files: _Files) -> tuple[str, Callable[[CsvTable, _Files], None]]:
    """Return the name of the format that a file has by its columns, and its reader."""
    if table.has(*_LOADS) and table.has("solar_generation"):
        return "CityLearn building", _read_building
    if table.has("electricity_pricing"):
        return "CityLearn pricing", _column("price", "electricity_pricing")
    if table.has(*_OUTSIDE):
        return "CityLearn weather", _column("outside", *_OUTSIDE)
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
    if len(table.header) == 1 and table.has(*_CARBON):
        return "carbon intensity", _column("carbon", *_CARBON)
    if table.has("time", *_PLAIN):
        return "plain", _read_plain
    raise DataError(f"{table.path}: the columns {table.header} are of no format: data are {_KNOWN}")


def _read_plain(table: CsvTable, files: _Files) -> None:
    """`time,load_kw,pv_kw,price_import,price_export,grid_up`, optionally `carbon_kg_per_kwh`."""
    for name, title in zip(_FIELDS, _PLAIN, strict=True):
        files.add(name, table, _numbers(table, title))
    if table.has(_PLAIN_CARBON):
        files.add("carbon", table, _numbers(table, _PLAIN_CARBON))
    files.minutes_of_day, files.minutes, files.breaks = read_clock(table)


def _read_building(table: CsvTable, files: _Files) -> None:
    """`hour` (1 to 24), a load in kWh, sun in W per kW of panels, optionally `power_outage`."""
    yields = _numbers(table, "solar_generation")
    most = max((value for value in yields if not math.isnan(value)), default=0.0)
    if most > _LARGEST_YIELD or 0.0 < most < 2.0:
        raise DataError(
            f"{table.rows[yields.index(most)].place}: solar_generation reaches {most!r}; it must "
            "be in W per kW of panels"
        )
    panels, where = _panels_of(table)
    files.notes.append(f"panels of {panels:g} kW ({where})")
    files.add("load", table, _numbers(table, *_LOADS))
    files.add("pv", table, [panels * value / 1000.0 for value in yields])
    if table.has("power_outage"):
        files.add("up", table, [1.0 - out for out in _numbers(table, "power_outage")])
    hours = table.numbers("hour")
    for row, hour in zip(table.rows, hours, strict=True):
        if hour not in range(1, 25):
            raise DataError(f"{row.place}: hour is {hour:g}, not one of 1 to 24")
    for at, (earlier, later) in enumerate(itertools.pairwise(hours), 1):
        if later != earlier % 24 + 1:
            files.breaks[at] = f"a gap: hour {later:g} follows hour {earlier:g}"
    files.minutes_of_day = [60 * (int(hour) - 1) for hour in hours]


def _describe_uncounted(table: CsvTable, files: _Files) -> str:
    """Return how much demand the columns hold that are not part of the load; empty if none."""
    hours = files.minutes / 60.0
    others = {
        name: hours * sum(value for row in table.rows if (value := row.find_number(name)) > 0.0)
        for name in table.header
        if name not in table.asked and _DEMAND.search(name) and not _NO_DEMAND.search(name)
    }
    others = {name: total for name, total in others.items() if total > 0.0}
    if not others:
        return ""
    lost = sum(others.values())
    total = lost + hours * sum(filter(math.isfinite, files.columns["load"]))
    each = ", ".join(f"{name} {amount:,.0f}" for name, amount in others.items())
    return f"{lost:,.0f} of {total:,.0f} kWh of demand are not counted: {each}"


def _panels_of(table: CsvTable) -> tuple[float, str]:
    """Return the kW of a building's panels, and where they are from."""
    schema = Path(table.path).parent / "schema.json"
    if schema.is_file():
        try:
            buildings = json.loads(read_text(schema))["buildings"].values()
            name = Path(table.path).name
            own = next(row for row in buildings if row["energy_simulation"] == name)
            panels = own.get("pv")
            power = float(panels["attributes"]["nominal_power"]) if panels else 0.0
        except (ValueError, LookupError, TypeError, AttributeError, StopIteration):
            return _NOMINAL_POWER, "schema.json does not have this file"
        return power, "schema.json"
    return _NOMINAL_POWER, "no schema.json beside the building"


def _column(name: str, *titles: str) -> Callable[[CsvTable, _Files], None]:
    """Return the reader of a file of which one column counts, under one of `titles`."""
    return lambda table, files: files.add(name, table, _numbers(table, *titles))


def _read_load(table: CsvTable, files: _Files) -> None:
    """A load in kW, hourly from midnight; pymgrid's scenarios store it negative."""
    values = _numbers(table, "0", "load", _FACILITY)
    if max((value for value in values if not math.isnan(value)), default=1.0) <= 0.0:
        values = [-value for value in values]
        files.notes.append("the load is negative in the file, as pymgrid's scenarios store it")
    files.add("load", table, values)
    _count_hours(table, files)


def _read_sun(table: CsvTable, files: _Files) -> None:
    """Sun in kW, or illuminance in lux, whose highest value is the panels', as in pymgrid."""
    values = _numbers(table, "0", "renewable", "pv", _ILLUMINANCE)
    if table.has(_ILLUMINANCE):
        most = max((value for value in values if not math.isnan(value)), default=0.0)
        if most <= 0.0:
            raise DataError(f"{table.path}: {_ILLUMINANCE} is never above 0")
        values = [_NOMINAL_POWER * value / most for value in values]
        files.notes.append(
            f"illuminance is scaled to panels of {_NOMINAL_POWER:g} kW at its highest value"
        )
    files.add("pv", table, values)
    _count_hours(table, files)


def _read_grid(table: CsvTable, files: _Files) -> None:
    """`import_price, export_price, co2_per_kwh, grid_status`, by name or in this order."""
    titles = {name: (name, str(number)) for number, name in enumerate(_GRID)}
    names = zip(("price", "resale", "carbon", "up"), _GRID, strict=True)
    for name, title in names:
        if name != "carbon" or table.has(*titles[title]):
            files.add(name, table, _numbers(table, *titles[title]))
    _count_hours(table, files)


def _count_hours(table: CsvTable, files: _Files) -> None:
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


def _numbers(table: CsvTable, *names: str) -> list[float]:
    """Return the first column named one of `names` as numbers, NaN where one is missing."""
    name = table.require(*names)
    return [_number(row, name) for row in table.rows]


def _number(row: Row, name: str) -> float:
    return math.nan if row.cells[name].lower() in _MISSING else row.number(name)
