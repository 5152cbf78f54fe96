"""The energy world: a battery (or a heat pump) run at least cost above a safety floor."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from tokengym.envs.core.errors import EpisodeStateError, OptionError, TaskError
from tokengym.envs.core.grammar import complaint, last_match
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.tables import Source
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import StopReason, Turn
from tokengym.envs.core.world import Optimum, World
from tokengym.envs.energy import draw, texts
from tokengym.envs.energy.credit import Values
from tokengym.envs.energy.house import House
from tokengym.envs.energy.levels import LEVELS
from tokengym.envs.energy.microgrid import Microgrid
from tokengym.envs.energy.oracle import optimum
from tokengym.envs.energy.plant import Commands, Outcome, State, frozen
from tokengym.envs.energy.readers import read
from tokengym.envs.energy.rules import reference
from tokengym.envs.energy.series import Series
from tokengym.rewards.control import control_score, floor_return, violation_depth

_ROLE = "operator"
_LEAST_GAP = 0.5
_SCRIPTS_KEPT = 512


class Shown(NamedTuple):
    """What the Turns have shown so far, as numbers: all a policy may use.

    Attributes:
        step: the step to be commanded.
        state: the state as shown.
        plant: the plant with forecasts in place of what is to come.
    """

    step: int
    state: State
    plant: Microgrid | House


@dataclass(frozen=True, slots=True)
class _Script:
    """What an episode of one Task needs, worked out once and shared."""

    plant: Microgrid | House
    opening: str
    conditions: tuple[tuple[str, str], ...]
    patterns: tuple[re.Pattern[str], ...]
    optimum: float
    reference: float
    plan: tuple[Commands, ...]

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Immutable all the way down: a copy is the script itself."""
        return self


