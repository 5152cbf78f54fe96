"""Default settings of a job: the sizes of a world and the habits of a model, from `presets.toml`.

`train` and the other training commands, `evaluate` and `ties` read them here.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from tokengym.agents.settings import Setting
from tokengym.agents.toy_model import MODEL_DIR, TOY_MODEL
from tokengym.agents.training.config import JobConfig, TrainConfig
from tokengym.envs.core.errors import OptionError
from tokengym.envs.registry import make_world, spec
from tokengym.envs.train_split import training_options

C = TypeVar("C", bound=JobConfig)

_TABLES: Mapping[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
_OF_ROLES = {"role", "opponents", "self_play"}
_BY_WORLD = {*_TABLES["pretrained"]}.union(*_TABLES["toy"].values())
"""Settings whose defaults are a world's."""


def is_toy(model: str) -> bool:
    """Return whether a name or a directory is that of the toy model."""
    return model == TOY_MODEL or Path(model).expanduser().resolve() == MODEL_DIR.resolve()


def without_world(setting: Setting) -> Setting:
    """Return a setting as help shows it where no world is named."""
    return replace(setting, default="by world") if setting.name in _BY_WORLD else setting


def preset(world: str, level: str | None = None, **changes: Any) -> TrainConfig:
    """Return a world's default configuration of `tokengym train`; see `preset_values`."""
    return preset_for(TrainConfig, world, level, **changes)


def preset_for(kind: type[C], world: str, level: str | None = None, **changes: Any) -> C:
    """Return a world's default configuration of a command; see `preset_values`."""
    return kind(**preset_values(kind, world, level, **changes))


def preset_values(
    kind: type[JobConfig], world: str, level: str | None = None, **changes: Any
) -> dict[str, Any]:
    """Return the settings of a job that are not the defaults of its command.

    Args:
        kind: the settings of a command, such as `SftConfig`.
        world: id or short name.
        level: of the world; if `None` the one that the toy model learns first, or the world's first
            for other models, roles, opponents and data of one's own.
        changes: settings by name, which override the world's; `None` stands for none.

    Raises:
        UnknownWorldError: if there is no such world.
    """
    named = {name: value for name, value in changes.items() if value is not None}
    declared = spec(world)
    sizes, options, easiest = dict(_TABLES["pretrained"]), dict[str, Any](), declared.levels[0]
    if is_toy(named.get("model", TOY_MODEL)):
        sizes = dict(_TABLES["toy"].get(declared.id, {}))
        options = {"prompt": "terse"} if sizes else {}
        taught = sizes.pop("level", easiest)
        own = "data" in named.get("options", {}) or _OF_ROLES & named.keys()
        easiest = easiest if own else taught
    level = level or easiest
    habits, prompt = _habits(kind, named)
    sizes |= habits
    if named.get("self_play"):
        sizes |= _TABLES["self_play"]
    sizes |= _TABLES["levels"].get(declared.id, {}).get(level, {})
    options = training_options(declared, {**options, **prompt, **named.get("options", {})})
    values = {"world": declared.id, "level": level, **sizes, **named, "options": options}
    return (_exact_credit(values, named) if kind is TrainConfig else {}) | values


def _exact_credit(values: Mapping[str, Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the credit and estimator of a job where its world knows the exact credit of a turn."""
    table = _TABLES["exact"].get(values["world"], {})
    if not table or "credit" in named or "data" in values["options"]:
        return {}
    try:
        make_world(values["world"], values["level"], **{**values["options"], "credit": True})
    except OptionError:
        return {}
    return {**table}


def _habits(
    kind: type[JobConfig], named: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what is known of a job's model: its settings, and its option `prompt` of worlds."""
    path = Path(named.get("model", TOY_MODEL))
    cached = (part.rpartition("--")[2] for part in path.parts if part.startswith("models--"))
    names = {path.name, *cached}
    known = (row for row in _TABLES["models"].values() if names & {*row["names"]})
    row = {name: value for name, value in next(known, {}).items() if name != "names"}
    taught = row.pop("train", {})
    learning = taught if kind is TrainConfig else {}
    if named.get("start") or named.get("warm_start") == 0:
        learning = {key: each for key, each in learning.items() if not key.startswith("warm_start")}
    prompt = {"prompt": row.pop("prompt")} if "prompt" in row else {}
    return row | learning, prompt
