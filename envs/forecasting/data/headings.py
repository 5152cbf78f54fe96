"""The headings and dates of a spreadsheet, as people write them: `Answer`, `Date`, `19/03/2025`.

They are brought to the names and forms of the plain format, one file at a time: whether days or
months come first in it is decided by the dates that can be read in one way only.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from functools import cached_property
from pathlib import Path

from tokengym.envs.core.errors import DataError, OptionError
from tokengym.envs.forecasting.data.record import Row, RowError
from tokengym.envs.intake.quoting import quoted
from tokengym.envs.intake.rows import read_rows

DATES = ("day-first", "month-first")
"""Values of `dates` among the columns of a file."""
SYNONYMS: Mapping[str, Sequence[str]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text("utf-8")
)
"""Other headings of each field, in lower case; `date` is both dates of a question with one."""
_TIMES = ("asked_at", "resolves_at", "closed_at", "date")
_NUMBERED = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4})(?:[ T,]+(\d{1,2}:\d\d(?::\d\d)?))?")
_ISO = re.compile(r"\d{4}-\d\d-\d\d(?=[T ])", re.ASCII)
_MONTH = re.compile(r"[^\W\d_]{3}")
_NAMED = ("%d %b %Y", "%d %B %Y", "%b %d %Y", "%B %d %Y", "%d-%b-%Y")


class Headings:
    """The fields of the rows of a file under the names of the plain format.

    Args:
        path: the file.
        columns: headings by field, and `dates` if the file leaves the order of its dates open.

    Attributes:
        taken: headings by the fields they were taken for, where the names differ.
    """

    def __init__(self, path: Path, columns: Mapping[str, str]) -> None:
        self._path = path
        self._columns = columns
        self._places: dict[tuple[str, ...], dict[str, str]] = {}
        self.taken: dict[str, str] = {}

    def plain(self, row: Row, number: int) -> Row:
        """Return a row under the names of the plain format, its dates in ISO 8601.

        Args:
            row: the row as it stands in the file.
            number: its number, from which a missing id is made.

        Raises:
            RowError: if a date may be two.
        """
        headings = self._headings(tuple(map(str, row)))
        fields = {name: row[heading] for name, heading in headings.items()}
        taken = set(headings.values())
        fields |= {name: value for name, value in row.items() if name not in {*taken, *fields}}
        for name in _TIMES:
            if name in headings:
                fields[name] = self._time(name, fields[name])
        if "date" in headings:
            day = fields.pop("date")
            # Of one date for both, the hour says nothing.
            day = day[:10] if isinstance(day, str) and _ISO.match(day) else day
            fields = {"asked_at": day, "resolves_at": day, **fields}
        return {"id": f"{self._path.name} row {number}", **fields}

    def notes(self) -> Iterator[str]:
        """Yield how the headings were understood, a sentence a file."""
        if self.taken:
            pairs = ", ".join(f"{heading} as {name}" for name, heading in self.taken.items())
            yield f"{self._path.name}: columns read as others: {pairs}"
        if "date" in self.taken:
            yield (
                f"{self._path.name}: {self.taken['date']} counts as the day on which a question was"
                " asked and answered, but where another column says it"
            )

    def _headings(self, names: tuple[str, ...]) -> dict[str, str]:
        """Return the heading of each field that a row with these headings has."""
        if names in self._places:
            return self._places[names]
        by_name = {"_".join(name.strip().lower().split()): name for name in reversed(names)}
        found = {}
        for field, others in SYNONYMS.items():
            if field in self._columns:
                found[field] = self._named(field, names)
            elif field in names:
                found[field] = field
            elif heading := next((by_name[n] for n in (field, *others) if n in by_name), None):
                found[field] = heading
        if "question" not in found or len(set(found.values())) < len(found):
            found = {name: name for name in SYNONYMS if name in names}
        self.taken |= {field: name for field, name in found.items() if name != field}
        if "date" in found:
            self.taken["date"] = found["date"]
        self._places[names] = found
        return found

    def _named(self, field: str, names: tuple[str, ...]) -> str:
        heading = self._columns[field]
        if heading not in names:
            raise RowError(f"there is no column {heading!r} for {field!r}, only {list(names)}")
        return heading

    def _time(self, field: str, value: object) -> object:
        text = value.strip() if isinstance(value, str) else ""
        if numbered := _NUMBERED.fullmatch(text):
            first, sign, second, year, clock = numbered.groups(default="")
            return _iso(text, first, second, year, clock, self._first(field, text, sign))
        words = " ".join(text.replace(",", " ").replace(".", " ").split())
        for form in _NAMED if _MONTH.search(words) else ():
            try:
                return datetime.strptime(words, form).date().isoformat()
            except ValueError:
                continue
        return value

    def _first(self, field: str, text: str, sign: str) -> str:
        """Return whether days or months come first in the numbered dates of the file."""
        if sign == ".":
            return DATES[0]
        order = self._columns.get("dates") or self._order
        if not order:
            raise RowError(
                f"{field!r} is {text}: no date of the file says whether the day or the month comes "
                "first; add dates=day-first or dates=month-first to --columns"
            )
        return order

    @cached_property
    def _order(self) -> str:
        """The order that the dates of the file decide; empty if none does.

        Raises:
            DataError: if one can only be read day first, and another only month first.
        """
        seen: dict[str, str] = {}
        for result in read_rows(self._path):
            row = result.row or {}
            headings = self._headings(tuple(map(str, row)))
            for heading in (headings[name] for name in _TIMES if name in headings):
                text = str(row[heading]).strip()
                numbered = _NUMBERED.fullmatch(text)
                if numbered and numbered[2] != "." and max(int(numbered[1]), int(numbered[3])) > 12:
                    seen.setdefault(DATES[int(numbered[3]) > 12], text)
        if len(seen) > 1:
            day, month = (quoted(seen[order]) for order in DATES)
            raise DataError(
                f"{self._path}: {day} has the day first and {month} the month: write the dates in "
                "one order, or as 2025-03-19"
            )
        return next(iter(seen), "")


def read_columns(columns: str | Mapping[str, str] | None) -> dict[str, str]:
    """Return the headings of fields, given as `question=Question,outcome=Answer` or a mapping.

    Raises:
        OptionError: if one is no pair, or of no field.
    """
    if columns is None:
        return {}
    if isinstance(columns, str):
        parts = [part.partition("=") for part in columns.split(",")]
        pairs = {field.strip(): heading.strip() for field, _, heading in parts}
    else:
        pairs = dict(columns)
    for field, heading in pairs.items():
        if field not in SYNONYMS and field != "dates":
            raise OptionError(f"columns has no field {field!r}; there are {[*SYNONYMS, 'dates']}")
        if not heading:
            raise OptionError(f"columns needs FIELD=HEADING, got {field!r} without a heading")
    if pairs.get("dates", DATES[0]) not in DATES:
        raise OptionError(f"dates of columns must be one of {DATES}, got {pairs['dates']!r}")
    return pairs


def _iso(text: str, first: str, second: str, year: str, clock: str, order: str) -> str:
    day, month = (first, second) if order == DATES[0] else (second, first)
    try:
        found = date(int(year), int(month), int(day)).isoformat()
    except ValueError as error:
        raise RowError(f"{text!r} is no date, {order}") from error
    return f"{found}T{clock if clock[2] == ':' else f'0{clock}'}" if clock else found