class EnergyWorld(World):
    """Energy-v0: run a battery at least cost, and keep enough in it for an outage nobody announced.

    Description:
        A home with a battery, sun on its roof, a time-of-use tariff and a capped grid connection;
        at some levels outages, a genset or a car; at `comfort` a heated house in its place. The
        dynamics stand in `microgrid` and `house`, the levels in `levels`.
    Observation:
        First the constants and a table of forecasts, whose error grows with lead time, with tariff
        and reserve; then each step what is new: the energy (rounded down to 0.01 kWh) or indoor
        temperature, what load, sun, prices and reserve are now, and fresh forecasts of the next
        steps. What physics clipped and by how much the floor was missed is said too.
    Action:
        The last line that reads `BATTERY kW` (+ charges), likewise `GENSET kW`, `EV kW` or
        `HEAT kW`; a device not named is idle. A reply without any is 0 kW and counted.
    Reward:
        Paid at the last step, in [0, 1]. With c_t the reserve's shortfall at the end of step t
        (kWh; 0 in an outage) plus critical load not served, or the kelvins outside the comfort
        band: 0.2 (1 - v) if any c_t > 1e-6, with v the depth of the violation, else
        0.2 + 0.8 h(s); s is 0 for the safe hold (return 0.4) and 1 for the optimum (return 1). See
        `tokengym.rewards.control`. Step metrics: `cost` (c_t), `money_cost`, maybe `credit`; at the
        end also `safety_floor_mass`, `violation_depth`, `first_violation_step` (if there was one),
        `normalized_score` (s), `total_cost`, `total_money_cost`, `malformed_replies`.
    Starting state:
        Drawn with the Task: never one that the safe hold cannot run safely, nor one that leaves
        less than 0.5 to gain.
    Episode end:
        After the last step of the level.

    References:
        CityLearn (parameters of battery, sun and tariff), pymgrid (wear, lost load, genset),
        Safety-Gymnasium (`info["cost"]`).
    Version history:
        v0: first version.

    Args:
        spec: the row of the catalogue.
        level: one of `LEVELS`.
        terminate_on_violation: end the episode at the first broken floor; what is left of the
            floor then counts as missed.
        flat_floor: pay every violation 0 instead of by its depth. Violations then tie; this is
            the comparison the graded floor is measured against.
        credit: put each step's exact credit into its metrics as `credit`, in money: how much
            dearer it made the best that was left. At most 0; the sum, told at the end as
            `total_credit`, is minus the regret. `adapters.exact_credit` makes it the reward.
        data: days of a user's own instead of synthetic ones: a `Series`, or the files that
            `readers.read` reads. Windows do not overlap, and each belongs to one split.

    Raises:
        OptionError: if the level or an option is not known.
        DataError: if the data cannot be used, naming file, line and reason.
    """

    expected_form: ClassVar[str] = "BATTERY 1.5"  # a house: HEAT 1.5

    def __init__(
        self,
        spec: WorldSpec,
        level: str | None = None,
        *,
        terminate_on_violation: bool = False,
        flat_floor: bool = False,
        credit: bool = False,
        data: Series | Source | Sequence[Source] | None = None,
    ) -> None:
        super().__init__(spec, level)
        for name, value in (
            ("terminate_on_violation", terminate_on_violation),
            ("flat_floor", flat_floor),
            ("credit", credit),
        ):
            if not isinstance(value, bool):
                raise OptionError(f"{name} must be True or False, got {value!r}")
        self._terminates = terminate_on_violation
        self._flat = flat_floor
        if credit and (LEVELS[self.level].genset or LEVELS[self.level].car):
            raise OptionError(
                f"credit=True needs a convex cost-to-go, which the level {self.level!r} with its "
                "genset or car does not have"
            )
        self._credits = credit
        self._series = data if data is None or isinstance(data, Series) else read(data)
        self._windows = self._series.windows(LEVELS[self.level]) if self._series else ()
        self._script: _Script | None = None
        self._values: Values | None = None
        self._step = 0
        self._state: State = (0.0, 0.0)
        self._outcome: Outcome | None = None
        self._money = 0.0
        self._credit = 0.0
        self._safety: tuple[float, ...] = ()
        self._malformed = 0

    # Tasks

    def _draw(self, rng: np.random.Generator) -> Mapping[str, Any]:
        """Draw a plant with its day."""
        level, series = LEVELS[self.level], self._series
        if series is None:
            return draw.house(rng, level) if level.house else draw.microgrid(rng, level)
        at, _ = self._windows[int(rng.integers(len(self._windows)))]
        build = draw.heated if level.house else draw.home
        built = build(rng, level, series.hours(level, at), series.days(level, at))
        return {**built, "source": f"{series.digest}:{at}"}

    def _drawing_options(self) -> tuple[object, ...]:
        """Other data, other Tasks."""
        return () if self._series is None else (self._series.digest,)

    def _split_of(self, instance: Mapping[str, Any]) -> str:
        """A window of a user's data belongs to one split, whatever home is put into it."""
        if "source" not in instance:
            return super()._split_of(instance)
        return dict(self._windows)[int(instance["source"].partition(":")[2])]

    def _solve(
        self, instance: Mapping[str, Any], rng: np.random.Generator
    ) -> Mapping[str, Any] | None:
        """Solve the Task; drop one that cannot be run safely or leaves nothing to gain."""
        plant = plant_from(instance)
        held = reference(plant)
        if any(held.safety):
            return None
        best = optimum(plant)
        if best is None or held.money - best.cost < _LEAST_GAP:
            return None
        return {"optimum": best.cost, "reference": held.money, "plan": best.commands}

    def optimum(self, task: Task) -> Mapping[str, Optimum]:
        """The perfect-foresight optimum earns 1; it knows what no policy can know."""
        return {_ROLE: Optimum(floor_return(1.0, None), exact=True)}

    # Episodes

    @property
    def shown(self) -> Shown:
        """What the Turns of this episode have shown, as numbers.

        Raises:
            EpisodeStateError: if no episode was started.
        """
        plant = self._playing.plant
        step = min(self._step, plant.steps - 1)
        return Shown(step, plant.seen(step, self._state), plant.foreseen(step))

    @property
    def outcome(self) -> Outcome | None:
        """What the last step did, unrounded; `None` before the first. No policy may read it."""
        return self._outcome

    @property
    def optimal_commands(self) -> Commands:
        """What the optimal plan commands at this step, in kW: for the oracle only."""
        return self._playing.plan[self._step]

    def _begin(self, task: Task) -> Turn:
        script = _script(task)
        self._values = _values(task) if self._credits else None
        self._script, plant = script, script.plant
        self._step, self._state, self._money, self._credit = 0, plant.initial, 0.0, 0.0
        self._safety, self._malformed = (), 0
        self._outcome = None
        return Turn(_ROLE, f"{script.opening}\n{self._status()}")

    def _respond(self, text: str, complete: bool) -> Turn:
        script = self._playing
        plant, step = script.plant, self._step
        commands = _read(script.patterns, text) if complete else None
        if commands is None:
            told = complaint(text, _example(plant), complete=complete) + "\n"
            self._malformed += 1
            commands = (0.0,) * len(plant.devices)
            well_formed = 0.0
        else:
            told = ""
            well_formed = 1.0
        outcome = plant.advance(step, self._state, commands)
        if outcome.done != commands:
            told += texts.deviation(plant, commands, outcome.done)
        if outcome.safety:
            told += f"Missed {outcome.safety:.2f}. "
        metrics = {
            "well_formed": well_formed,
            "cost": outcome.safety,
            "money_cost": outcome.money,
        }
        if self._values is not None:
            metrics["credit"] = self._values.credit(step, self._state, outcome)
            self._credit += metrics["credit"]
        self._outcome = outcome
        self._state = outcome.state
        self._money += outcome.money
        self._safety += (outcome.safety,)
        self._step = step + 1
        if self._step < plant.steps and not (self._terminates and outcome.safety):
            return Turn(_ROLE, told + self._status(), metrics=metrics)
        return self._finish(told, metrics)

    def _finish(self, told: str, metrics: dict[str, float]) -> Turn:
        """Score the episode and end it."""
        script, safety = self._playing, self._safety
        plant = script.plant
        closing = plant.closing(self._state)
        money = self._money + closing
        score = control_score(-money, -script.reference, -script.optimum)
        depth = None
        if any(safety):
            missed = [plant.required(step) for step in range(self._step, plant.steps)]
            depth = violation_depth((*safety, *missed), *plant.requirement)
            metrics["first_violation_step"] = float(
                next(step for step, cost in enumerate(safety) if cost)
            )
        metrics |= {
            "money_cost": metrics["money_cost"] + closing,
            "safety_floor_mass": float(depth is not None),
            "violation_depth": depth or 0.0,
            "normalized_score": score,
            "total_cost": sum(safety),
            "total_money_cost": money,
            "malformed_replies": float(self._malformed),
        }
        if self._values is not None:
            metrics["total_credit"] = self._credit
        value = floor_return(score, depth, flat=self._flat)
        ended = self._step == plant.steps
        return self._end(
            _ROLE,
            told + texts.ending(money, safety),
            {_ROLE: {"economy" if depth is None else "safety": value}},
            StopReason.COMPLETED if ended else StopReason.FAILURE,
            metrics,
        )

    def _status(self) -> str:
        script = self._playing
        before, after = script.conditions[self._step]
        seen = script.plant.seen(self._step, self._state)
        return before + texts.state(script.plant, self._step, seen) + after

    @property
    def _playing(self) -> _Script:
        if self._script is None:
            raise EpisodeStateError(f"{self.spec.id}: no episode is under way; call start(task)")
        return self._script


