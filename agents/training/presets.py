"""What a job takes where its user asked for nothing: sizes, the limit of a reply, learning rates.

Sizes are for the toy model or for a pretrained one. A limit leaves room for the replies of scripted
policies; rates are the cookbook's scaling by model size, with a limit for rewards.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from tokengym.agents.toy_model import MODEL_DIR, TOY_MODEL
from tokengym.agents.training.config import JobConfig, RolloutConfig, TrainConfig
from tokengym.agents.training.setting_groups import (
    DemonstrationSettings,
    LearningSettings,
    MixedWorld,
)
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.play import Policy, play
from tokengym.envs.core.world import World
from tokengym.envs.registry import spec
from tokengym.envs.tokens.codec import Codec
from tokengym.envs.train_split import training_options

C = TypeVar("C", bound=JobConfig)

_TOY: Mapping[str, Mapping[str, Any]] = {
    "tokengym/Energy-v1": {
        "max_tokens": 10,
        "groups_per_batch": 6,
        "steps": 20,
        "learning_rate": 2e-3,
        "evaluation_tasks": 128,
    },
    "tokengym/Warehouse-v0": {
        "max_tokens": 48,
        "groups_per_batch": 4,
        "steps": 40,
        "learning_rate": 2e-3,
        "evaluation_tasks": 128,
    },
    "tokengym/Forecast-v0": {
        "max_tokens": 12,
        "steps": 60,
        "learning_rate": 6e-4,
        "evaluation_tasks": 256,
    },
    "tokengym/Disruption-v1": {
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
    ("tokengym/Energy-v1", "soma"): {"group_size": 4, "groups_per_batch": 6, "evaluation_tasks": 32}
}
"""By world and level, sizes for any model where the level needs its own."""
_DESCRIBED = {"tokengym/Disruption-v1": {"target": "both", "reward": "original"}}
"""By world, the options that make it what was first described, where that differs."""
_DESCRIBED_START = {"warm_start": 14, "warm_start_updates": 16}
"""What teaches a policy the form of such replies, for malformed ones all earn the same."""
_DESCRIBED_RATES = {"warm_start_rate": 3e-3, "learning_rate": 1e-3}
"""For the toy model."""
_SELF_PLAY_STEPS = 20
"""Steps of self-play unless asked otherwise: every episode is several rollouts."""
_TASKS = 8
_ROOM = 1.5
"""Largest ratio of a reply to the longest that a script gave."""
_LEAST = 16
_PREFERENCE_RATE = 1e-5
"""For preferences of a pretrained model: the cookbook's."""
_UNCALIBRATED = 5e-4
"""Where the cookbook has no formula: its base rate for LoRA, unscaled."""
_FAMILIES = {"llama": "llama", "qwen2": "qwen", "qwen3": "qwen"}
"""Families that the cookbook has formulas for, by `model_type`."""
_EXPONENTS = {"llama": 0.781, "qwen": 0.0775}
_WIDTH = 2000
_NARROW_REWARDS = 3e-4
"""For learning from rewards, of models narrower than that: SmolLM2 learns at this rate, gains
nothing at 1e-3, and collapses at 5e-4 in the debate. The scaling gives 1.3e-3."""


def is_toy(model: str) -> bool:
    """Return whether a name or a directory is that of the toy model."""
    return model == TOY_MODEL or Path(model).expanduser().resolve() == MODEL_DIR.resolve()


def preset(world: str, level: str | None = None, **changes: Any) -> TrainConfig:
    """Return a world's default configuration of `tokengym train`; see `preset_for`."""
    return preset_for(TrainConfig, world, level, **changes)


def preset_for(
    kind: type[C], world: str, level: str | None = None, *, as_described: bool = False, **more: Any
) -> C:
    """Return a world's default configuration with settings of one's own; `None` stands for none.

    Args:
        kind: the settings of a command, such as `SftConfig`.
        world: id or short name.
        level: the level; the first if `None`.
        as_described: begin with the options by which the world is as it was first described, and
            with supervised steps before the rewards.
        more: settings by name.

    Raises:
        UnknownWorldError: if there is no such world.
        OptionError: if a value is not allowed, or the world is as described.
        TypeError: if the command has no such setting.
    """
    world_spec = spec(world)
    named = {name: value for name, value in more.items() if value is not None}
    level = level or world_spec.levels[0]
    toy = is_toy(named.get("model", TOY_MODEL))
    start = {**(_TOY.get(world_spec.id, {}) if toy else _PRETRAINED)}
    if named.get("self_play"):
        start["steps"] = _SELF_PLAY_STEPS
    start |= _LEVELS.get((world_spec.id, level), {})
    usual: dict[str, Any] = {"prompt": "terse"} if toy and world_spec.id in _TOY else {}
    if as_described:
        if world_spec.id not in _DESCRIBED:
            raise OptionError(f"--as-described is for {', '.join(_DESCRIBED)}, got {world_spec.id}")
        usual |= _DESCRIBED[world_spec.id]
        if kind is TrainConfig:
            start |= {**_DESCRIBED_START, **(_DESCRIBED_RATES if toy else {})}
    named["options"] = training_options(world_spec, {**usual, **named.get("options", {})})
    return kind(**{"world": world_spec.id, "level": level, **start, **named})


