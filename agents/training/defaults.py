"""What a job takes where nothing was asked for: the limit of a reply, and learning rates.

A limit leaves room for the replies of scripted policies; rates are the cookbook's scaling by model
size, with a limit for rewards.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tinker_cookbook.exceptions import ConfigurationError
from tinker_cookbook.hyperparam_utils import get_lr

from tokengym.agents.training.config import TrainConfig
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.play import Policy, play
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.world import World
from tokengym.envs.tokens.codec import Codec

_TASKS = 8
_ROOM = 1.5
"""A reply may be so many times as long as the longest that a script gave."""
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


def fill_in(
    config: TrainConfig,
    model: str,
    codec: Codec,
    worlds: Sequence[tuple[World, Mapping[str, Policy]]],
    *,
    local: bool,
) -> TrainConfig:
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
    limit, imitated = config.max_tokens, config.demonstrations
    if limit is None:
        limit = max(longest_reply(*one, codec, imitated) for one in worlds)
    elif imitated is not None and (config.command == "sft" or config.warm_start):
        _check_fits(*worlds[-1], codec, imitated, limit)
    if local:
        _check_context(model, limit)
    rate, given = config.learning_rate, config.warm_start_rate or config.learning_rate
    if rate is None and config.command == "dpo":
        rate = _PREFERENCE_RATE
    rate = rate or scaled_learning_rate(model, rewards=config.rolls_out)
    if config.warm_start and given is None:
        given = scaled_learning_rate(model, rewards=False)
    warm = given if config.warm_start else None
    return replace(config, max_tokens=limit, learning_rate=rate, warm_start_rate=warm)


def longest_reply(
    world: World, policies: Mapping[str, Policy], codec: Codec, imitated: str | None = None
) -> int:
    """Return a limit in tokens that leaves room for every well-formed reply.

    Args:
        world: the world.
        policies: its scripted policies by name, `random` and `oracle` among them.
        codec: how replies are written.
        imitated: who else's replies have to fit, if it is one of them.
    """
    names = [name for name in policies if name in ("random", "oracle", imitated)]
    longest = max(_longest(world, policies[name], codec, name) for name in names)
    return max(_LEAST, round(_ROOM * longest))


def _check_fits(
    world: World, policies: Mapping[str, Policy], codec: Codec, name: str, limit: int
) -> None:
    """Refuse a limit that would cut off what a policy is to imitate, if that is a script."""
    longest = _longest(world, policies[name], codec, name) if name in policies else 0
    if longest > limit:
        raise OptionError(
            f"--max-tokens {limit} cuts off replies like those of {name!r}, which take up to "
            f"{longest} tokens; name a larger limit"
        )


def _longest(world: World, policy: Policy, codec: Codec, name: str) -> int:
    longest = 0
    for task in world.first_tasks("train", _TASKS):
        rng = generator("reply length", name, task.fingerprint)
        record = play(world.fork(), task, policy, rng)
        longest = max(longest, *(len(codec.write(reply)) for reply in record.replies))
    return longest


def scaled_learning_rate(model: str, *, rewards: bool) -> float:
    """Return a learning rate for LoRA that suits a model.

    Args:
        model: directory of a local model, or the name of a hosted one.
        rewards: whether it learns from rewards on its own rollouts, and not from existing data.
    """
    config = Path(model) / "config.json"
    if not config.is_file():
        try:
            return get_lr(model)
        except (ConfigurationError, NotImplementedError):
            return _UNCALIBRATED
    found = json.loads(config.read_text(encoding="utf-8"))
    family = _FAMILIES.get(found.get("model_type"))
    if family is None:
        return _UNCALIBRATED
    if rewards and found["hidden_size"] < _WIDTH:
        return _NARROW_REWARDS
    return float(_UNCALIBRATED * (_WIDTH / found["hidden_size"]) ** _EXPONENTS[family])


def _check_context(model: str, max_tokens: int) -> None:
    """Refuse replies longer than the context of a local service's model.

    Raises:
        OptionError: if there are.
    """
    config = json.loads((Path(model) / "config.json").read_bytes())
    context = config.get("max_position_embeddings")
    if isinstance(context, int) and max_tokens >= context:
        raise OptionError(
            f"--max-tokens must be below the model's context of {context} tokens, got {max_tokens}"
        )
