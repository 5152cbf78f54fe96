"""A user's own devices, which replace the drawn ones in every home, checked."""

import math
from collections.abc import Mapping, Sequence
from zoneinfo import ZoneInfo, available_timezones

from tokengym.envs.core.errors import OptionError
from tokengym.envs.energy.data import TimeSeries, read, resample_to
from tokengym.envs.energy.data.columns import LARGEST_LOAD
from tokengym.envs.energy.levels import EnergyLevel
from tokengym.envs.intake.tables import Source

_BOUNDS = {
    "battery_kwh": (0.1, 1e6),
    "battery_kw": (0.1, 1e6),
    "import_cap_kw": (0.1, 1e6),
    "export_cap_kw": (0.0, 1e6),
    "pv_scale": (0.0, 1e6),
}
_LOAD_OF_CONNECTION = 10.0
"""A load this many times the connection is taken for a slip of units."""


def check_devices(level: EnergyLevel, **options: float | None) -> Mapping[str, float]:
    """Return the options that are not `None`, by name.

    Raises:
        OptionError: if a value is no number in its range, or the level has no such device.
    """
    devices = {}
    for name, value in options.items():
        if value is None:
            continue
        if level.days:
            raise OptionError(f"{name} is for levels with a battery at home; this one has none")
        devices[name] = check_number(name, value, *_BOUNDS[name])
    return devices


def check_number(name: str, value: float, least: float = 0.0, most: float = math.inf) -> float:
    """Return an option's value as a number in [least, most].

    Raises:
        OptionError: if it is none.
    """
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not least <= value <= most:
        upper = "" if math.isinf(most) else f" and at most {most:g}"
        raise OptionError(f"{name} must be a number of at least {least:g}{upper}, got {value!r}")
    return float(value)


def series_from(
    data: TimeSeries | Source | Sequence[Source],
    level: EnergyLevel,
    devices: Mapping[str, float],
    resampled: bool,
    zone: str | None,
) -> TimeSeries:
    """Return a user's days in the level's steps.

    Raises:
        OptionError: if `zone` is no time zone.
        DataError: as `read` and `resample_to` do.
    """
    if zone is not None and zone not in available_timezones():
        raise OptionError(f"zone must be a name of the time zone database, got {zone!r}")
    if isinstance(data, TimeSeries):
        series = data
    else:
        connection = devices.get("import_cap_kw", 0.0)
        most = max(LARGEST_LOAD, _LOAD_OF_CONNECTION * connection)
        series = read(data, zone=None if zone is None else ZoneInfo(zone), most_load=most)
    return resample_to(series, level.minutes) if resampled else series