def mixed_preset(kind: type[C], worlds: Sequence[tuple[str, str]], **changes: Any) -> C:
    """Return the default configuration of a job on several worlds with `changes`.

    Sizes are those of the first world, options each world's own; the token limit is that of the
    longest replies, and the learning rate the lowest.

    Args:
        kind: as for `preset_for`.
        worlds: ids and levels.
        changes: as for `preset_for`; `mix` too.

    Raises:
        UnknownWorldError, OptionError: as `preset_for` does, and if the command takes one world.
    """
    if len(worlds) == 1:
        return preset_for(kind, *worlds[0], **changes)
    if not issubclass(kind, RolloutConfig):
        raise OptionError(f"tokengym {kind.command} is for one world, got {len(worlds)}")
    mix = changes.pop("mix", "progress")
    first, *rest = configs = [preset_for(kind, *world, **changes) for world in worlds]
    limits = [config.max_tokens for config in configs if config.max_tokens is not None]
    rates = [config.learning_rate for config in configs if config.learning_rate is not None]
    return replace(
        first,
        others=tuple(MixedWorld(config.world, config.level, config.options) for config in rest),
        mix=mix,
        max_tokens=max(limits) if len(limits) == len(configs) else None,
        learning_rate=min(rates, default=None),
    )


def fill_in(
    config: C,
    model: str,
    codec: Codec,
    worlds: Sequence[tuple[World, Mapping[str, Policy]]],
    *,
    local: bool,
) -> C:
    """Return a configuration with a limit of replies and learning rates.

    Args:
        config: of the job; what was asked for is kept.
        model: directory of a local model, or the name of a hosted one.
        codec: how replies are written.
        worlds: all that are trained on, the job's own last, each with its policies by name.
        local: whether the model is served on this machine.

    Raises:
        OptionError: if replies could be longer than the model's context, or the limit would cut
            off what supervised steps are to imitate.
    """
    rate, learning = config.learning_rate, config.group(LearningSettings)
    warm = learning.warm_start_rate or rate
    if rate is None and config.command == "dpo":
        rate = _PREFERENCE_RATE
    rate = rate or scaled_learning_rate(model, rewards=config.rolls_out)
    if learning.warm_start and warm is None:
        warm = scaled_learning_rate(model, rewards=False)
    context = (_model_config(model) or {}).get("max_position_embeddings") if local else None
    limit, imitated = config.max_tokens, config.group(DemonstrationSettings).demonstrations
    names: tuple[str | None, ...] = ()
    if limit is None:
        names = ("random", "oracle", imitated)
    elif config.command == "sft" or learning.warm_start:
        names, worlds = (imitated,), worlds[-1:]
    longest = max((_longest_reply(*world, codec, names) for world in worlds), default=0)
    if limit is None:
        limit = max(_LEAST, round(_ROOM * longest))
    elif longest > limit:
        raise OptionError(
            f"--max-tokens {limit} cuts off replies like those of {imitated!r}, which take up to "
            f"{longest} tokens; name a larger limit"
        )
    if isinstance(context, int) and limit >= context:
        raise OptionError(
            f"--max-tokens must be below the model's context of {context} tokens, got {limit}"
        )
    filled: Any = {"max_tokens": limit, "learning_rate": rate}
    if learning.warm_start:
        filled["warm_start_rate"] = warm
    return replace(config, **filled)


def _longest_reply(
    world: World, policies: Mapping[str, Policy], codec: Codec, names: Collection[str | None]
) -> int:
    """Return the tokens of the longest reply of some scripted policies; 0 if none is named."""
    longest = 0
    for name in policies.keys() & names:
        for task in world.first_tasks("train", _TASKS):
            record = play(world.fork(), task, policies[name])
            longest = max(longest, *(len(codec.write(reply)) for reply in record.replies))
    return longest


def scaled_learning_rate(model: str, *, rewards: bool) -> float:
    """Return a learning rate for LoRA that suits a model.

    Args:
        model: directory of a local model, or the name of a hosted one.
        rewards: whether it learns from rewards on its own rollouts, and not from existing data.
    """
    from tinker_cookbook.exceptions import ConfigurationError
    from tinker_cookbook.hyperparam_utils import get_lr

    config = _model_config(model)
    if config is None:
        try:
            return get_lr(model)
        except (ConfigurationError, NotImplementedError):
            return _UNCALIBRATED
    family = _FAMILIES.get(config.get("model_type", ""))
    if family is None:
        return _UNCALIBRATED
    if rewards and config["hidden_size"] < _WIDTH:
        return _NARROW_REWARDS
    return float(_UNCALIBRATED * (_WIDTH / config["hidden_size"]) ** _EXPONENTS[family])


def _model_config(model: str) -> dict[str, Any] | None:
    """Return the `config.json` of a model's directory; `None` for a hosted model."""
    file = Path(model) / "config.json"
    return json.loads(file.read_bytes()) if file.is_file() else None
