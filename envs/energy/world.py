"""The energy world: the devices of a home or site run at least cost above a safety floor."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.form import ReplyForm, nearness
from tokengym.envs.core.optimum import Optimum
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.task import Task
from tokengym.envs.core.task_drawing import Unusable
from tokengym.envs.core.turn import StopReason, Turn
from tokengym.envs.core.world import World
from tokengym.envs.energy import generator
from tokengym.envs.energy.compiled import CompiledEnergyTask, compile_task
from tokengym.envs.energy.data import TimeSeries
from tokengym.envs.energy.devices import check_devices, series_from
from tokengym.envs.energy.dispatch import solve_site
from tokengym.envs.energy.grammar import expected, forms, read_commands
from tokengym.envs.energy.indicators import indicators
from tokengym.envs.energy.levels import LEVELS
from tokengym.envs.energy.microgrid import Microgrid
from tokengym.envs.energy.oracle import optimum, plan
from tokengym.envs.energy.plants import Plant, foreseen, plant_from
from tokengym.envs.energy.rules import reference, scale_of
from tokengym.envs.energy.site import OffGridSite
from tokengym.envs.energy.step_result import TOLERANCE, Commands, State, StepResult, rounded_up
from tokengym.envs.intake.report import IntakeReport
from tokengym.envs.intake.tables import Source
from tokengym.rewards.bounds import dyadic
from tokengym.rewards.control import cost_score, floor_return, violation_depth
from tokengym.rewards.form import FormAccount, form_of

_ROLE = "operator"
_LEAST_GAP = 0.5
_LEAST_GAP_KWH = 1.5
"""Where data have lower prices than a home's: the price of this much energy is enough to gain."""


class Shown(NamedTuple):
    """The numbers that the Turns have shown so far, all that a policy may use.

    Attributes:
        step: the step to be commanded.
        state: the state as shown.
        plant: the plant with forecasts instead of what is to come.
        missed: by how much the limit was missed, by step, as shown.
    """

    step: int
    state: State
    plant: Plant
    missed: tuple[float, ...]


