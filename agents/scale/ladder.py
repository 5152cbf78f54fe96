"""The reference policies of a level, measured, and where a policy stands among them.

`LevelLadder` has what each reference policy gains, in the natural unit of the game, as a share of
what the top one gains over doing nothing. Those of the levels we ship are in `scales.json`;
reference policies that 400 Tasks cannot tell from a better one are merged with it. A policy's
`Standing` is between two reference policies that played the same Tasks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from time import process_time
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from tokengym.agents.execution.executors import IN_PROCESS, Executor
from tokengym.agents.scale.level_scale import (
    Scale,
    blind_label,
    find_blind,
    ladder_of,
    scripted_opponents,
    shipped_rows,
    skill_of,
)
from tokengym.agents.settings import read_plain
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.ladder import Ladder, Rung
from tokengym.envs.core.play import Policy, play
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines
from tokengym.rewards.estimates import Estimate, mean_estimate
from tokengym.rewards.skill import Yardstick

TASKS = 400
"""Tasks of the ladder of a level."""
_SOLVED = 1e-3
"""Share of the best reference policy's mean gain that may be missing on a solved Task."""
_TIMED = 20
_PATIENCE = 0.03
"""Most processor time, in seconds a Task, of a reference policy that an evaluation plays beside."""

Values = tuple[float, ...]


class MeasuredRung(NamedTuple):
    """A reference policy of a level.

    Attributes:
        policy: the baseline that plays it, or what the best input-independent baseline is called;
            empty of code that is not in the package.
        kind: see `tokengym.envs.core.ladder.Kind`.
        name: what the field calls it.
        source: author and year; empty where it is folklore.
        seconds: processor time a Task.
        share: what it gains over `zero` as a share of what the best reference policy gains.
        solved: share of the Tasks on which it gains as much as the best reference policy.
        broken: share of those on which it broke a rule of the world's; `None` if that has none.
        gap: what the next reference policy gains more, as such a share, paired by Task; `None` of
            the top one.
        effect: mean over standard deviation of that gap; `None` of the top one.
    """

    policy: str
    kind: str
    name: str
    source: str
    seconds: float
    share: Estimate
    solved: float
    broken: float | None
    gap: Estimate | None
    effect: float | None


class PlayedRung(NamedTuple):
    """A reference policy that was played on T Tasks.

    Attributes:
        rung: which.
        values_T: in the unit of the ladder.
        broken_T: whether it broke a rule of the world's; empty if that has none.
        seconds: processor time a Task.
    """

    rung: Rung
    values_T: Values
    broken_T: Values
    seconds: float


@dataclass(frozen=True)
class LevelLadder:
    """The reference policies of a level on the same Tasks, from the lowest to the highest.

    Attributes:
        zero: the baseline whose value counts as nothing gained.
        unit: of the values.
        gain: what the best reference policy gains a Task, in that unit.
        tasks: how many.
        rungs: each beats the one before it, paired.
        merged: by name of a reference policy that the next one does not beat, or that is below the
            best input-independent baseline, the one it is merged with.
    """

    zero: str
    unit: str
    gain: float
    tasks: int
    rungs: tuple[MeasuredRung, ...]
    merged: Mapping[str, str]

    @classmethod
    def measure(
        cls,
        world: World,
        tasks: Sequence[Task],
        executor: Executor = IN_PROCESS,
        blind: str | None = None,
        outside: Sequence[PlayedRung] = (),
    ) -> Self:
        """Play all reference policies of a world's level, and merge those that do not differ.

        Args:
            world: the world.
            tasks: Tasks of it, at least 2.
            executor: plays them.
            blind: name of the input-independent baseline; what `find_blind` says if `None`.
            outside: reference policies that are no baselines, as played on the same Tasks.

        Raises:
            OptionError: if the level has no ladder, or there are fewer than 2 Tasks.
        """
        role = world.spec.roles[0]
        ladder = ladder_of(world.spec, world.level, role)
        if ladder is None or len(tasks) < 2:
            raise OptionError(
                f"a ladder needs 2 Tasks and reference policies that {world.spec.id} declares for "
                f"{world.level!r}, got {len(tasks)} Tasks"
            )
        opponents = scripted_opponents(world, role)
        blind = blind or find_blind(world, tasks, role, opponents, executor)
        names = [ladder.zero, *(rung.policy for rung in ladder.rungs)]
        scale = Scale.measure(world, tasks, role, opponents, executor, names, blind)

        def played(rung: Rung) -> PlayedRung:
            earned = scale.returns[rung.policy]
            seconds = _seconds(world, tasks[:_TIMED], rung.policy, opponents)
            return PlayedRung(rung, earned.values_T, earned.broken_T, seconds)

        *lower, top = map(played, ladder.rungs)
        lowest = played(Rung(blind, "constant", blind_label(world, blind)))
        kept, merged = _told_apart([lowest, *lower, *outside], top, lowest.rung.name)
        zero = scale.returns[ladder.zero].values_T
        gain = fmean(top.values_T) - fmean(zero)
        ends = Yardstick(zero, top.values_T, ladder.zero)
        rungs = []
        for one, after in zip(kept, [*kept[1:], None], strict=True):
            mine = np.array(one.values_T)
            above = None if after is None else np.array(after.values_T) - mine
            lead = None if above is None else mean_estimate((above / gain).tolist())
            rungs.append(
                MeasuredRung(
                    *one.rung,
                    one.seconds,
                    skill_of(ends, mine),
                    float((mine >= np.array(top.values_T) - _SOLVED * gain).mean()),
                    fmean(one.broken_T) if one.broken_T else None,
                    lead,
                    None if above is None else float(above.mean() / above.std(ddof=1)),
                )
            )
        return cls(ladder.zero, ladder.unit, gain, len(tasks), tuple(rungs), merged)


