"""The settings of an evaluation: names and numbers, which its folder holds as JSON."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, Self

from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.seeding import SPLITS
from tokengym.envs.core.spec import short_name
from tokengym.envs.registry import spec


class WorldLevel(NamedTuple):
    """A world at one of its levels.

    Attributes:
        world: its id.
        level: the level.
    """

    world: str
    level: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `energy` or `energy:day`; without a level it is the world's first.

        Raises:
            UnknownWorldError: if there is no such world.
            OptionError: if it has no such level.
        """
        name, colon, level = text.partition(":")
        world_spec = spec(name)
        if colon and level not in world_spec.levels:
            raise OptionError(
                f"{world_spec.id} has the levels {list(world_spec.levels)}, got {level!r}"
            )
        return cls(world_spec.id, level if colon else world_spec.levels[0])

    @property
    def name(self) -> str:
        """The world's short name and the level: `energy:day`."""
        return f"{short_name(self.world)}:{self.level}"


@dataclass(frozen=True)
class EvaluationConfig:
    """The settings of one evaluation.

    Attributes:
        worlds: the worlds, each at one level.
        policies: who plays: a baseline's name, a run folder, a model's name or directory, a
            `tinker://` path, or `openai:MODEL@URL`.
        tasks: number of Tasks of each world, the first ones of the split.
        rollouts: of each Task.
        split: `train`, `validation` or `test`.
        options: options of every world.
        role: the evaluated role; each world's first if `None`.
        opponents: by other role the baseline that plays it; a script of the world's where none is
            named.
        temperature: of models and endpoints; `None` for 1, or for a run's own.
        max_tokens: most tokens of a reply of theirs; `None` for 1024 at endpoints, a run's own, or
            what scripted replies need.
        system: a text that precedes every conversation with them as the system's.
        model: name or directory of the model that a `tinker://` path's weights belong to.
        base_url: address of a Tinker service.
        seed: of the scripts' randomness, opponents included.
        success_margin: a rollout succeeds that earns no less than this below the oracle.
        prices: dollars per million tokens read and written, or `None`.

    Raises:
        OptionError: if a value is not allowed.
    """

    worlds: Sequence[WorldLevel]
    policies: Sequence[str]
    tasks: int = 64
    rollouts: int = 1
    split: str = "test"
    options: Mapping[str, Any] = field(default_factory=dict)
    role: str | None = None
    opponents: Mapping[str, str] = field(default_factory=dict)
    temperature: float | None = None
    max_tokens: int | None = None
    system: str = ""
    model: str | None = None
    base_url: str | None = None
    seed: int = 0
    success_margin: float = 0.05
    prices: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        """Refuse invalid values, naming them."""
        for name in ("worlds", "policies"):
            given = list(getattr(self, name))
            if not given or len(set(given)) < len(given):
                raise OptionError(f"{name} must be one or more different ones, got {given}")
        for name in ("rollouts", "max_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise OptionError(f"{name} must be at least 1, got {value}")
        if self.tasks < 2:
            raise OptionError(f"tasks must be at least 2, got {self.tasks}")
        if self.split not in SPLITS:
            raise OptionError(f"split must be one of {list(SPLITS)}, got {self.split!r}")
        if self.temperature is not None and not self.temperature >= 0.0:
            raise OptionError(f"temperature must be at least 0, got {self.temperature}")
        if not self.success_margin >= 0.0:
            raise OptionError(f"success_margin must be at least 0, got {self.success_margin}")
        if self.prices is not None and not min(self.prices) >= 0.0:
            raise OptionError(f"prices must be at least 0, got {self.prices}")

    @property
    def key(self) -> str:
        """Eight hexadecimal digits that identify the settings."""
        text = json.dumps(self.to_dict(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    def to_dict(self) -> dict[str, Any]:
        """Return values that JSON can hold."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` returned."""
        return cls(
            **{
                **data,
                "worlds": tuple(WorldLevel(*one) for one in data["worlds"]),
                "policies": tuple(data["policies"]),
                "prices": data["prices"] and tuple(data["prices"]),
            }
        )
