"""Default configurations of worlds: sizes and options, for a given model."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tokengym.agents.toy_model import MODEL_DIR
from tokengym.agents.training.config import TOY_MODEL, MixedWorld, TrainConfig
from tokengym.envs.registry import spec

_PRETRAINED = {"steps": 40, "groups_per_batch": 8, "evaluation_tasks": 128}
"""Sizes of a job with a pretrained model: the worlds' own are for the toy model, as are its
learning rate and its token limit."""


def is_toy(model: str) -> bool:
    """Return whether a name or a directory is that of the toy model."""
    return model == TOY_MODEL or Path(model).expanduser().resolve() == MODEL_DIR.resolve()


_SELF_PLAY_STEPS = 20
"""Steps of self-play unless asked otherwise: every episode is several rollouts."""


def preset(world: str, level: str | None = None, **changes: Any) -> TrainConfig:
    """Return a world's default configuration with `changes`; those that are `None` are ignored.

    Raises:
        UnknownWorldError: if there is no such world.
        OptionError: if a value is not allowed.
    """
    row = spec(world)
    given = {name: value for name, value in changes.items() if value is not None}
    start: dict[str, Any] = dict(row.training)
    if not is_toy(given.get("model", TOY_MODEL)):
        options = {k: v for k, v in start.get("options", {}).items() if k != "prompt"}
        start = {"options": options, **_PRETRAINED}
    if given.get("self_play"):
        start["steps"] = _SELF_PLAY_STEPS
    level = level or row.levels[0]
    start |= row.level_training.get(level, {})
    base = TrainConfig(world=row.id, level=level, **start)
    if "options" in given:
        # A world's own options are for Tasks it draws; records of a user have no exact label.
        drawn = "data" not in given["options"]
        shared = {k: v for k, v in base.options.items() if drawn or k == "prompt"}
        given["options"] = {**shared, **given["options"]}
    return replace(base, **given)


def mixed_preset(worlds: Sequence[tuple[str, str]], **changes: Any) -> TrainConfig:
    """Return the default configuration of a job on several worlds with `changes`.

    Sizes are those of the first world, options each world's own; the token limit is that of the
    longest replies, and the learning rate the lowest.

    Args:
        worlds: ids and levels.
        changes: as for `preset`; `shares` too.

    Raises:
        UnknownWorldError, OptionError: as `preset` does.
    """
    shares = changes.pop("shares", None) or ()
    first, *rest = configs = [preset(world, level, **changes) for world, level in worlds]
    limits = [one.max_tokens for one in configs if one.max_tokens is not None]
    rates = [one.learning_rate for one in configs if one.learning_rate is not None]
    return replace(
        first,
        others=tuple(MixedWorld(one.world, one.level, one.options) for one in rest),
        shares=tuple(shares),
        max_tokens=max(limits) if len(limits) == len(configs) else None,
        learning_rate=min(rates, default=None),
    )
