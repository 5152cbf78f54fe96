"""Settings: a field of a settings class declares an option, from which the rest follows.

The options of a command (`commands.py`), the check of a value, the JSON of a folder and the table
in the documentation are made from the fields. Rules across fields stay by hand.
"""

import inspect
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from types import EllipsisType, MappingProxyType
from typing import Any, ClassVar, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

from tokengym.envs.core.errors import OptionError

T = TypeVar("T")


@dataclass(frozen=True)
class Setting:
    """A field of a settings class that is an option.

    Attributes:
        name: of the field, and in JSON.
        kind: its type; `None` may be a value besides.
        default: its value by default; `...` if it is required.
        help: one line for people.
        flag: its name on the command line.
        least: smallest value.
        most: largest value.
        above: a value that it must exceed.
        read: makes the value, or each one of several, from what was typed.
        choices: the values that it may have; none if they cannot be listed.
        needs: a setting, or `name=value`, without which it does nothing; empty if none.
        group: the class that it belongs to, under whose name people find it.
    """

    name: str
    kind: Any
    default: Any
    help: str
    flag: str
    least: float | None
    most: float | None
    above: float | None
    read: Callable[[str], Any]
    choices: tuple[str, ...]
    needs: str
    group: "type[Settings]"

    @property
    def repeats(self) -> bool:
        """Whether the option may be given several times, for one value of all of them."""
        return get_origin(self.kind) in (Mapping, tuple)

    @property
    def limits(self) -> str:
        """The range of values in words; empty if there is none."""
        named = (("at least", self.least), ("at most", self.most), ("above", self.above))
        return " and ".join(f"{words} {limit:g}" for words, limit in named if limit is not None)

    @property
    def described(self) -> str:
        """Its line for people, with range and default."""
        unsaid: tuple[object, ...] = (None, "", False, (), {}, ...)
        default = self.default
        if isinstance(default, Mapping):
            default = " ".join(f"{name}={value}" for name, value in default.items())
        default = "" if default in unsaid else f"default {default}"
        other = f"with {_flag_of(self.needs)}" if self.needs else ""
        notes = ", ".join(filter(None, (self.limits, default, other)))
        return f"{self.help} ({notes})" if notes else self.help

    def value(self, typed: Any) -> Any:
        """Return the value of what was typed.

        Raises:
            OptionError: if it takes `name=value` and something else was typed.
        """
        if get_origin(self.kind) is Mapping:
            if get_args(self.kind)[1] is Any:
                return name_values(typed, self.flag)
            return {name: self.read(text) for name, text in name_texts(typed, self.flag).items()}
        if isinstance(typed, list):
            return tuple(map(self.read, typed))
        return self.read(typed) if isinstance(typed, str) else typed

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
            low = self.least is not None and value < self.least
            high = self.most is not None and value > self.most
            if low or high or (self.above is not None and value <= self.above):
                raise OptionError(f"{self.flag} must be {self.limits}, got {value}")


def option(
    default: "T | EllipsisType",
    help: str,
    *,
    flag: str = "",
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    read: Callable[[str], Any] = str,
    choices: Iterable[str] = (),
    needs: str = "",
) -> T:
    """Declare a field of a settings class; the arguments are the attributes of `Setting`.

    Without `flag` that is the field's name, without `choices` those of a literal type; with `...`
    as its default it must be named.
    """
    said: dict[str, Any] = {"help": help, "flag": flag, "least": least, "most": most}
    said |= {"above": above, "read": read, "choices": tuple(choices), "needs": needs}
    usual: dict[str, Any] = {"default_factory": dict} if default == {} else {"default": default}
    return cast("T", field(**({} if default is ... else usual), metadata=said))


class Settings:
    """Base of frozen dataclasses whose fields are options, each declared by `option`."""

    __pydantic_config__: ClassVar[Mapping[str, str]] = {"extra": "forbid"}

    def __post_init__(self) -> None:
        """Check every value by itself, and that those are on which others need.

        Raises:
            OptionError: if one is not allowed.
        """
        for name, setting in settings_of(type(self)).items():
            if (value := getattr(self, name)) is None:
                continue
            setting.check(value)
            needed, _, wanted = setting.needs.partition("=")
            if needed and value != setting.default:
                there = getattr(self, needed)
                if there != wanted if wanted else not there:
                    needs = _flag_of(setting.needs)
                    raise OptionError(f"{setting.flag} {value} is for {needs}, got {there!r}")


def _flag_of(needs: str) -> str:
    return "--" + needs.replace("_", "-").replace("=", " ")


def settings_of(group: type[Settings]) -> Mapping[str, Setting]:
    """Return the settings of a class by name, in order; fields that are no options are left out.

    Each belongs to the class that declares it.
    """
    return _settings_of(cast("Any", group))  # mypy takes no class for hashable


@cache  # a job asks some hundred times
def _settings_of(group: Any) -> Mapping[str, Setting]:
    hints = get_type_hints(group)
    settings = {}
    for item in fields(group):
        if not item.metadata:
            continue
        kind = hints[item.name]
        if type(None) in get_args(kind):
            (kind,) = set(get_args(kind)) - {type(None)}
        usual: Any = {} if item.default_factory is not MISSING else ...
        default = item.default if item.default is not MISSING else usual
        flag = item.metadata["flag"] or f"--{item.name.replace('_', '-')}"
        owner = next(kind for kind in group.__mro__ if item.name in inspect.get_annotations(kind))
        said = {"name": item.name, "kind": kind, "default": default, "flag": flag}
        if get_origin(kind) is Literal:
            said["choices"] = get_args(kind)
        settings[item.name] = Setting(**{**item.metadata, **said, "group": owner})
    return MappingProxyType(settings)


def typed_words(settings: Settings) -> list[str]:
    """Return the words of a command line that say which settings are not as by default."""
    words = []
    for name, setting in settings_of(type(settings)).items():
        value = getattr(settings, name)
        if value == setting.default:
            continue
        for one in value if isinstance(value, tuple) else (value,):
            words += [setting.flag] if one is True else [setting.flag, str(one)]
    return words


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
