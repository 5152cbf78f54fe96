"""How settings are declared, typed as options, checked, and kept as JSON."""

from tokengym.agents.settings.plain import plain, read_plain
from tokengym.agents.settings.setting import (
    Setting,
    Settings,
    name_values,
    option,
    settings_of,
    typed_words,
)
from tokengym.envs.core.errors import OptionError

__all__ = [
    "OptionError",
    "Setting",
    "Settings",
    "name_values",
    "option",
    "plain",
    "read_plain",
    "settings_of",
    "typed_words",
]
