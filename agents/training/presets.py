"""Default configurations of worlds: sizes for the toy model, and for a pretrained one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tokengym.agents.toy_model import MODEL_DIR
from tokengym.agents.training.config import TrainConfig
from tokengym.agents.training.setting_groups import TOY_MODEL, MixedWorld
from tokengym.envs.registry import spec

_TOY: Mapping[str, Mapping[str, Any]] = {
    "tokengym/Energy-v0": {
        "max_tokens": 10,
        "groups_per_batch": 6,
        "steps": 20,
        "learning_rate": 2e-3,
        "evaluation_tasks": 128,
    },
    "tokengym/Warehouse-v0": {
        "max_tokens": 48,
        "groups_per_batch": 12,
        "steps": 100,
        "learning_rate": 2e-3,
        "evaluation_tasks": 256,
    },
    "tokengym/Forecast-v0": {"max_tokens": 12, "learning_rate": 6e-4},
    "tokengym/Disruption-v0": {
        "max_tokens": 96,
        "groups_per_batch": 8,
        "steps": 100,
        "learning_rate": 2e-3,
        "evaluation_tasks": 256,
    },
}
"""By world, what the toy model learns with; it was trained on these worlds' terse prompts."""
_PRETRAINED = {"steps": 40, "groups_per_batch": 8, "evaluation_tasks": 128}
"""Sizes of a job with a pretrained model."""
_LEVELS: Mapping[tuple[str, str], Mapping[str, Any]] = {
    # Four rollouts of a Task never tie here; more would only mean fewer Tasks for the same tokens.
    ("tokengym/Energy-v0", "soma"): {
        "group_size": 4,
        "groups_per_batch": 6,
        "evaluation_tasks": 32,
    },
}
"""By world and level, sizes for any model where the level needs its own."""
_SELF_PLAY_STEPS = 20
"""Steps of self-play unless asked otherwise: every episode is several rollouts."""


def is_toy(model: str) -> bool:
    """Return whether a name or a directory is that of the toy model."""
    return model == TOY_MODEL or Path(model).expanduser().resolve() == MODEL_DIR.resolve()


def preset(world: str, level: str | None = None, **changes: Any) -> TrainConfig:
    """Return a world's default configuration with `changes`; those that are `None` are ignored.

    Raises:
        UnknownWorldError: if there is no such world.
        OptionError: if a value is not allowed.
    """
    world_spec = spec(world)
    given = {name: value for name, value in changes.items() if value is not None}
    level = level or world_spec.levels[0]
    toy = is_toy(given.get("model", TOY_MODEL))
    start = {**(_TOY.get(world_spec.id, {}) if toy else _PRETRAINED)}
    if given.get("self_play"):
        start["steps"] = _SELF_PLAY_STEPS
    start |= _LEVELS.get((world_spec.id, level), {})
    # A world's own options are for Tasks it draws; records of a user have no exact label.
    options = {} if "data" in given.get("options", {}) else dict(world_spec.training)
    if toy and world_spec.id in _TOY:
        options["prompt"] = "terse"
    given["options"] = {**options, **given.get("options", {})}
    return TrainConfig(**{"world": world_spec.id, "level": level, **start, **given})


def mixed_preset(worlds: Sequence[tuple[str, str]], **changes: Any) -> TrainConfig:
    """Return the default configuration of a job on several worlds with `changes`.

    Sizes are those of the first world, options each world's own; the token limit is that of the
    longest replies, and the learning rate the lowest.

    Args:
        worlds: ids and levels.
        changes: as for `preset`; `mix` too.

    Raises:
        UnknownWorldError, OptionError: as `preset` does.
    """
    mix = changes.pop("mix", None) or "progress"
    first, *rest = configs = [preset(world, level, **changes) for world, level in worlds]
    limits = [one.max_tokens for one in configs if one.max_tokens is not None]
    rates = [one.learning_rate for one in configs if one.learning_rate is not None]
    return replace(
        first,
        others=tuple(MixedWorld(one.world, one.level, one.options) for one in rest),
        mix=mix,
        max_tokens=max(limits) if len(limits) == len(configs) else None,
        learning_rate=min(rates, default=None),
    )