def _told_apart(
    candidates: Sequence[PlayedRung], top: PlayedRung, blind: str
) -> tuple[list[PlayedRung], dict[str, str]]:
    """Return reference policies that each beat the one before, and merges of the others.

    Nothing stands below the best policy that ignores the Task, which is called `blind`.
    """
    kept, merged = [top], dict[str, str]()
    for one in sorted(candidates, key=lambda one: fmean(one.values_T), reverse=True):
        above_blind = blind not in {kept[0].rung.name, *merged}
        if above_blind and _lead(kept[0].values_T, one.values_T).low > 0.0:
            kept.insert(0, one)
        else:
            merged[one.rung.name] = kept[0].rung.name
    return kept, merged


def _lead(better: Values, worse: Values) -> Estimate:
    return mean_estimate((np.array(better) - np.array(worse)).tolist())


def _seconds(
    world: World, tasks: Sequence[Task], policy: str, opponents: Mapping[str, Policy]
) -> float:
    """Return the processor time that a baseline takes a Task; 0 of what is no baseline."""
    plays, spent = baselines(world.spec).get(policy), 0.0
    if plays is None:
        return spent

    def timed(made: World, turn: Turn, rng: np.random.Generator) -> str:
        nonlocal spent
        started = process_time()
        reply = plays(made, turn, rng)
        spent += process_time() - started
        return reply

    for task in tasks:
        play(world, task, {**opponents, world.spec.roles[0]: timed}, seed=(0, 0))
    return spent / len(tasks)


def shipped_ladder(world: World, role: str) -> LevelLadder | None:
    """Return the ladder of a level that we ship, whatever its label; `None` of others and data."""
    key = world.spec.id, world.level, role
    rows = shipped_rows() if world.draws_as_usual else ()
    known = (row for row in rows if (row["world"], row["level"], row["role"]) == key)
    ladders = (row["ladder"] for row in known if "ladder" in row)
    return next((read_plain(LevelLadder, row) for row in ladders), None)


def rung_names(world: World, role: str, patience: float = _PATIENCE) -> list[str]:
    """Return the baselines by which a role's standing is found; none where it has no ladder.

    Args:
        world: the world.
        role: the role.
        patience: seconds; a reference policy that takes longer a Task is left out, since an
            evaluation must not wait for planners that nobody named.
    """
    ladder, shipped = ladder_of(world.spec, world.level, role), shipped_ladder(world, role)
    rungs = shipped.rungs if shipped else ()
    dear = {rung.policy for rung in rungs if rung.seconds > patience}
    unmerged = [] if ladder is None else _unmerged(world, role, ladder)
    return [rung.policy for rung in unmerged if rung.policy not in dear]


def _unmerged(world: World, role: str, ladder: Ladder) -> Sequence[Rung]:
    shipped = shipped_ladder(world, role)
    return [rung for rung in ladder.rungs if shipped is None or rung.name not in shipped.merged]


def rung_values(world: World, role: str, scale: Scale) -> dict[str, Values]:
    """Return by name the values of a role's reference policies that a scale has measured.

    Args:
        world: the world.
        role: the role.
        scale: has what `rung_names` earn.
    """
    ladder = ladder_of(world.spec, world.level, role)
    if ladder is None:
        return {}
    blind = Rung(scale.blind, "constant", scale.label)
    return {
        rung.name: scale.returns[rung.policy].values_T
        for rung in (blind, *_unmerged(world, role, ladder))
        if rung.policy in scale.returns
    }


class Standing(NamedTuple):
    """Where a policy stands among reference policies on the same Tasks.

    Attributes:
        below: the reference policy under it; empty if there is none.
        above: the next one; empty if there is none, or it earns what the reference policy under it
            does.
        way: the share of the way from the first to the second; `None` without both.
    """

    below: str
    above: str
    way: Estimate | None

    def __str__(self) -> str:
        """Describe it: `between time of use and optimum, 60 % of the way (95 % CI 40 to 80 %)`."""
        if self.way is None:
            return f"at {self.below}" if self.below else f"below {self.above}"
        value, low, high, _ = self.way
        ends = f" (95 % CI {_percent(low)} to {_percent(high)} %)" if low < high else ""
        return f"between {self.below} and {self.above}, {_percent(value)} % of the way{ends}"


def find_standing(rungs: Mapping[str, Values], values_T: npt.ArrayLike) -> Standing | None:
    """Return where a policy stands; `None` without reference policies, or values that are known.

    Args:
        rungs: by name the values of each on T Tasks.
        values_T: of the policy on the same Tasks, shape (T,); NaN for those it lost.
    """
    mine_T = np.asarray(values_T, np.float64)
    known_T = ~np.isnan(mine_T)
    if not rungs or not known_T.any() or {*map(len, rungs.values())} != {len(mine_T)}:
        return None
    means = {name: float(np.array(theirs)[known_T].mean()) for name, theirs in rungs.items()}
    mean = float(mine_T[known_T].mean())
    # Of reference policies that earn the same here the last one, which is the better one elsewhere.
    below = max((n for n in means if means[n] <= mean), key=lambda n: means[n], default="")
    above = min((n for n in means if means[n] > mean), key=lambda n: means[n], default="")
    if below and np.array_equal(mine_T[known_T], np.array(rungs[below])[known_T]):
        above = ""  # it is that reference policy
    if not (below and above):
        return Standing(below, above, None)
    ends = Yardstick(rungs[below], rungs[above], below)
    return Standing(below, above, skill_of(ends, mine_T))


def _percent(share: float) -> int:
    return 10 * round(10 * share)
