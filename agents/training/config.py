"""The settings of a training job: plain data that a run folder holds as JSON."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Self, get_args

from tokengym.agents.service.config import PRECISIONS
from tokengym.agents.training.algorithm import Algorithm, Credit, Denominator, Estimator, Filter
from tokengym.envs.core.errors import OptionError
from tokengym.envs.registry import spec
from tokengym.rewards.advantages import MINIMUM_SPREAD

Mode = Literal["sync", "stream", "async"]
Loop = Literal["auto", "cookbook", "own"]
Schedule = Literal["constant", "linear", "cosine"]

MOST_RANK = 1024
"""Largest rank of an adapter."""

TOY_MODEL = "tokengym-start"
"""Name of the small model that comes with the package."""


@dataclass(frozen=True)
class MixedWorld:
    """A further world of a job that trains on several.

    Attributes:
        world: its id.
        level: its level.
        options: its options.
    """

    world: str
    level: str
    options: Mapping[str, Any] = field(default_factory=dict)


_TEMPERATURES = ("temperature", "low_temperature")
_POSITIVE = ("learning_rate", "warm_start_rate", "dpo_margin", "dpo_beta", "memory")
_NUMBERS = (*_TEMPERATURES, *_POSITIVE, "kl", "bar")
_COUNTS = ("lr_warmup", "low_tasks", "seed", "warm_start", "patience", "rollout_bytes")
_AT_LEAST_ONE = (
    *("steps", "groups_per_batch", "lora_rank", "max_tokens", "evaluation_tasks"),
    "warm_start_updates",
)
_NOT_NEGATIVE = (*_TEMPERATURES, "kl", *_COUNTS)


@dataclass(frozen=True)
class TrainConfig:
    """The settings of one training job. `Job.resolve` resolves its names.

    Attributes:
        world: id of the world.
        level: level of the world.
        options: options of the world, such as `{"label": "expected"}`.
        steps: optimizer steps (the trainer's iterations).
        groups_per_batch: Tasks a step.
        group_size: rollouts of each Task.
        learning_rate: of Adam; `None` for what suits the model's size.
        lr_schedule: how it changes over the steps of the job: `constant`, or falling to 0 as
            `linear` or `cosine`; if `None`, constant from rewards and linear on existing data.
        lr_warmup: first steps, over which it rises linearly. Neither is for a warm start.
        lora_rank: rank of the adapter.
        max_tokens: most tokens of one reply; `None` to measure it on the replies of the world's
            scripted policies.
        temperature: of sampling.
        model: a local model directory, a hosted model's name, or `tokengym-start`.
        trust_remote_code: run Python code that comes with the model; none is run otherwise.
        renderer: name of a cookbook renderer.
        system: a text that precedes every conversation as the system's; none if empty.
        base_url: address of a Tinker service; `None` for the local one, or the hosted one if a key
            is set.
        precision: of a local service: `auto`, `float32` or `bfloat16`; see
            `ServiceConfig`.
        memory: GiB that a local service stays within; `None` for what suits the device.
        seed: which training Tasks are drawn, and in which order.
        deterministic: let no sequence of a local service depend on others, so that equal runs are
            exactly equal; in float32, sampling is two to three times slower.
        mode: `sync`, `stream` (streaming minibatches) or `async` (off-policy).
        evaluation_tasks: held-out test Tasks played before and after.
        low_temperature: at which the first of these Tasks are played once more, where it is below
            `temperature`.
        low_tasks: how many of them; 0 for none.
        opponents: who plays roles other than the trained one, in training and evaluation: by role
            a baseline's name, `model` for the job's own model untrained, a run folder, or the
            `tinker://` path of saved weights. A role that is not named gets the world's usual
            opponent.
        overrides: further fields of `tinker_cookbook.rl.train.Config` as `name=value`.
        loop: `cookbook` for the cookbook's own loop, `own` for `agents.training.loop`, `auto` for
            the cookbook's wherever it can do what is asked.
        estimator: from rewards to advantages; this and what follows, see `Algorithm`.
        credit: `episode`, `turn`, or `exact` where the world knows it; that sets its option.
        filter: what becomes of groups without a signal.
        min_spread: largest spread of a group that counts as none.
        resample_tokens: most tokens a step may spend on groups in place of such groups.
        denominator: which groups a step's sum is over.
        role: the trained role; the world's first one if `None`.
        self_play: train all roles, each against the others as they become. Held-out evaluations
            play one trained role at a time against `opponents`, which do not change.
        separate: in self-play, one policy for each role instead of one for all.
        sft: no reinforcement learning: fit demonstrations by cross-entropy.
        dpo: no reinforcement learning: a run folder, from whose training rollouts preferences are
            fitted by direct preference optimisation.
        dpo_margin: least difference of the returns of two rollouts that make a preference.
        dpo_beta: weight of leaving the policy that preferences are fitted from.
        teacher: a run folder or the `tinker://` path of saved weights for on-policy distillation:
            advantages are its log-probabilities of the sampled tokens less the policy's own.
        start: a run folder or the `tinker://` path of saved training weights to begin with.
        warm_start: supervised steps on demonstrations before reinforcement learning.
        warm_start_rate: learning rate of the first of those steps, from which it falls linearly;
            if `None`, `learning_rate`, or what suits existing data if that is `None` too.
        warm_start_updates: into how many optimizer steps the demonstrations of such a step, as many
            as reinforcement learning has rollouts, are divided.
        demonstrations: what supervised steps imitate: a baseline, or a run folder for the best of
            each group of its training rollouts; `None` for the world's choice.
        demonstration_return: least return of such a rollout; any if `None`.
        kl: weight of the penalty for leaving the policy that reinforcement learning starts from.
        curriculum: levels to pass before `level`, easiest first.
        bar: skill on a level of the curriculum that passes it, averaged over three steps.
        patience: steps in a row without signal after which the run ends; 0 for never.
        rollout_share: share of each step's groups whose rollouts are kept, in [0, 1].
        rollout_bytes: bound of all training rollouts that are kept.
        tensorboard: write the metrics as events for TensorBoard too.
        others: further worlds to train on at once, each in its first role.
        shares: relative shares of the groups that `world` and `others` get, in this order; none to
            follow the learning progress measured in each.

    Raises:
        OptionError: if a value is not allowed, or two do not go together.
    """

    world: str
    level: str
    options: Mapping[str, Any] = field(default_factory=dict)
    steps: int = 120
    groups_per_batch: int = 16
    group_size: int = 8
    learning_rate: float | None = None
    lr_schedule: Schedule | None = None
    lr_warmup: int = 0
    lora_rank: int = 32
    max_tokens: int | None = None
    temperature: float = 1.0
    model: str = TOY_MODEL
    trust_remote_code: bool = False
    renderer: str = "qwen3_instruct"
    system: str = ""
    base_url: str | None = None
    precision: str = "auto"
    memory: float | None = None
    seed: int = 0
    deterministic: bool = False
    mode: Mode = "sync"
    evaluation_tasks: int = 1024
    low_temperature: float = 0.3
    low_tasks: int = 128
    opponents: Mapping[str, str] = field(default_factory=dict)
    overrides: Sequence[str] = ()
    loop: Loop = "auto"
    estimator: Estimator = "group_centred"
    credit: Credit = "episode"
    filter: Filter = "keep"
    min_spread: float = MINIMUM_SPREAD
    resample_tokens: int | None = None
    denominator: Denominator = "all"
    role: str | None = None
    self_play: bool = False
    separate: bool = False
    sft: bool = False
    dpo: str | None = None
    dpo_margin: float = 0.05
    dpo_beta: float = 0.1
    teacher: str | None = None
    start: str | None = None
    warm_start: int = 0
    warm_start_rate: float | None = None
    warm_start_updates: int = 1
    demonstrations: str | None = None
    demonstration_return: float | None = None
    kl: float = 0.0
    curriculum: Sequence[str] = ()
    bar: float = 0.5
    patience: int = 5
    rollout_share: float = 1.0
    rollout_bytes: int = 2**28
    tensorboard: bool = False
    others: Sequence[MixedWorld] = ()
    shares: Sequence[float] = ()

    def __post_init__(self) -> None:
        """Refuse invalid values, naming them."""
        for name in _AT_LEAST_ONE:
            value = getattr(self, name)
            if value is not None and value < 1:
                raise OptionError(f"{name} must be at least 1, got {value}")
        if self.lora_rank > MOST_RANK:
            raise OptionError(f"lora_rank must be at most {MOST_RANK}, got {self.lora_rank}")
        if self.group_size < 2:
            raise OptionError(f"group_size must be at least 2, got {self.group_size}")
        for name in _POSITIVE:
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise OptionError(f"{name} must be positive, got {value}")
        for name in _NUMBERS:
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise OptionError(f"{name} must be a finite number, got {value}")
        for name in _NOT_NEGATIVE:
            if not getattr(self, name) >= 0:
                raise OptionError(f"{name} must be at least 0, got {getattr(self, name)}")
        if not 0.0 <= self.rollout_share <= 1.0:
            raise OptionError(f"rollout_share must be in [0, 1], got {self.rollout_share}")
        choices = {
            "mode": [*get_args(Mode)],
            "loop": [*get_args(Loop)],
            "lr_schedule": [*get_args(Schedule), None],
            "precision": [*PRECISIONS],
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise OptionError(f"{name} must be one of {allowed}, got {getattr(self, name)!r}")
        row = spec(self.world)
        for level in (self.level, *self.curriculum):
            if level not in row.levels:
                raise OptionError(f"{row.id} has the levels {list(row.levels)}, got {level!r}")
        self._check_loop()
        self._check_roles(row.id, row.roles)
        self._check_mixture()
        if self.credit == "exact":
            object.__setattr__(self, "options", {**self.options, "credit": True})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read a configuration from its JSON.

        Raises:
            OptionError: if a field is unknown, missing, of a wrong type or not allowed.
        """
        from pydantic import TypeAdapter, ValidationError

        unknown = sorted(set(data) - {item.name for item in fields(cls)})
        if unknown:
            raise OptionError(f"unknown settings {unknown}")
        try:
            read = TypeAdapter(cls).validate_json(json.dumps(data), strict=True)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise OptionError(f"{where}: {first['msg']}" if where else first["msg"]) from error
        return replace(
            read,
            overrides=tuple(read.overrides),
            curriculum=tuple(read.curriculum),
            others=tuple(read.others),
            shares=tuple(read.shares),
        )

    @property
    def algorithm(self) -> Algorithm:
        """What a step learns from.

        Raises:
            OptionError: if two of its parts do not go together.
        """
        return Algorithm(
            self.estimator,
            self.credit,
            self.filter,
            self.min_spread,
            self.resample_tokens,
            self.denominator,
        )

    @property
    def own_loop(self) -> bool:
        """Whether the job runs in our own loop, which also counts what a filter drops, and why."""
        needed = (
            self.separate,
            not self.rolls_out,
            bool(self.curriculum or self.others or self.teacher),
            self.algorithm != Algorithm(),
            self.schedule != "constant" or self.lr_warmup,
            # The cookbook's loop in mode async depends on time: which Tasks a step trains on, and
            # how many steps there are.
            self.mode == "async",
            # An opponent whose replies are all cut off leaves a later role no turn in a whole step,
            # and the cookbook's loop nothing to divide.
            self.role is not None and self.mode == "sync",
        )
        return self.loop == "own" or (self.loop == "auto" and any(needed))

    @property
    def schedule(self) -> Schedule:
        """How the learning rate changes over the steps."""
        return self.lr_schedule or ("constant" if self.rolls_out else "linear")

    @property
    def rolls_out(self) -> bool:
        """Whether steps train on rollouts of the policy, not on existing data."""
        return not self.sft and self.dpo is None

    def _check_loop(self) -> None:
        beyond = [f"{name}={getattr(self, name)!r}" for name in self.algorithm.beyond_cookbook()]
        names = ("separate", "sft", "dpo", "teacher", "lr_warmup")
        beyond += [f"{name}={getattr(self, name)!r}" for name in names if getattr(self, name)]
        falls = self.lr_schedule not in (None, "constant")
        beyond += [f"lr_schedule={self.lr_schedule!r}"] if falls else []
        beyond += [f"curriculum={list(self.curriculum)}"] if self.curriculum else []
        beyond += ["several worlds"] if self.others else []
        if self.loop == "cookbook" and beyond:
            raise OptionError(
                f"loop='cookbook' does not support {', '.join(beyond)}; use loop='auto'"
            )
        if self.own_loop and self.mode == "stream":
            raise OptionError("mode='stream' is the cookbook's: our own loop does sync and async")
        if self.teacher or not self.rolls_out:
            self._check_without_rewards()
        if self.curriculum and self.filter == "resample":
            raise OptionError(
                f"curriculum={list(self.curriculum)} does not go with filter='resample'"
            )
        if self.warm_start and (self.sft or self.separate):
            other = "sft" if self.sft else "separate policies"
            raise OptionError(f"warm_start={self.warm_start} does not go with {other}")
        for name, usual in (("warm_start_rate", None), ("warm_start_updates", 1)):
            value = getattr(self, name)
            if value != usual and not self.warm_start:
                raise OptionError(f"{name}={value} is for a warm start, and warm_start is 0")

    def _check_without_rewards(self) -> None:
        """Refuse settings that only apply to learning from rewards."""
        asked = [name for name in ("sft", "dpo", "teacher") if getattr(self, name)]
        if len(asked) > 1:
            raise OptionError(f"a job takes one of sft, dpo and teacher, got {asked}")
        (name,) = asked
        if self.algorithm != Algorithm() or (not self.rolls_out and self.mode != "sync"):
            raise OptionError(
                f"{name} does not learn from rewards: it takes no estimator, credit, filter or "
                f"denominator, and without rollouts mode='sync', got {self.algorithm} and "
                f"mode={self.mode!r}"
            )
        if self.curriculum and not self.rolls_out:
            raise OptionError(f"curriculum={list(self.curriculum)} does not go with {name}")
        if self.kl:
            raise OptionError(f"kl={self.kl} is for learning from rewards, and {name} has none")
        if self.self_play and not self.sft:
            raise OptionError(f"{name} trains one role, and self_play all of them")

    def _check_roles(self, world: str, roles: Sequence[str]) -> None:
        for role in [*self.opponents, *([self.role] if self.role else [])]:
            if role not in roles:
                raise OptionError(f"{world} has the roles {list(roles)}, got {role!r}")
        trained = self.role or roles[0]
        if trained in self.opponents and not self.self_play:
            raise OptionError(f"{trained} is trained and needs no opponent to play it")
        if self.self_play and len(roles) < 2:
            raise OptionError(f"self_play needs several roles, {world} has {list(roles)}")
        if self.self_play and self.role is not None:
            raise OptionError(f"self_play trains every role, got role={self.role!r}")
        if self.separate and not self.self_play:
            raise OptionError("separate policies are those of self_play, which is off")

    def for_world(self, other: MixedWorld) -> Self:
        """Return the configuration of one of the further worlds by itself."""
        return replace(
            self,
            world=other.world,
            level=other.level,
            options=other.options,
            others=(),
            shares=(),
        )

    def _check_mixture(self) -> None:
        worlds = [(self.world, self.level), *((one.world, one.level) for one in self.others)]
        if len(set(worlds)) < len(worlds):
            raise OptionError(f"the worlds of a mixture must differ, got {worlds}")
        if self.shares and (len(self.shares) != len(worlds) or not min(self.shares) > 0.0):
            raise OptionError(
                f"shares must be a positive number for each of {len(worlds)} worlds, got "
                f"{list(self.shares)}"
            )
        if not self.others:
            return
        single = ("role", "opponents", "self_play", "curriculum", "sft", "dpo", "warm_start")
        given = [f"{name}={getattr(self, name)!r}" for name in single if getattr(self, name)]
        given += ["filter='resample'"] if self.filter == "resample" else []
        given += ["credit='exact'"] if self.credit == "exact" else []
        if given:
            raise OptionError(f"{', '.join(given)} is for one world, got {len(worlds)}")
        for other in self.others:
            self.for_world(other)
