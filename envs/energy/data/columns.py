"""The columns of a user's files together, checked as they are added."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

from tokengym.envs.core.errors import DataError
from tokengym.envs.energy.data.clock import Clock
from tokengym.envs.intake.tables import CsvTable, Source

LARGEST_LOAD = 100.0
"""kW of a home: more is taken for watts, unless the grid connection is larger."""
_BOUNDS = {
    "outside": (-60.0, 60.0, "not a temperature in degrees Celsius"),
    "price": (-5.0, 5.0, "beyond 5 per kWh: is it in cents, or per MWh?"),
    "resale": (-5.0, 5.0, "beyond 5 per kWh: is it in cents, or per MWh?"),
    "carbon": (0.0, 3.0, "more than 3 kg per kWh: is it in grams?"),
}
"""By column the least and the most that is accepted, and why others are not."""
_NIGHT_DRAW = 0.05
_NIGHT_SHARE = 0.02
"""kW, and share of the highest sun, that a meter may show below 0 at night."""
_DECIMALS = {"price": 3, "resale": 3, "carbon": 4}


@dataclass
class FileColumns:
    """The columns of all files.

    Attributes:
        most_load: kW above which a load or sun is taken for a slip of units.
        zone: of times without an offset, and of the hours that are played.
        alone: whether there is one file.
        columns: by field of `TimeSeries`, its numbers; NaN where one is missing.
        tables: by field, the table they come from.
        clocks: the times of the rows, by the file that has them.
        minutes_of_day: of each row; empty until a file says it.
        minutes: length of a step.
        breaks: why the series is cut before a row, by its number.
        counts: rows read, by name of the file.
        omissions: rows left out: how many, why, and the first place.
        formats: by file, what it was taken for.
        notes: what was understood.
        unnamed: files of pymgrid with an unnamed column, so far.
        lost: data of the files that no level plays; the report begins with it.
    """

    most_load: float = LARGEST_LOAD
    zone: ZoneInfo | None = None
    alone: bool = True
    columns: dict[str, list[float]] = field(default_factory=dict)
    tables: dict[str, CsvTable] = field(default_factory=dict)
    clocks: dict[Source, Clock] = field(default_factory=dict)
    minutes_of_day: list[int] = field(default_factory=list)
    minutes: int = 60
    breaks: dict[int, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    omissions: list[tuple[int, str, str]] = field(default_factory=list)
    formats: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unnamed: int = 0
    lost: list[str] = field(default_factory=list)

    def add(self, name: str, table: CsvTable, values: Sequence[float]) -> None:
        """Add a column of a file.

        Sun just below 0, as inverters draw at night, becomes 0 and is counted.

        Raises:
            DataError: naming file, line and reason, if another file has it, or a power, price or
                temperature cannot be in its unit, or a load or sun is negative.
        """
        if name in self.columns:
            raise DataError(
                f"{table.path}: the column {name!r} is already in {self.tables[name].path}"
            )
        if name == "pv":
            most = max((value for value in values if not math.isnan(value)), default=0.0)
            low = -max(_NIGHT_DRAW, _NIGHT_SHARE * most)
            count = sum(low <= value < 0.0 for value in values)
            values = [0.0 if low <= value < 0.0 else value for value in values]
            if count:
                self.notes.append(
                    f"{count} readings of sun just below 0, as inverters draw at night, are 0"
                )
        for row, value in zip(table.rows, values, strict=True):
            reason = "" if math.isnan(value) else self._objection(name, value)
            if reason:
                raise DataError(f"{row.place}: {name} is {value!r}: {reason}")
        self.columns[name], self.tables[name] = list(values), table

    def _objection(self, name: str, value: float) -> str:
        """Return why a number is refused in a column; empty if it is accepted."""
        if name == "up":
            return "" if value in (0.0, 1.0) else "the grid is up (1) or down (0)"
        if value < 0.0 and name in ("load", "pv", "carbon"):
            return f"a {name} is never negative"
        slip = (
            f"more than {self.most_load:g} kW: is it in W? If not, give import_cap_kw, the kW of "
            "the connection, and battery_kwh and battery_kw to match"
        )
        least, most, reason = _BOUNDS.get(name, (0.0, self.most_load, slip))
        return "" if least <= value <= most else reason


def decimals(name: str) -> int:
    """Return how many decimals a column is shown with."""
    return _DECIMALS.get(name, 2)
