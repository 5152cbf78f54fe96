"""The settings of an evaluation: names and numbers, which its folder holds as JSON."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal, NamedTuple, Self

from tokengym.agents.settings import option
from tokengym.agents.training.setting_groups import WorldOptions
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.spec import short_name
from tokengym.envs.registry import spec_and_level

Split = Literal["train", "validation", "test"]


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
        world_spec, level = spec_and_level(text)
        return cls(world_spec.id, level)

    @property
    def name(self) -> str:
        """The world's short name and the level: `energy:day`."""
        return f"{short_name(self.world)}:{self.level}"


@dataclass(frozen=True)
class EvaluationConfig(WorldOptions):
    """The settings of one evaluation.

    Attributes:
        worlds: the worlds, each at one level.
        policies: who plays: a baseline's name, a run folder, a model's name or directory, a
            `tinker://` path, or `openai:MODEL@URL`.
        tasks: number of Tasks of each world, the first ones of the split.
        options: of every world.
        opponents: by other role the baseline that plays it; a script of the world's where none is
            named.
        temperature: of models and endpoints; `None` for 1, or for a run's own.
        max_tokens: most tokens of a reply of theirs; `None` for 1024 at endpoints, a run's own, or
            what scripted replies need.
        model: name or directory of the model that a `tinker://` path's weights belong to.
        seed: of the scripts' randomness, opponents included.
        prices: dollars per million tokens read and written, or `None`.

    Raises:
        OptionError: if a value is not allowed.
    """

    worlds: tuple[WorldLevel, ...]
    policies: tuple[str, ...]
    tasks: int = option(64, "Tasks of each world; all in your own data if not given", least=2)
    rollouts: int = option(1, "rollouts of each Task", least=1)
    split: Split = option("test", "which Tasks")
    role: str | None = option(None, "the role to evaluate; the first if not given")
    opponents: Mapping[str, str] = option({}, "ROLE=BASELINE plays another role", flag="--opponent")
    temperature: float | None = option(
        None, "of models and endpoints; 1, or the run's, if not given", least=0
    )
    max_tokens: int | None = option(None, "token limit of a reply", least=1)
    system: str = option("", "a system text before every conversation")
    model: str | None = option(None, "the model of a tinker:// path")
    base_url: str | None = option(None, "address of a Tinker service")
    seed: int = option(0, "seed of scripted policies")
    success_margin: float = option(
        0.05, "largest shortfall from the oracle that counts as success", least=0
    )
    prices: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        """Refuse invalid values, naming them."""
        super().__post_init__()
        for name in ("worlds", "policies"):
            values = list(getattr(self, name))
            if not values or len(set(values)) < len(values):
                raise OptionError(f"{name} must be one or more different ones, got {values}")
        if self.prices is not None and not min(self.prices) >= 0.0:
            raise OptionError(f"prices must be at least 0, got {self.prices}")

    @property
    def key(self) -> str:
        """Eight hexadecimal digits that identify the settings."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]
