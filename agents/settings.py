"""Options said once: a field of a settings class, from which all that concerns it follows.

The command line (`agents/cli/options.py`), the check of a value, the JSON of a folder and the
table in the documentation are made from the fields. Rules across fields stay by hand.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from tokengym.envs.core.errors import OptionError

T = TypeVar("T")


@dataclass(frozen=True)
class Opt:
    """What there is to say about a setting beside its name, type and default.

    Attributes:
        help: one line for people.
        least: smallest value.
        most: largest value.
        above: a value that it must exceed.
        flag: its name on the command line, where that is not the field's.
        read: makes the value, or each one of several, from what was typed.
    """

    help: str
    least: float | None = None
    most: float | None = None
    above: float | None = None
    flag: str = ""
    read: Callable[[str], str] | None = None

    @property
    def limits(self) -> str:
        """The range of values in words; empty if there is none."""
        named = (("at least", self.least), ("at most", self.most), ("above", self.above))
        return " and ".join(f"{words} {limit:g}" for words, limit in named if limit is not None)

    def allows(self, value: float) -> bool:
        """Return whether a value is in the range."""
        low = (self.least is None or value >= self.least) and (
            self.above is None or value > self.above
        )
        return low and (self.most is None or value <= self.most)


@dataclass(frozen=True)
class Setting:
    """A field of a settings class that is an option.

    Attributes:
        name: of the field, and in JSON.
        flag: on the command line.
        kind: its type; `None` may be a value besides.
        default: its value if nothing is said.
        opt: what else there is to say.
    """

    name: str
    flag: str
    kind: Any
    default: Any
    opt: Opt

    @property
    def choices(self) -> tuple[str, ...]:
        """The values it may have; none if they cannot be listed."""
        return get_args(self.kind) if get_origin(self.kind) is Literal else ()

    @property
    def help(self) -> str:
        """Its line for people, with range and default."""
        plain = self.default is None or self.default in ("", False, (), {})
        default = "" if plain or self.default is MISSING else f"default {self.default}"
        notes = ", ".join(filter(None, (self.opt.limits, default)))
        return f"{self.opt.help} ({notes})" if notes else self.opt.help

    def read(self, typed: Any) -> Any:
        """Return the value of what was typed.

        Raises:
            OptionError: if it takes `name=value` and something else was typed.
        """
        one = self.opt.read or str
        if get_origin(self.kind) is Mapping:
            if get_args(self.kind)[1] is Any:
                return name_values(typed, self.flag)
            return {name: one(text) for name, text in name_texts(typed, self.flag).items()}
        if isinstance(typed, list):
            return tuple(map(one, typed))
        return one(typed) if isinstance(typed, str) else typed

    def check(self, value: Any) -> None:
        """Refuse a value that is not allowed.

        Raises:
            OptionError: naming the flag, the rule and the value.
        """
        if self.choices and value not in self.choices:
            raise OptionError(f"{self.flag} must be one of {list(self.choices)}, got {value!r}")
        if isinstance(value, int | float):
            if not math.isfinite(value):
                raise OptionError(f"{self.flag} must be a finite number, got {value}")
            if not self.opt.allows(value):
                raise OptionError(f"{self.flag} must be {self.opt.limits}, got {value}")


class Settings:
    """Base of frozen dataclasses whose fields are options: `Annotated[type, Opt(…)]`."""

    def __post_init__(self) -> None:
        """Check every value by itself.

        Raises:
            OptionError: if one is not allowed.
        """
        for setting in settings_of(type(self)).values():
            value = getattr(self, setting.name)
            if value is not None:
                setting.check(value)


def settings_of(group: type) -> Mapping[str, Setting]:
    """Return the settings of a class by name, in order."""
    hints = get_type_hints(group, include_extras=True)
    found = {}
    for item in fields(group):
        hint = hints[item.name]
        if get_origin(hint) is not Annotated:
            continue
        kind, opt = get_args(hint)
        kinds = [part for part in get_args(kind) if part is not type(None)]
        if type(None) in get_args(kind):
            (kind,) = kinds
        default = item.default
        if item.default_factory is not MISSING:
            default = item.default_factory()
        flag = opt.flag or f"--{item.name.replace('_', '-')}"
        found[item.name] = Setting(item.name, flag, kind, default, opt)
    return found


def read_settings(kind: type[T], data: Mapping[str, Any]) -> T:
    """Read settings from their JSON.

    Raises:
        OptionError: if a field is unknown, missing, of a wrong type or not allowed.
    """
    from pydantic import TypeAdapter, ValidationError

    unknown = sorted(set(data) - {item.name for item in fields(kind)})  # type: ignore[arg-type]
    if unknown:
        raise OptionError(f"unknown settings {unknown}")
    try:
        return TypeAdapter(kind).validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise OptionError(f"{where}: {first['msg']}" if where else first["msg"]) from error


def name_values(pairs: Sequence[str], flag: str) -> dict[str, Any]:
    """Read pairs such as `label=expected` or `flat_floor=true`; values that parse as JSON are JSON.

    Raises:
        OptionError: if a pair has no name or no `=`.
    """
    read: dict[str, Any] = {}
    for name, value in name_texts(pairs, flag).items():
        try:
            read[name] = json.loads(value)
        except ValueError:
            read[name] = value
    return read


def name_texts(pairs: Sequence[str], flag: str) -> dict[str, str]:
    """Read pairs such as `challenger=null` whose values are text.

    Raises:
        OptionError: if a pair has no name or no `=`.
    """
    read: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise OptionError(f"{flag} takes name=value, got {pair!r}")
        read[name] = value
    return read
