"""Declaration of a world, read before the world is loaded."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tokengym.envs.core.errors import OptionError, did_you_mean
from tokengym.rewards.bounds import Range
from tokengym.rewards.control import FlatFloor

WORLD_ID = re.compile(r"([\w-]+/[\w-]+)-v(\d+)", re.ASCII)
"""How an id reads: `namespace/Name-vN`."""


def short_name(world_id: str) -> str:
    """Return an id without namespace and version, in lower case: `forecast`."""
    return world_id.rpartition("-v")[0].rpartition("/")[2].lower()


class Reachable(NamedTuple):
    """The best baseline of those that read only what the Turns of a level say.

    Attributes:
        policy: the baseline that plays it; `oracle` where that reads nothing else.
        method: how it was found, in words, such as "stochastic DP" or "posterior".
        proved: whether no other such policy can earn more on average.
    """

    policy: str
    method: str
    proved: bool


@dataclass(frozen=True)
class WorldSpec:
    """The declaration of a world: everything others must know without loading it.

    Objects of the world are named as `module:name`, so that declaring a world imports nothing.
    `Policy`, `Record` and `World` are those of `tokengym.envs`.

    Attributes:
        id: registered name, such as `tokengym/Forecast-v1`.
        summary: one sentence for people.
        entry_point: `module:class` of the world.
        level_entry_points: the same of levels that have a class of their own, with equal options.
        baselines: `module:mapping` of the world's scripted policies by name.
        roles: the roles, in order of their first turn.
        turn_limits: by level (the first level is the default), the most turns of one role.
        step_range: by role, the range of one step's reward.
        return_range: by role, the range of a whole episode's return.
        render: `module:function` from (World, Record, title) to the matplotlib Figure of an
            episode; empty if the world has no picture.
        demonstrations: `module:policy` that supervised learning imitates in every role; the
            `oracle` baseline if empty.
        blind: `module:function` from World to policies by name that ignore the Task. The best of
            them on given Tasks is what a learner reaches without reading; empty if there are none.
        best_blind: `module:function` from (World, Tasks) to the name of the best of them, or `None`
            where it must be played; for worlds that know it in closed form.
        only_at: by baseline the levels that it is for, if not for all. Elsewhere it plays like
            another one, and tables leave it out.
        planners: baselines that solve, enumerate or read a constant that no Turn shows; studies of
            simple rules leave them out, as they do `oracle`.
        reachable: by level, the best baseline that reads only what the Turns say. It holds for
            the Tasks that the world generates, not for a user's data.
        ladders: `module:mapping` from levels to `Ladder`, the policies by which the first role is
            placed; empty if there are none.
        drawn_since: the version since which Tasks are drawn alike, `None` for its own: a version
            that pays the same Tasks otherwise keeps them, and what was measured of the others.
        revisions: by level how often its Tasks changed since then, 0 if not named. Both are part
            of what seeds a Task; `tests/golden/tasks.json` pins the first Tasks of each.
        training: options of the world in training, such as exact probabilities for labels.
        opponents: by role, who plays it when nobody was named for it: a baseline's name, or `model`
            for the trainer's untrained model. Else the first of `scripted`, `random`, `null` that
            is a baseline.
        evaluation: options of the world in evaluations of trained policies, whatever the training
            was on, such as a label of outcomes where training may use exact probabilities.
        check_options: options of the world in the tables of `tokengym check --all`, such as those
            that take chance out of its returns.
        flat_floor: a rule that pays all bad episodes alike, to compare the graded rewards with.
        violation: name of the end-of-episode metric above 0 where a well-formed reply broke a
            rule, such as a safety floor; empty where none can.
        metrics: `module:mapping` from the names of end-of-episode metrics to `Metric`, which says
            what each means; those named there are on reports, in that order.
        scores: `module:function` from (Tasks, metrics, Generator) to numbers and `Estimate`s by
            name: how the world's field scores a policy, where returns do not say it all. `metrics`
            are those of the ends of episodes, a list of them for each Task; empty if there is none.
        paid_at_end: the levels at which the last Turn alone pays.
        calibration: names of the two end-of-episode metrics that hold what a forecast is scored
            against and what was stated, both in [0, 1]; `None` where nothing is forecast.

    Raises:
        OptionError: if the id does not read `namespace/Name-vN`, there is no role or level, a turn
            limit is below 1, a range is missing or too many, an opponent's role is unknown,
            `drawn_since` is a later version, a policy or method of `reachable` is empty, or
            `reachable` has an unknown level.
    """

    id: str
    summary: str
    entry_point: str
    baselines: str
    roles: tuple[str, ...]
    turn_limits: Mapping[str, int]
    step_range: Mapping[str, Range]
    return_range: Mapping[str, Range]
    render: str = ""
    metrics: str = ""
    demonstrations: str = ""
    blind: str = ""
    best_blind: str = ""
    only_at: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    planners: tuple[str, ...] = ()
    paid_at_end: tuple[str, ...] = ()
    reachable: Mapping[str, Reachable] = field(default_factory=dict)
    ladders: str = ""
    level_entry_points: Mapping[str, str] = field(default_factory=dict)
    drawn_since: int | None = None
    revisions: Mapping[str, int] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    opponents: Mapping[str, str] = field(default_factory=dict)
    evaluation: Mapping[str, Any] = field(default_factory=dict)
    check_options: Mapping[str, Any] = field(default_factory=dict)
    flat_floor: FlatFloor | None = None
    violation: str = ""
    scores: str = ""
    calibration: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        """Refuse a declaration that contradicts itself, by the world's id and the field's name."""
        if WORLD_ID.fullmatch(self.id) is None:
            raise OptionError(f"a world's id reads namespace/Name-vN, got {self.id!r}")
        roles = list(self.roles)
        if not roles or len(set(roles)) < len(roles):
            raise OptionError(f"{self.id}: roles must be one or more different names, got {roles}")
        limits = dict(self.turn_limits)
        if not limits or min(limits.values()) < 1:
            raise OptionError(f"{self.id}: turn_limits must be at least 1 by level, got {limits}")
        for name in ("step_range", "return_range"):
            if set(getattr(self, name)) != set(roles):
                ranged = sorted(getattr(self, name))
                raise OptionError(f"{self.id}: {name} must have the roles {roles}, got {ranged}")
        if not set(self.opponents) <= set(roles):
            opposed = sorted(self.opponents)
            raise OptionError(f"{self.id}: opponents must be of the roles {roles}, got {opposed}")
        self._check_reachable()
        if not 0 <= (self.drawn_since or 0) <= self.version:
            raise OptionError(
                f"{self.id}: drawn_since must be from 0 to {self.version}, got {self.drawn_since}"
            )
        for level, revision in self.revisions.items():
            if level not in limits or revision < 0:
                raise OptionError(
                    f"{self.id}: revisions must be at least 0 by level, got {level}: {revision}"
                )

    def _check_reachable(self) -> None:
        stated, levels = list(self.reachable), list(self.turn_limits)
        if not set(stated) <= set(levels):
            raise OptionError(f"{self.id}: reachable must be of the levels {levels}, got {stated}")
        for level, best in self.reachable.items():
            if not (best.policy and best.method):
                raise OptionError(
                    f"{self.id}: reachable of {level} needs a policy and a method, got {best}"
                )

    def __repr__(self) -> str:
        """Show id, levels and roles."""
        return f"WorldSpec({self.id!r}, levels={list(self.levels)}, roles={list(self.roles)})"

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of the levels, the default first."""
        return tuple(self.turn_limits)

    def class_path(self, level: str | None) -> str:
        """Return `module:class` of the world at a level, the first one if `None`."""
        level = self.levels[0] if level is None else level
        return self.level_entry_points.get(level, self.entry_point)

    def require_level(self, level: str) -> None:
        """Refuse a level that the world does not have.

        Raises:
            OptionError: naming the levels that there are.
        """
        if level not in self.turn_limits:
            near = did_you_mean(level, self.levels)
            raise OptionError(f"{self.id} has the levels {list(self.levels)}, got {level!r}{near}")

    @property
    def turn_limit(self) -> int:
        """The most turns that one role can have at any level."""
        return max(self.turn_limits.values())

    def reply_tokens(self, level: str | None, prompt: str) -> int | None:
        """Return how many tokens a reply may take in which a model thinks before it answers.

        Args:
            level: one of the levels; the first one if `None`.
            prompt: one of `PROMPTS`.

        Returns:
            1,024 at levels of one or two replies and 512 at others; `None` for prompts that ask for
            the answer alone: then what the level's scripted replies need is enough.

        Raises:
            OptionError: if there is no such level.
        """
        level = self.levels[0] if level is None else level
        self.require_level(level)
        if prompt != "full":
            return None
        return 1024 if self.turn_limits[level] <= 2 else 512

    @property
    def unversioned(self) -> str:
        """The id without its version: `tokengym/Forecast`."""
        return self.id.rpartition("-v")[0]

    @property
    def version(self) -> int:
        """The number at the id's end."""
        return int(self.id.rpartition("-v")[2])

    @property
    def seed(self) -> str:
        """The id that seeds Tasks and splits: with the version since which they are drawn alike."""
        since = self.version if self.drawn_since is None else self.drawn_since
        return f"{self.unversioned}-v{since}"

    @property
    def short_name(self) -> str:
        """The id without namespace and version, in lower case: `forecast`."""
        return short_name(self.id)


class WorldTable(dict[str, WorldSpec]):
    """Declarations of worlds by id."""

    def __repr__(self) -> str:
        """Show the ids."""
        return f"{{{', '.join(self)}}}"
