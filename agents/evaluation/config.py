"""The settings of `tokengym evaluate`: plain data that becomes a plan."""

from collections.abc import Mapping
from dataclasses import dataclass

from tokengym.agents.evaluation.chat_client import EndpointSettings
from tokengym.agents.evaluation.plan import EvaluationPlace, EvaluationPlan, Split
from tokengym.agents.settings import option
from tokengym.agents.training.config import WorldOptions
from tokengym.envs.core.errors import OptionError
from tokengym.envs.registry import opponents_of_one, policy, spec_and_level

_OF_PLAN = (
    *("policies", "rollouts", "seed", "success_margin", "system", "model", "base_url", "renderer"),
)


@dataclass(frozen=True)
class EvaluationConfig(EndpointSettings, WorldOptions):
    """Tasks, policies and costs of an evaluation.

    Attributes:
        worlds: ids or short names, also with a level: `energy:day`; else it is the world's first.
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
        UnknownWorldError: if there is no such world.
        OptionError: if a value is not allowed.
    """

    worlds: tuple[str, ...]
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
        levels = [(world.id, level) for world, level in map(spec_and_level, self.worlds)]
        for name, values in (("worlds", levels), ("policies", self.policies)):
            if not values or len(set(values)) < len(values):
                raise OptionError(f"{name} must be one or more, all different, got {[*values]}")

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

    def _place(self, world: str) -> EvaluationPlace:
        world_spec, level = spec_and_level(world)
        world_spec.require_level(level)
        role = self.role or world_spec.roles[0]
        unknown = sorted({role, *self.opponents} - {*world_spec.roles})
        if unknown or role in self.opponents:
            raise OptionError(
                f"{world_spec.id} has the roles {list(world_spec.roles)}: one is "
                f"evaluated, got {role!r} and opponents {sorted(self.opponents)}"
            )
        opponents = opponents_of_one(world_spec, self.opponents, role)
        for who in opponents.values():
            policy(world_spec, who)
        return EvaluationPlace(
            world_spec.id,
            level,
            role,
            opponents,
            {**world_spec.evaluation, **self.options},
            self.split,
            self.tasks,
            self.temperature,
            self.max_tokens,
            f"{world_spec.short_name}_{level}",
        )
