"""What a training job is: every choice as frozen data that a run folder can hold as JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, Self

from tokengym.agents.training.algorithm import (
    Choices,
    Credit,
    Denominator,
    Estimator,
    Filter,
)
from tokengym.envs.core.errors import OptionError
from tokengym.envs.registry import scripted_opponent, spec
from tokengym.rewards.advantages import MINIMUM_SPREAD

Mode = Literal["sync", "stream", "async"]
MODES: tuple[Mode, ...] = ("sync", "stream", "async")
Loop = Literal["auto", "cookbook", "own"]
LOOPS: tuple[Loop, ...] = ("auto", "cookbook", "own")

STARTING_POLICY = "tokengym-start"
"""Name of the small model that comes with the package."""

SETTINGS_FILE = "settings.json"
"""Where a run folder keeps what its job is."""


@dataclass(frozen=True)
class TrainSettings:
    """One training job.

    Attributes:
        world: id of the world.
        level: level of the world.
        options: options of the world, such as `{"label": "expected"}`.
        steps: optimizer steps (the trainer's iterations).
        groups_per_batch: Tasks a step.
        group_size: rollouts of each Task.
        learning_rate: of Adam.
        lora_rank: rank of the adapter.
        max_tokens: most tokens of one reply.
        temperature: of sampling.
        model: a local model directory, a hosted model's name, or `tokengym-start`.
        renderer: a cookbook renderer's name.
        base_url: address of a Tinker service; `None` for the local one, or the hosted one if a key
            is set.
        seed: which training Tasks are drawn, and in which order.
        mode: `sync`, `stream` (streaming minibatches) or `async` (off-policy).
        evaluation_tasks: held-out test Tasks played before and after.
        opponents: who speaks for other roles than the trained one, in training and evaluation: by
            role a baseline's name, `model` for the job's own model untrained, a run folder, or the
            `tinker://` path of saved weights. A role that is not named gets a scripted baseline.
        overrides: further fields of `tinker_cookbook.rl.train.Config` as `name=value`.
        loop: `cookbook` for the cookbook's own loop, `own` for `agents.training.loop`, `auto` for
            the cookbook's unless a choice below is not the default.
        estimator: from rewards to advantages; this and what follows, see `Choices`.
        credit: `episode`, `turn`, or `exact` where the world knows it; that sets its option.
        filter: what becomes of groups that have nothing to teach.
        min_spread: largest spread of a group that counts as none.
        resample_tokens: most tokens a step may spend on groups in place of such groups.
        denominator: which groups a step's sum is over.
        role: who is trained; the world's first role if `None`.
        self_play: train all roles, each against the others as they become. Held-out evaluations
            play one trained role at a time against `agents`, which do not change.
        separate: in self-play, a policy of its own for every role instead of one for all.
        sft: no reinforcement learning: imitate demonstrations by cross-entropy, see
            `imitation.demonstration`.
        start: a run folder or the `tinker://` path of saved training weights to begin with.
    """

    world: str
    level: str
    options: Mapping[str, Any] = field(default_factory=dict)
    steps: int = 120
    groups_per_batch: int = 16
    group_size: int = 8
    learning_rate: float = 6e-4
    lora_rank: int = 32
    max_tokens: int = 16
    temperature: float = 1.0
    model: str = STARTING_POLICY
    renderer: str = "qwen3_instruct"
    base_url: str | None = None
    seed: int = 0
    mode: Mode = "sync"
    evaluation_tasks: int = 1024
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
    start: str | None = None

    def __post_init__(self) -> None:
        """Refuse numbers that make no sense, by name and value."""
        for name in ("steps", "groups_per_batch", "lora_rank", "max_tokens", "evaluation_tasks"):
            if getattr(self, name) < 1:
                raise OptionError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.group_size < 2:
            raise OptionError(f"group_size must be at least 2, got {self.group_size}")
        if self.learning_rate <= 0:
            raise OptionError(f"learning_rate must be positive, got {self.learning_rate}")
        if self.mode not in MODES:
            raise OptionError(f"mode must be one of {list(MODES)}, got {self.mode!r}")
        row = spec(self.world)
        if self.level not in row.levels:
            raise OptionError(f"{row.id} has the levels {list(row.levels)}, got {self.level!r}")
        self._check_loop()
        self._check_roles()
        if self.credit == "exact":
            object.__setattr__(self, "options", {**self.options, "credit": True})

    @property
    def trained(self) -> tuple[str, ...]:
        """The roles that are trained; the first one is the one the job's figures tell of."""
        roles = spec(self.world).roles
        return roles if self.self_play else (self.role or roles[0],)

    def opponents_of(self, role: str) -> dict[str, str]:
        """Return who speaks for the other roles where `role` alone is played."""
        others = (other for other in spec(self.world).roles if other != role)
        return {
            other: self.opponents.get(other) or scripted_opponent(self.world, other)
            for other in others
        }

    @property
    def choices(self) -> Choices:
        """What a step learns from."""
        return Choices(
            self.estimator,
            self.credit,
            self.filter,
            self.min_spread,
            self.resample_tokens,
            self.denominator,
        )

    @property
    def own_loop(self) -> bool:
        """Whether the job runs in our own loop; it also counts what a filter drops, and why."""
        return self.loop == "own" or (self.loop == "auto" and self.choices != Choices())

    def _check_loop(self) -> None:
        if self.loop not in LOOPS:
            raise OptionError(f"loop must be one of {list(LOOPS)}, got {self.loop!r}")
        beyond = self.choices.beyond_cookbook()
        if self.loop == "cookbook" and beyond:
            given = ", ".join(f"{name}={getattr(self, name)!r}" for name in beyond)
            raise OptionError(f"loop='cookbook' has no seam for {given}; use loop='auto'")
        if self.own_loop and self.mode == "stream":
            raise OptionError("mode='stream' is the cookbook's: our own loop does sync and async")
        across = Choices(self.estimator, self.credit).beyond_cookbook()
        if self.self_play and across:
            raise OptionError(
                f"{' and '.join(across)} would compare roles with each other: self_play needs "
                "estimator='group_centred' and credit='episode'"
            )

    def _check_roles(self) -> None:
        row = spec(self.world)
        for role in [*self.opponents, *([self.role] if self.role else [])]:
            if role not in row.roles:
                raise OptionError(f"{row.id} has the roles {list(row.roles)}, got {role!r}")
        if self.self_play and len(row.roles) < 2:
            raise OptionError(f"self_play needs several roles, {row.id} has {list(row.roles)}")
        if self.self_play and self.role is not None:
            raise OptionError(f"self_play trains every role, got role={self.role!r}")
        if self.separate and (not self.self_play or self.sft):
            raise OptionError("separate policies are those of self_play; it takes no sft")
        if (self.separate or self.sft) and (self.own_loop or self.mode != "sync"):
            what = "separate" if self.separate else "sft"
            raise OptionError(f"{what} has a loop of its own: leave mode, loop and choices alone")

    def save(self, path: Path) -> None:
        """Write the settings as JSON."""
        path.write_text(json.dumps(asdict(self), indent=2, sort_keys=True) + "\n")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read settings written by `save`.

        Raises:
            OptionError: if the file is missing, no JSON, or has unknown fields.
        """
        try:
            data = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise OptionError(f"{path} is no run's settings: {error}") from error
        known = {item.name for item in fields(cls)}
        unknown = sorted(set(data) - known)
        if unknown:
            raise OptionError(f"{path} has unknown settings {unknown}")
        return cls(**{**data, "overrides": tuple(data.get("overrides", ()))})


_SELF_PLAY: Mapping[str, Any] = {"steps": 20}
"""What self-play starts from beyond the world's own: every episode is several rollouts."""


def preset(world: str, level: str | None = None, **changes: Any) -> TrainSettings:
    """Return a world's job with `changes` made; a change of `None` leaves the preset.

    Raises:
        UnknownWorldError: if there is no such world.
        OptionError: if a value is not allowed.
    """
    row = spec(world)
    given = {name: value for name, value in changes.items() if value is not None}
    start = {**row.training, "opponents": row.opponents}
    if given.get("self_play"):
        start |= _SELF_PLAY
    base = TrainSettings(world=row.id, level=level or row.levels[0], **start)
    if "opponents" in given:
        given["opponents"] = {**base.opponents, **given["opponents"]}
    if "options" in given:
        # A world's own options are for Tasks it draws; records of a user have no exact label.
        kept = {} if "data" in given["options"] else base.options
        given["options"] = {**kept, **given["options"]}
    return replace(base, **given)
