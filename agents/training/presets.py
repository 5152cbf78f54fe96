"""Default settings of a job: the sizes of a world and the habits of a model, from `presets.toml`.

`train` and the other training commands, `evaluate` and `ties` read them here.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from tokengym.agents.settings import Setting
from tokengym.agents.toy_model import MODEL_DIR, TOY_MODEL
from tokengym.agents.training.config import JobConfig, MixedWorld, TrainConfig
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.registry import make_world, spec
from tokengym.envs.train_split import training_options
from tokengym.rewards.estimators import ESTIMATORS

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
    return mixed_preset(kind, [(world, level)], **changes)


def mixed_preset(kind: type[C], worlds: Sequence[tuple[str, str | None]], **changes: Any) -> C:
    """Return the default configuration of a job on one or several worlds; see `preset_values`."""
    return kind(**preset_values(kind, worlds, **changes))


def preset_values(
    kind: type[JobConfig],
    worlds: Sequence[tuple[str, str | None]],
    *,
    as_described: bool = False,
    **changes: Any,
) -> dict[str, Any]:
    """Return the settings of a job that are not the defaults of its command.

    Of several worlds, sizes are those of the first one, options each world's own; the token limit
    is that of the longest replies, and the learning rate the lowest.

    Args:
        kind: the settings of a command, such as `SftConfig`.
        worlds: ids or short names, with their levels; if `None` the one that the toy model learns
            first, or the world's first for other models, roles, opponents and data of one's own.
        as_described: begin with the options by which the world is as it was first described, and
            with supervised steps before the rewards.
        changes: settings by name, which override the world's; `None` stands for none.

    Raises:
        UnknownWorldError: if there is no such world.
        OptionError: if there are several and the command takes one, or one is not `as_described`.
    """
    if len(worlds) > 1 and kind is not TrainConfig:
        raise OptionError(f"tokengym {kind.command} is for one world, got {len(worlds)}")
    named = {name: value for name, value in changes.items() if value is not None}
    first, *rest = each = [
        _values(kind, spec(world), level, named, as_described=as_described, alone=len(worlds) == 1)
        for world, level in worlds
    ]
    if not rest and kind is TrainConfig:
        first = _exact_credit(first, named) | first
    if rest:
        limits: list[Any] = [values.get("max_tokens") for values in each]
        rates = [rate for values in each if (rate := values.get("learning_rate"))]
        first["others"] = tuple(
            MixedWorld(values["world"], values["level"], values["options"]) for values in rest
        )
        first["max_tokens"] = None if None in limits else max(limits)
        first["learning_rate"] = min(rates, default=None)
    return first


def _values(
    kind: type[JobConfig],
    world: WorldSpec,
    level: str | None,
    named: Mapping[str, Any],
    *,
    as_described: bool,
    alone: bool,
) -> dict[str, Any]:
    """Return the settings of a job in one world, with those that are named instead of its own."""
    toy = is_toy(named.get("model", TOY_MODEL))
    sizes, options = dict(_TABLES["pretrained"]), dict[str, Any]()
    easiest = world.levels[0]
    if toy:
        sizes = dict(_TABLES["toy"].get(world.id, {}))
        options |= {"prompt": "terse"} if sizes else {}
        taught = sizes.pop("level", easiest)
        own = as_described or "data" in named.get("options", {}) or _OF_ROLES & named.keys()
        easiest = easiest if own else taught
    level = level or easiest
    habits, prompt = _habits(kind, named, alone=alone)
    sizes, options = sizes | habits, options | prompt
    if named.get("self_play"):
        sizes |= _TABLES["self_play"]
    sizes |= _TABLES["levels"].get(world.id, {}).get(level, {})
    if as_described:
        if world.id not in _TABLES["described"]:
            worlds = ", ".join(_TABLES["described"])
            raise OptionError(f"--as-described is for {worlds}, got {world.id}")
        options |= _TABLES["described"][world.id]
    if as_described and kind is TrainConfig:
        sizes |= _TABLES["described_train"] | (_TABLES["described_toy"] if toy else {})
    if named.get("warm_start") == 0:
        sizes = _without_warm_start(sizes)
    options = training_options(world, {**options, **named.get("options", {})})
    return {"world": world.id, "level": level, **sizes, **named, "options": options}


def _exact_credit(values: Mapping[str, Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the credit and estimator of a job where its world knows the exact credit of a turn."""
    table = _TABLES["exact"].get(values["world"], {})
    estimator = ESTIMATORS.get(named.get("estimator", ""))
    greedy = estimator is not None and estimator.needs_greedy
    if not table or "credit" in named or greedy or "data" in values["options"]:
        return {}
    try:
        make_world(values["world"], values["level"], **{**values["options"], "credit": True})
    except OptionError:
        return {}
    return {**table}


def _habits(
    kind: type[JobConfig], named: Mapping[str, Any], *, alone: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what is known of a job's model: its settings, and its option `prompt` of worlds."""
    path = Path(named.get("model", TOY_MODEL))
    cached = (part.rpartition("--")[2] for part in path.parts if part.startswith("models--"))
    names = {path.name, *cached}
    known = (row for row in _TABLES["models"].values() if names & {*row["names"]})
    row = {name: value for name, value in next(known, {}).items() if name != "names"}
    taught = row.pop("train", {})
    learning = taught if kind is TrainConfig else {}
    if not alone or named.get("start"):
        learning = _without_warm_start(learning)
    prompt = {"prompt": row.pop("prompt")} if "prompt" in row else {}
    return row | learning, prompt


def _without_warm_start(sizes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in sizes.items() if not name.startswith("warm_start")}
