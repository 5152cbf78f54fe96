"""Returns of a level's named policies, and the laws that the level breaks.

Measured on test Tasks of one role, the first; scripts play the others, and no model is needed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from tokengym.agents.check.laws import broken_laws
from tokengym.agents.scale.level_scale import Scale, best_known, scripted_opponents, skill_of
from tokengym.agents.settings import plain
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.spec import Reachable
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines_at
from tokengym.envs.testing.subject import Subject
from tokengym.rewards.bounds import Range
from tokengym.rewards.estimates import Estimate, mean_estimate


@dataclass(frozen=True)
class LevelCheck:
    """The check of one level.

    Attributes:
        world: id of the world.
        level: the level.
        role: whose returns these are.
        declared: lowest and highest return the world declares.
        scale: what its scripted policies and the best input-independent one earn; `None` of a level
            that breaks a law, whose returns mean nothing.
        reached_by: the best baseline that reads only what the Turns say; `None` where the
            world declares none, or the Tasks are a user's.
        broken: by name of a law, what broke it.
    """

    world: str
    level: str
    role: str
    declared: Range
    scale: Scale | None
    reached_by: Reachable | None
    broken: Mapping[str, str]

    @classmethod
    def measure(cls, world: World, subject: Subject, tasks: int, *, of_world: bool = True) -> Self:
        """Check the laws of a level, and play its policies.

        Args:
            world: the level; an episode under way in it is dropped.
            subject: the same, as laws take it.
            tasks: test Tasks, or all of them where there are fewer.
            of_world: whether to check laws of the world as a whole too, which are costly.

        Raises:
            OptionError: if there are fewer than two test Tasks.
        """
        tested = world.first_tasks("test", tasks)
        if len(tested) < 2:
            raise OptionError(f"a check needs at least 2 test Tasks, got {len(tested)}")
        role, scale = world.spec.roles[0], None
        if not (broken := broken_laws(subject, of_world=of_world)):
            of_role = role, scripted_opponents(world, role)
            scale = Scale.measure(world, tested, *of_role, policies=baselines_at(world))
        declared, best = world.spec.return_range[role], best_known(world)
        return cls(world.spec.id, world.level, role, declared, scale, best, broken)

    @property
    def returns(self) -> dict[str, Estimate]:
        """Returns by policy, as means over outcomes where the level states them."""
        policies = {} if self.scale is None else self.scale.returns
        return {name: mean_estimate(earned.used_T) for name, earned in policies.items()}

    @property
    def skills(self) -> dict[str, Estimate]:
        """Skill of each policy on these Tasks: 0 is the best constant, 1 the oracle."""
        if (scale := self.scale) is None:
            return {}
        return {name: skill_of(scale.used, each.used_T) for name, each in scale.returns.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values: the means of the scale, not its Tasks."""
        found = {**vars(self), "returns": self.returns, "skills": self.skills}
        if (scale := found.pop("scale")) is not None:
            found |= {"tasks": len(scale.limits_T), "unit": scale.unit, "blind": scale.blind}
            found |= {"optimum": scale.optimum, "exact": scale.exact}
        values: dict[str, Any] = plain(found)
        return values