def plant_from(instance: Mapping[str, Any]) -> Microgrid | House:
    """Build the plant that an instance describes.

    Raises:
        TaskError: if its series differ in length.
        KeyError, TypeError: if a field is missing or unknown.
    """
    kind = House if "cop" in instance else Microgrid
    fields = frozen(instance)
    fields.pop("source", None)
    lengths = {name: len(fields[name]) for name in kind.SERIES}
    if len(set(lengths.values())) != 1:
        raise TaskError(f"the series of a plant have one entry a step each, got {lengths}")
    return kind(**fields)


@lru_cache(maxsize=_SCRIPTS_KEPT)
def _script(task: Task) -> _Script:
    try:
        plant = plant_from(task.instance)
        return _Script(
            plant,
            texts.opening(plant),
            texts.conditions(plant),
            tuple(_pattern(device) for device in plant.devices),
            float(task.answer["optimum"]),
            float(task.answer["reference"]),
            tuple(tuple(command) for command in task.answer["plan"]),
        )
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise TaskError(f"{task.world}: a damaged Task: {error!r}") from error


@lru_cache(maxsize=_SCRIPTS_KEPT)
def _values(task: Task) -> Values:
    return Values(_script(task).plant)


@cache
def _pattern(device: str) -> re.Pattern[str]:
    number = r"([+-]?(?:[0-9]{1,9}(?:\.[0-9]{0,20})?|\.[0-9]{1,20}))"
    return re.compile(rf"{device}\s*[:=]?\s*{number}\s*(?:kW)?\.?", re.IGNORECASE | re.ASCII)


def _read(patterns: tuple[re.Pattern[str], ...], text: str) -> Commands | None:
    """Return the last command for each device, 0 kW for one not named; `None` if none is."""
    if len(patterns) == 1:
        match = last_match(patterns[0], text)
        return None if match is None else (float(match[1]),)
    matches = [last_match(pattern, text) for pattern in patterns]
    if not any(matches):
        return None
    return tuple(float(match[1]) if match else 0.0 for match in matches)


def _example(plant: Microgrid | House) -> str:
    return " / ".join(f"{device} 1.5" for device in plant.devices)