class EnergyWorld(World[CompiledEnergyTask]):
    """Run a battery at least cost, and keep enough in it for an unannounced outage.

    Description:
        A home with a battery, sun on its roof, a time-of-use tariff and a capped grid connection;
        at some levels outages; at `household` a car, a heat pump,
        day-ahead prices and a demand charge, at `commit` an off-grid site with two generators.
        The dynamics are those of `microgrid`, `house` and `site`; `levels` defines the levels.
    Observation:
        First the rules, the constants and a table of forecasts, whose error grows with lead time,
        with tariff and reserve; then each step what is new: the energy (rounded down to 0.01 kWh),
        likewise indoor temperature and highest import, the present load, sun, prices and reserve,
        and fresh forecasts of the next steps. Every other number is shown with all its digits. A
        Turn also reports commands that physics clipped and by how much the floor was missed.
    Action:
        `BATTERY kW` (+ charges), likewise `EV kW` and `HEAT kW`, or `BIG kW` and `SMALL kW`, in
        the grammar of `tokengym.envs.core.grammar`. The last line that names a device counts for
        it; a device not named is idle. A malformed reply is 0 kW and costs.
    Reward:
        Paid at the last step, in [0, 1]: a twentieth for form, and 0.95 V times the share of
        well-formed replies; see `tokengym.rewards.form`. With c_t the reserve's shortfall at the
        end of step t (kWh; 0 in an outage) beyond 0.06 kWh plus critical load not served, or the
        kelvins beyond 0.1 outside the comfort band: V = 0.2 (1 - v) if any c_t > 0, with v the
        depth of the violation, else 0.2 + 0.8 h(s), s = 1 - (cost - cost of the optimum) / D. D is
        what the safe hold costs more than the cheapest plan if all comes as first announced; h is
        affine down to s = -1.5. At `commit` the scenario plan takes the optimum's place, both
        costs of D are means over the listed days, and h reaches 1 at s = 1.5. A shortfall within
        the tolerance costs more than it gains. See `tokengym.rewards.control`. Terms: `form`, and
        `safety` or `economy`. Step metrics: `well_formed`, `form` (1 if well-formed, else what
        nearness earned), `cost` (c_t), `money_cost`, maybe `credit`; at the end also
        `safety_floor_mass`, `violation_depth`,
        `first_violation_step` (if there was one), `normalized_score` (s), `total_cost`,
        `total_money_cost`, `malformed_replies`, and those of `indicators`.
    Starting state:
        Drawn with the Task: never one that, as first announced, the safe hold cannot run safely or
        that leaves less than 0.5 to gain.
    Episode end:
        After the last step of the level.

    References:
        CityLearn (parameters of battery, sun and tariff), pymgrid (wear, lost load),
        Safety-Gymnasium (`info["cost"]`).
    Version history:
        v2: homes are drawn anew; the plan of `commit` commands hundredths of a kW.
        v1: `commit` replaces `genset`, `household` replaces `ev` and `comfort`; the return is
            affine in cost, outages last as stated, tenths of a kW break nothing.
        v0: first version.

    Args:
        spec: the world's declaration.
        level: one of `LEVELS`.
        terminate_on_violation: end the episode at the first broken floor; what is left of the
            floor then counts as missed.
        flat_floor: pay 0 for every episode that breaks the limit, instead of grading violations by
            their depth. Violations then tie: the comparison that the graded
            floor is measured against.
        credit: put each step's exact credit into its metrics as `credit`, in money: minus the cost
            it added to the best that was left, and what a malformed reply costs. At most 0; the
            sum, reported at the end as `total_credit`, is minus the regret if no reply was
            malformed. `adapters.exact_credit` makes it the reward.
        data: days of a user's own instead of synthetic ones: a `TimeSeries`, or the files that
            `data.read` reads. Windows do not overlap, and each belongs to one split.
        zone: time zone of the home, a name of the time zone database such as `Europe/Berlin`: times
            of `data` without an offset are local to it, and hours are shown in it.
        resample: bring data in steps of another length to those of the level: means of longer
            steps, repeated values of shorter ones.
        battery_kwh: capacity of every home's battery, instead of one drawn for each.
        battery_kw: most kW that it takes or gives.
        import_cap_kw: most kW bought, 10 by default.
        export_cap_kw: most kW sold, 3 by default.
        pv_scale: a factor of the sun, 1 by default.
        prompt: `full` states the rules in sentences and lets a model think before it answers;
            `direct` is the same, asking for the answer alone; `terse` is short, for tiny models
            that were trained on it.

    Raises:
        OptionError: if the level or an option is not known, or a value is out of its range.
        DataError: if the data cannot be used, naming file, line and reason.
    """

    expected_form: ClassVar[str] = "BATTERY 1.5"

    def __init__(
        self,
        spec: WorldSpec,
        level: str | None = None,
        *,
        terminate_on_violation: bool = False,
        flat_floor: bool = False,
        credit: bool = False,
        data: TimeSeries | Source | Sequence[Source] | None = None,
        zone: str | None = None,
        resample: bool = False,
        battery_kwh: float | None = None,
        battery_kw: float | None = None,
        import_cap_kw: float | None = None,
        export_cap_kw: float | None = None,
        pv_scale: float | None = None,
        prompt: str = "full",
    ) -> None:
        super().__init__(spec, level, prompt=prompt)
        for name, value in (
            ("terminate_on_violation", terminate_on_violation),
            ("flat_floor", flat_floor),
            ("credit", credit),
            ("resample", resample),
        ):
            if not isinstance(value, bool):
                raise OptionError(f"{name} must be True or False, got {value!r}")
        self._terminates = terminate_on_violation
        self._flat = flat_floor
        if credit and (LEVELS[self.level].house or LEVELS[self.level].days):
            raise OptionError(
                f"credit=True needs a convex cost-to-go, which the level {self.level!r} does "
                "not have"
            )
        if LEVELS[self.level].days and data is not None:
            raise OptionError(f"data is not for the level {self.level!r}")
        self._credits = credit
        self._devices = check_devices(
            LEVELS[self.level],
            battery_kwh=battery_kwh,
            battery_kw=battery_kw,
            import_cap_kw=import_cap_kw,
            export_cap_kw=export_cap_kw,
            pv_scale=pv_scale,
        )
        if (resample or zone is not None) and data is None:
            raise OptionError("resample and zone are for data of your own, got none")
        self._series: TimeSeries | None = None
        if data is not None:
            self._series = series_from(data, LEVELS[self.level], self._devices, resample, zone)
            self.windows = self._series.windows(LEVELS[self.level])
            if credit and min((*self._series.price, *self._series.resale), default=0.0) < 0.0:
                raise OptionError("credit=True needs prices that are never negative")
        self._step = 0
        self._state = State(0.0)
        self._outcomes: tuple[StepResult, ...] = ()
        self._money = 0.0
        self._credit = 0.0
        self._account = FormAccount(self.turn_limit)

    def _draw(self, rng: np.random.Generator) -> Mapping[str, Any]:
        level = LEVELS[self.level]
        if level.days:
            return generator.draw_site(rng, level)
        return generator.draw_microgrid(rng, level, self._devices)

    def _draw_window(self, rng: np.random.Generator, start: int) -> Mapping[str, Any]:
        level, series = LEVELS[self.level], self._series
        assert series is not None
        hours, days = series.hours(level, start), series.days(level, start)
        if "price" not in days:
            days |= generator.draw_tariff(rng, level, hours)
        drawn = generator.draw_home(rng, level, hours, days, self._devices)
        return {**drawn, "source": f"{series.digest}:{start}"}

    def _scoring_options(self) -> Mapping[str, Any]:
        flags = {"terminate_on_violation": self._terminates, "flat_floor": self._flat}
        return {name: True for name, value in flags.items() if value}

    def _drawing_options(self) -> tuple[object, ...]:
        data = () if self._series is None else (self._series.digest,)
        return (*data, *(f"{name}={value:g}" for name, value in self._devices.items()))

    def _split_key(self, instance: Mapping[str, Any]) -> object:
        """Return the instance without the future; only forecasts of it are shown."""
        later = ("load", "pv", "up", "outside", "day")
        return {
            name: value
            for name, value in instance.items()
            if not (name in later or name.endswith("_updates"))
        }

    def _solve(
        self, instance: Mapping[str, Any], rng: np.random.Generator
    ) -> Mapping[str, Any] | Unusable:
        """Solve an instance; drop one whose forecast allows no safe plan or no gain."""
        plant = plant_from(instance)
        if isinstance(plant, OffGridSite):
            return solve_site(plant)
        # Whether it is used and how it is scaled may depend on what its first Turn shows alone.
        expected = plant.expected
        hold, planned = reference(expected), plan(expected, 0, expected.initial)
        if planned is None or any(hold.safety):
            return Unusable(self._why_unsafe(plant))
        least = _LEAST_GAP
        if self._series is not None:
            mean = sum(map(abs, plant.price)) / plant.steps
            least = max(min(least, _LEAST_GAP_KWH * mean), TOLERANCE)  # where energy is free
        gain = hold.money - planned.cost
        if gain < least:
            return Unusable(
                f"the cheapest plan saves less than {least:.2g} over leaving the plant alone"
            )
        best = optimum(plant)
        if best is None:
            return Unusable("no plan keeps the limit, whatever it knows")
        return {
            "optimum": best.cost,
            "reference": reference(plant).money,
            "scale": scale_of(hold.money, planned.cost),
            "plan": best.commands,
        }

    @staticmethod
    def _why_unsafe(plant: Microgrid) -> str:
        needs = max(load - pv for load, pv in zip(plant.load, plant.pv, strict=True))
        if needs > plant.import_cap:
            return f"the load exceeds the connection of {plant.import_cap:g} kW (import_cap_kw)"
        if plant.house:
            return "the safe hold leaves the comfort band: the weather is too cold or too warm"
        return "the safe hold misses the reserve: the battery is too weak for it (battery_kw)"

    def optimum(self, task: Task) -> Mapping[str, Optimum]:
        """Return 1, the return of the perfect-foresight plan: a bound, since no policy foresees."""
        return {_ROLE: Optimum(1.0, exact=False)}

    def _compile_options(self) -> tuple[object, ...]:
        return (self.prompt, self._credits)

    @classmethod
    def _compile(cls, task: Task, prompt: str, credit: bool) -> CompiledEnergyTask:
        return compile_task(task, prompt, credit)

    @property
    def shown(self) -> Shown:
        """The numbers that the Turns of this episode have shown.

        Raises:
            EpisodeStateError: if no episode was started.
        """
        plant = self.compiled.plant
        step = min(self._step, plant.steps - 1)
        missed = tuple(rounded_up(outcome.safety) for outcome in self._outcomes)
        return Shown(step, plant.seen(step, self._state), foreseen(plant, step), missed)

    @property
    def data_report(self) -> IntakeReport | None:
        """The report on the rows of `data` that were read and left out; `None` without data."""
        return None if self._series is None else self._series.report

    @property
    def reply_form(self) -> ReplyForm:
        """A line for each device."""
        devices = self.compiled.plant.devices
        return ReplyForm(expected(devices), single_line=len(devices) == 1)

    @property
    def outcome(self) -> StepResult | None:
        """The outcome of the last step, unrounded and hidden; `None` before the first."""
        return self._outcomes[-1] if self._outcomes else None

    @property
    def optimal_commands(self) -> Commands:
        """The commands of the optimal plan at this step, in kW: for the oracle only."""
        return self.compiled.plan[self._step]

    def _begin(self, task: Task) -> Turn:
        compiled = self.compiled
        self._step, self._state = 0, compiled.plant.initial
        self._outcomes = ()
        self._money = self._credit = 0.0
        self._account = FormAccount(compiled.plant.steps)
        return Turn(_ROLE, compiled.prompt.opening)

    def _respond(self, text: str, complete: bool) -> Turn:
        compiled = self.compiled
        plant, prompt, step = compiled.plant, compiled.prompt, self._step
        now = prompt.labels[step]
        commands, said = read_commands(text, plant.devices, now=now, complete=complete)
        feedback, well_formed, form = f"{said}\n" if said else "", 1.0, 1.0
        if commands is None:
            near = nearness(text, *forms(plant.devices))
            self._account.note_malformed(near)
            commands = (0.0,) * len(plant.devices)
            well_formed, form = 0.0, form_of(near)
        elif not complete:
            self._account.note_cut()
            form = 0.0
        outcome = plant.advance(step, self._state, commands)
        if outcome.done != commands:
            feedback += prompt.deviation(commands, outcome.done)
        if outcome.safety:
            feedback += prompt.missed(outcome.safety)
        metrics = {
            "well_formed": well_formed,
            "form": form,
            "cost": outcome.safety,
            "money_cost": outcome.money,
        }
        if compiled.values is not None:
            metrics["credit"] = compiled.values.credit(step, self._state, outcome)
            if form < 1.0:
                metrics["credit"] -= compiled.cost_of_form(well_formed, form)
            self._credit += metrics["credit"]
        self._outcomes += (outcome,)
        self._state = outcome.state
        self._money += outcome.money
        self._step = step + 1
        if self._step == plant.steps or (self._terminates and outcome.safety):
            return self._finish(compiled, feedback, metrics)
        feedback += prompt.turn(step + 1, plant.seen(step + 1, self._state))
        return Turn(_ROLE, feedback, metrics=metrics)

    def _finish(
        self, compiled: CompiledEnergyTask, feedback: str, metrics: dict[str, float]
    ) -> Turn:
        """Score the episode and end it."""
        plant, safety = compiled.plant, [outcome.safety for outcome in self._outcomes]
        closing = plant.closing(self._state)
        money = self._money + closing
        score = cost_score(money, compiled.optimum, compiled.scale)
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
            "malformed_replies": float(self._account.malformed),
            **indicators(plant, self._outcomes),
        }
        if compiled.values is not None:
            metrics["total_credit"] = self._credit
        # Steps that a violation cut off count as missed; their replies dilute no malformed ones.
        account = self._account
        account.replies = self._step
        earned, form = (
            dyadic(account.earned(floor_return(score, depth, plant.most_score))),
            dyadic(account.form),
        )
        if self._flat and depth is not None:
            earned = form = 0.0
        ended = self._step == plant.steps
        return self._end(
            _ROLE,
            feedback + compiled.prompt.ending(money, safety),
            {_ROLE: {"economy" if depth is None else "safety": earned, "form": form}},
            StopReason.COMPLETED if ended else StopReason.FAILURE,
            metrics,
        )
