"""Settings that follow from a job's worlds and model: the limit of a reply, learning rates.

A limit leaves room for the replies of scripted policies, and to think where the prompt asks for it;
rates are the cookbook's scaling by model size, with a limit for rewards.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from tokengym.agents.training.config import DemonstrationSettings, JobConfig, LearningSettings
from tokengym.agents.training.presets import is_toy
from tokengym.envs.core.episode import role_stream
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.play import Policy, play
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World
from tokengym.envs.tokens.codec import Codec
from tokengym.envs.tokens.episode import Episode

C = TypeVar("C", bound=JobConfig)

_TASKS = 8
_ROOM = 1.5
"""Largest ratio of a reply to the longest that a script gave."""
_LEAST = 16
_PREFERENCE_RATE = 1e-5
"""For preferences of a pretrained model: the cookbook's."""
_UNCALIBRATED = 5e-4
"""Where the cookbook has no formula: its base rate for LoRA, unscaled."""
_EXPONENTS = {"llama": 0.781, "qwen2": 0.0775, "qwen3": 0.0775}
"""Those of the cookbook's formulas, by `model_type`."""
_WIDTH = 2000
_NARROW_REWARDS = 3e-4
"""For learning from rewards, of models narrower than that: SmolLM2 learns at this rate, gains
nothing at 1e-3, and collapses at 5e-4 in the debate. The scaling gives 1.3e-3."""


def fill_in(
    config: C,
    model: str,
    codec: Codec,
    world: World,
    policies: Mapping[str, Policy],
    *,
    local: bool,
) -> C:
    """Return a configuration with a limit of replies and learning rates.

    Args:
        config: of the job; what was asked for is kept.
        model: directory of a local model, or the name of a hosted one.
        codec: how replies are written.
        world: the world that is trained on.
        policies: its policies by name.
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
    context = context if isinstance(context, int) else None
    if limit is None:
        names = ("random", "oracle", imitated)
        limit = max(_LEAST, round(_ROOM * _longest_reply(world, policies, codec, names)))
        if not is_toy(model):  # it was not made to think
            limit = max(limit, _room_to_think(world, policies, codec, context))
    elif config.command == "sft" or learning.warm_start:
        longest = _longest_reply(world, policies, codec, (imitated,))
        if longest > limit:
            raise OptionError(
                f"--max-tokens {limit} cuts off replies like those of {imitated!r}, which take up "
                f"to {longest} tokens; name a larger limit"
            )
    if context is not None and limit >= context:
        raise OptionError(
            f"--max-tokens must be below the model's context of {context} tokens, got {limit}"
        )
    filled: Any = {"max_tokens": limit, "learning_rate": rate}
    if learning.warm_start:
        filled["warm_start_rate"] = warm
    return replace(config, **filled)


def _room_to_think(
    world: World, policies: Mapping[str, Policy], codec: Codec, context: int | None
) -> int:
    """Return the tokens of a reply that thinks first; 0 for prompts that ask for the answer alone.

    They are no more than the context leaves for each reply of an episode.

    Args:
        world: the world.
        policies: its scripted policies by name.
        codec: how it is read and written.
        context: of the model, in tokens; `None` if it is not known.
    """
    thinking = world.spec.reply_tokens(world.level, world.prompt) or 0
    if context is None or not thinking:
        return thinking
    tasks = world.first_tasks("train", _TASKS)
    read = [max(tokens_read(world, task, codec, policies["random"])) for task in tasks]
    return min(thinking, (context - max(read, default=0)) // world.turn_limit)


def tokens_read(world: World, task: Task, codec: Codec, policy: Policy) -> list[int]:
    """Return the tokens of each observation of an episode that a scripted policy plays."""
    read, episode = [], Episode(world.fork(), task, codec)
    rngs = {role: role_stream(task, role) for role in world.spec.roles}
    while not episode.done:
        read.append(len(episode.observation))
        episode.act(codec.write(policy(episode.world, episode.turn, rngs[episode.role])))
    return read


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
    exponent = _EXPONENTS.get(config.get("model_type", ""))
    if exponent is None:
        return _UNCALIBRATED
    if rewards and config["hidden_size"] < _WIDTH:
        return _NARROW_REWARDS
    return float(_UNCALIBRATED * (_WIDTH / config["hidden_size"]) ** exponent)


def _model_config(model: str) -> dict[str, Any] | None:
    """Return the `config.json` of a model's directory; `None` for a hosted model."""
    file = Path(model) / "config.json"
    return json.loads(file.read_bytes()) if file.is_file() else None
