"""What a training job is: every choice as frozen data that a run folder can hold as JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, Self

from tokengym.agents.tinker.loop.choices import (
    Choices,
    Credit,
    Denominator,
    Estimator,
    Filter,
)
from tokengym.envs.catalogue import spec
from tokengym.envs.core.errors import OptionError
from tokengym.rewards.advantages import MINIMUM_SPREAD

Mode = Literal["sync", "stream", "async"]
MODES: tuple[Mode, ...] = ("sync", "stream", "async")
Loop = Literal["auto", "cookbook", "own"]
LOOPS: tuple[Loop, ...] = ("auto", "cookbook", "own")

STARTING_POLICY = "tokengym-start"
"""Name of the small model that comes with the package."""


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
        agents: a baseline's name for each role that is not trained.
        overrides: further fields of `tinker_cookbook.rl.train.Config` as `name=value`.
        loop: `cookbook` for the cookbook's own loop, `own` for `agents.tinker.loop`, `auto` for the
            cookbook's unless a choice below is not the default.
        estimator: from rewards to advantages; this and what follows, see `Choices`.
        credit: `episode`, `turn`, or `exact` where the world knows it; that sets its option.
        filter: what becomes of groups that have nothing to teach.
        min_spread: largest spread of a group that counts as none.
        resample_tokens: most tokens a step may spend on groups in place of such groups.
        denominator: which groups a step's sum is over.
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
    agents: Mapping[str, str] = field(default_factory=dict)
    overrides: Sequence[str] = ()
    loop: Loop = "auto"
    estimator: Estimator = "group_centred"
    credit: Credit = "episode"
    filter: Filter = "keep"
    min_spread: float = MINIMUM_SPREAD
    resample_tokens: int | None = None
    denominator: Denominator = "all"

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
        if self.credit == "exact":
            object.__setattr__(self, "options", {**self.options, "credit": True})

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


_PRESETS: Mapping[str, Mapping[str, Any]] = {
    "tokengym/Forecast-v0": {"options": {"label": "expected"}, "max_tokens": 12},
    "tokengym/Energy-v0": {
        "max_tokens": 10,
        "groups_per_batch": 8,
        "steps": 40,
        "evaluation_tasks": 128,
    },
    "tokengym/Warehouse-v0": {
        "max_tokens": 48,
        "groups_per_batch": 12,
        "steps": 60,
        "evaluation_tasks": 256,
    },
    "tokengym/Disruption-v0": {
        "agents": {"challenger": "scripted"},
        "max_tokens": 96,
        "groups_per_batch": 8,
        "steps": 60,
        "evaluation_tasks": 256,
    },
}
"""What a world's job starts from where it differs from the defaults above."""


def preset(world: str, level: str | None = None, **changes: Any) -> TrainSettings:
    """Return a world's job with `changes` made; a change of `None` leaves the preset.

    Raises:
        UnknownWorldError: if there is no such world.
        OptionError: if a value is not allowed.
    """
    row = spec(world)
    base = TrainSettings(world=row.id, level=level or row.levels[0], **_PRESETS.get(row.id, {}))
    given = {name: value for name, value in changes.items() if value is not None}
    if "options" in given:
        # A world's own options are for Tasks it draws; records of a user have no exact label.
        kept = {} if "data" in given["options"] else base.options
        given["options"] = {**kept, **given["options"]}
    return replace(base, **given)
