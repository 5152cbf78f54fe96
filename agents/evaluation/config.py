"""The settings of `tokengym evaluate`: plain data that becomes a plan."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

from tokengym.agents.evaluation.chat_client import EndpointSettings
from tokengym.agents.evaluation.plan import EvaluationPlace, EvaluationPlan, Split
from tokengym.agents.settings import option
from tokengym.agents.training.config import WorldOptions
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.spec import WorldSpec, short_name
from tokengym.envs.registry import baselines, scripted_opponent, spec, spec_and_level

_OF_PLAN = (
    *("policies", "rollouts", "seed", "success_margin", "system", "model", "base_url", "renderer"),
)


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
        world_spec.require_level(level)
        return cls(world_spec.id, level)

    @property
    def name(self) -> str:
        """The world's short name and the level: `energy:day`."""
        return f"{short_name(self.world)}:{self.level}"


@dataclass(frozen=True)
class EvaluationConfig(EndpointSettings, WorldOptions):
    """Tasks, policies and costs of an evaluation.

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
        again: whether to play Tasks again whose answers have changed.

    Raises:
        OptionError: if a value is not allowed.
    """

    worlds: tuple[WorldLevel, ...]
    policies: tuple[str, ...]
    tasks: int = option(64, "Tasks of each world; all in your own data if not given", least=2)
    rollouts: int = option(1, "rollouts of each Task", least=1)
    split: Split = option("test", "the split that Tasks are from")
    role: str | None = option(None, "the role to evaluate; the first if not given")
    opponents: Mapping[str, str] = option({}, "ROLE=BASELINE plays another role", flag="--opponent")
    temperature: float | None = option(
        None, "sampling temperature of models; 1, or the run's, if not given", least=0
    )
    max_tokens: int | None = option(None, "token limit of a reply", least=1)
    system: str | None = option(
        None, "a system text before every conversation; the chat template's own if not given"
    )
    model: str | None = option(None, "the model of a tinker:// path")
    base_url: str | None = option(None, "address of a Tinker service")
    renderer: str = option("", "name of a cookbook renderer; the model's own if not given")
    seed: int = option(0, "seed of scripted policies")
    success_margin: float = option(
        0.05, "largest shortfall from the oracle that counts as success", least=0
    )
    price_read: float | None = option(None, "dollars per million tokens read", least=0)
    price_written: float | None = option(None, "dollars per million tokens written", least=0)
    again: bool = option(False, "play Tasks again whose answers have changed", flag="--again")

    def __post_init__(self) -> None:
        """Refuse invalid values, naming them."""
        super().__post_init__()
        for name in ("worlds", "policies"):
            values = list(getattr(self, name))
            if not values or len(set(values)) < len(values):
                raise OptionError(f"{name} must be one or more, all different, got {values}")

    @property
    def plan(self) -> EvaluationPlan:
        """Return the Tasks and policies to be played.

        Raises:
            UnknownWorldError: if there is no such world.
            OptionError: if a role or an opponent is not the world's.
        """
        prices = self.price_read, self.price_written
        paid = None if prices == (None, None) else (prices[0] or 0.0, prices[1] or 0.0)
        alike = {name: getattr(self, name) for name in _OF_PLAN}
        return EvaluationPlan(tuple(map(self._place, self.worlds)), prices=paid, **alike)

    def _place(self, at: WorldLevel) -> EvaluationPlace:
        world_spec = spec(at.world)
        role = self.role or world_spec.roles[0]
        if role not in world_spec.roles:
            raise OptionError(
                f"{world_spec.id} has the roles {list(world_spec.roles)}, got {role!r}"
            )
        return EvaluationPlace(
            world_spec.id,
            at.level,
            role,
            _opponents(world_spec, role, self.opponents),
            {**world_spec.evaluation, **self.options},
            self.split,
            self.tasks,
            self.temperature,
            self.max_tokens,
            at.name.replace(":", "_"),
        )


def _opponents(world_spec: WorldSpec, role: str, requested: Mapping[str, str]) -> dict[str, str]:
    """Return by other role the baseline that plays it.

    Raises:
        OptionError: if a role or a baseline is not the world's.
    """
    others = [other for other in world_spec.roles if other != role]
    unknown = sorted(set(requested) - set(others))
    if unknown:
        raise OptionError(
            f"{world_spec.id} has the other roles {others}, got opponents of {unknown}"
        )
    opponents = {
        other: requested.get(other) or scripted_opponent(world_spec, other) for other in others
    }
    scripts = baselines(world_spec) if opponents else {}
    for other, name in opponents.items():
        if name not in scripts:
            raise OptionError(
                f"{other} must be one of the baselines {sorted(scripts)}, got {name!r}"
            )
    return opponents
