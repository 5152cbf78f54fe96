"""Reading a building of CityLearn, with what `schema.json` in its folder says of it.

Energies are in kWh a step. Sun is in W per kW of panels, or from version 3 on in kWh a step where
the schema has `generation_mode` say so. An hour is named by its end, 1 to 24; 0 is 24.
"""

import itertools
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokengym.envs.core.errors import DataError
from tokengym.envs.energy.data.columns import FileColumns
from tokengym.envs.intake.json_stream import load_json
from tokengym.envs.intake.numbers import read_number
from tokengym.envs.intake.tables import CsvTable, Row, read_text

LOADS = ("non_shiftable_load", "equipment_electric_power")
SUN = "solar_generation"
NOMINAL_POWER = 4.0
"""kW of panels where no file says how many there are."""
_YIELD = (100.0, 1500.0)
"""W per kW between which the highest sun of a building lies."""
_PER_KW = ("per_kw", "w_per_kw", "profile")
_ABSOLUTE = ("absolute", "absolute_kwh", "kwh", "kwh_step", "energy")
"""Names that `generation_mode` has for the units of sun."""
_DEVICES = {
    "chargers": "EV charger",
    "washing_machines": "washing machine",
    "deferrable_appliances": "deferrable appliance",
}
DEVICES = ("electric_vehicle_charger_state", "wm_start_time_step", "cycle_id")
"""Columns of the files of these devices."""
_DAY = 1440


def read_building(table: CsvTable, files: FileColumns) -> None:
    """`hour`, maybe `minutes`, a load, sun, maybe `power_outage`."""
    own, where = _schema_of(table)
    _read_hours(table, files)
    power = 60.0 / files.minutes
    files.add("load", table, [power * energy for energy in table.readings(*LOADS)])
    panels = _object(own.get("pv"))
    attributes = _object(panels.get("attributes"))
    mode = str(attributes.get("generation_mode") or "").strip().lower().replace("-", "_")
    if mode and mode not in _PER_KW + _ABSOLUTE:
        known = ", ".join(_PER_KW + _ABSOLUTE)
        raise DataError(f"{table.path}: generation_mode in schema.json is {mode!r}, not {known}")
    sun = table.readings(SUN)
    if mode in _ABSOLUTE:
        files.notes.append("sun in kWh a step (schema.json)")
        files.add("pv", table, [power * energy for energy in sun])
    else:
        most = max((value for value in sun if not math.isnan(value)), default=0.0)
        if most > _YIELD[1] or (0.0 < most < _YIELD[0] and not mode):
            raise DataError(
                f"{table.rows[sun.index(most)].place}: {SUN} reaches {most!r}; it must be in W per "
                f"kW of panels, {_YIELD[0]:g} to {_YIELD[1]:g}, or schema.json in the folder must "
                "have a generation_mode"
            )
        nominal = read_number(attributes.get("nominal_power")) if panels or not own else 0.0
        if nominal is None:
            nominal, where = NOMINAL_POWER, where if not own else "schema.json leaves it open"
        files.notes.append(f"panels of {nominal:g} kW ({where})")
        files.add("pv", table, [nominal * value / 1000.0 for value in sun])
    if table.has("power_outage"):
        files.add("up", table, [1.0 - out for out in table.readings("power_outage")])
    files.lost += [
        f"{kind} {device} is not played"
        for name, kind in _DEVICES.items()
        for device in _object(own.get(name))
    ]


def _read_hours(table: CsvTable, files: FileColumns) -> None:
    hours = table.readable(Row.number, "hour")
    minutes = table.numbers("minutes") if table.has("minutes") else [0.0] * len(hours)
    for row, hour, minute in zip(table.rows, hours, minutes, strict=True):
        if hour not in range(25) or minute not in range(60):
            said = f"hour is {hour:g}, minutes {minute:g}" if minute else f"hour is {hour:g}"
            raise DataError(f"{row.place}: {said}, not one of 0 to 24 and of 0 to 59")
        files.minutes_of_day.append(int(60 * ((hour - 1) % 24) + minute))
    gaps = [(b - a) % _DAY for a, b in itertools.pairwise(files.minutes_of_day)]
    files.minutes = Counter(gaps).most_common(1)[0][0] if gaps else 60
    if not files.minutes:
        raise DataError(f"{table.rows[1].place}: steps of less than a minute are not read")
    for at, gap in enumerate(gaps, 1):
        if gap != files.minutes:
            files.breaks[at] = f"a gap: hour {hours[at]:g} follows hour {hours[at - 1]:g}"


def _schema_of(table: CsvTable) -> tuple[Mapping[str, Any], str]:
    """Return what `schema.json` says of a building, empty if nothing, and where that is from."""
    schema = Path(table.path).parent / "schema.json"
    if not schema.is_file():
        return {}, "no schema.json beside the building"
    try:
        buildings = load_json(read_text(schema))["buildings"].values()
        name = Path(table.path).name
        return next(row for row in buildings if row["energy_simulation"] == name), "schema.json"
    except (ValueError, LookupError, TypeError, AttributeError, StopIteration):
        return {}, "schema.json does not have this file"


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
