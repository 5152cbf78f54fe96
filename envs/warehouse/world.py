"""The warehouse as a World: one turn per decision of the shift lead, scored at the end."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from tokengym.envs.core.errors import DataError, EpisodeStateError, OptionError, TaskError
from tokengym.envs.core.form import ReplyForm
from tokengym.envs.core.optimum import Optimum
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.task import Task, canonical_json, to_plain_json
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.intake.report import IntakeReport
from tokengym.envs.intake.tables import Source
from tokengym.envs.warehouse.data import WarehouseRecords, read
from tokengym.envs.warehouse.games import GAMES
from tokengym.envs.warehouse.games.game import Compiled, Session
from tokengym.envs.warehouse.games.picking.clauses import split_of_words
from tokengym.envs.warehouse.levels import LEVELS, LeaseLevel, Level, PickLevel, StockLevel
from tokengym.rewards.control import bounded_score, control_score
from tokengym.rewards.form import FormAccount

ROLE = "lead"

_LEAST_GAP = 0.05
_MOST_DRAWS = 10_000
_IN_FORM: Mapping[str, float] = MappingProxyType({"well_formed": 1.0, "form": 1.0})


class WarehouseWorld(World[Compiled]):
    """Lead a warehouse: pick orders, reorder stock, lease out storage.

    Modes, by level:

    - `pick`: ship a book of orders in trips. The optimum is exact. `aisle`: four orders of a unit.
      `pick_clauses`: three terms in words change what a good plan is; its wordings, and which
      clauses come together, are of one split alone. The optimum is exact.
      `pick_online`: orders are shown on their release only; the optimum knows them and is a bound.
    - `stock`, `stock_large`: reorder items against random demand, scored on the
      expected cost of the decisions; the optimum is exact.
    - `lease`: quote prices to customers who ask for storage, scored on the expected
      earnings of the quotes; the optimum is exact.

    The objective is the value of orders, less exp(-lateness/decay) of it lost, less walking, and
    less holding, lost sales and reorders. Paid once, at the end: .95 h(s) of `rewards.control`,
    where the optimum has s = 1, and s = 0 has first come, first served, one order at a time with
    lean reorders, or nothing shipped where that earns less than nothing; and .05 for form. Every
    malformed reply costs its share of both, see `rewards.form`: an episode of nothing else earns
    less than .05.

    Args:
        spec: the world's declaration.
        level: `pick` by default.
        data: a user's own records instead of synthetic ones: an `OrderBook` for levels that pick,
            a `SalesHistory` for levels that keep stock, or the files that `data.read` reads.
            Windows do not overlap; later ones belong to validation and test.
        prompt: `full` states the rules in sentences and lets a model think before it answers;
            `direct` is the same, asking for the answer alone; `terse` is short, for tiny models
            that were trained on it.
        credit: report as `credit` how much each reply lowered the return that was still to be had:
            0 for the best one. Their sum is the return less the optimum.

    Raises:
        OptionError: if the level is unknown, or has no exact credit: levels that keep stock or
            lease have, and those that pick drawn orders which are all shown at once.
        DataError: if the data cannot be used, naming file, line and reason.
    """

    expected_form: ClassVar[str] = "REORDER S1 5\nTRIP O1\nQUOTE 9"

    def __init__(
        self,
        spec: WorldSpec,
        level: str | None = None,
        *,
        data: WarehouseRecords | Source | Sequence[Source] | None = None,
        prompt: str = "full",
        credit: bool = False,
    ) -> None:
        super().__init__(spec, level, prompt=prompt)
        if credit and not _foreseen(LEVELS[self.level], drawn=data is None):
            raise OptionError(
                "credit=True needs a level of stock or lease, or drawn orders to pick that are all "
                f"shown at once, got {self.level!r}"
            )
        self._credits, self._within_reach = credit, 1.0
        self._records = data if data is None or isinstance(data, WarehouseRecords) else read(data)
        self._game = GAMES[LEVELS[self.level].mode]
        if self._records is not None:
            if self._records.mode != self._game.mode:
                raise DataError(self._records.purpose)
            self._entries = self._records.entries(LEVELS[self.level])
        self._session: Session | None = None
        self._account = FormAccount(1)

    @property
    def session(self) -> Session:
        """The episode's state, for policies that read what the Turns have shown, and for pictures.

        Raises:
            EpisodeStateError: before the first `start`.
        """
        if self._session is None:
            raise EpisodeStateError(f"{self.spec.id}: no episode is under way; call start(task)")
        return self._session

    @property
    def records(self) -> WarehouseRecords | None:
        """The user's data, whose `refused` lists rows left out; `None` without data."""
        return self._records

    @property
    def data_report(self) -> IntakeReport | None:
        """The report on the rows of `data` that were read and left out; `None` without data."""
        return None if self._records is None else self._records.report()

    @property
    def reply_form(self) -> ReplyForm:
        """A trip in one line, or a line for each item to reorder."""
        form = self.session.form
        return ReplyForm(form.words, form.single_line)

    def optimum(self, task: Task) -> Mapping[str, Optimum]:
        """Return 1, the return of the optimum or, where it is not exact, of its upper bound."""
        return {ROLE: Optimum(1.0, exact=self.compile(task).problem.exact)}

    def task_of(
        self,
        instance: Mapping[str, Any],
        *,
        outcomes: Sequence[Any] | Mapping[str, Any] | None = None,
        split: str = "test",
        index: int = 0,
    ) -> Task:
        """Solve an instance of your own, and return its Task.

        Args:
            instance: plain form of a problem of any mode.
            outcomes: what happens: for `stock` the units asked for by item and day, for `lease`
                `kinds` and `limits` by month. Drawn, always alike for the same instance, if `None`.
            split: split the Task is filed under.
            index: position it is filed under.

        Raises:
            TaskError: if the instance is damaged, too large to solve, or leaves nothing to gain
                over the reference.
        """
        rng = generator(self.spec.seed, "task_of", canonical_json(instance))
        try:
            answer = _solve(instance, rng, outcomes)
        except (KeyError, TypeError, ValueError) as error:
            raise TaskError(f"not an instance of {self.spec.id}: {error!r}") from error
        if answer is None or answer["optimum"] <= answer["reference"]:
            raise TaskError("the instance leaves nothing to gain over the reference policy")
        task = self._new_task(split, index, to_plain_json(instance), to_plain_json(answer))
        self.compile(task).open()
        return task

    def _drawing_options(self) -> tuple[object, ...]:
        return () if self._records is None else (self._records.digest,)

    def _split_key(self, instance: Mapping[str, Any]) -> object:
        """Leave out what is not shown at first: orders not released."""
        if instance["mode"] != "pick" or instance["site"]["announced"]:
            return instance
        known = [order for order in instance["orders"] if not order["release"]]
        return {**instance, "orders": known, "total": len(instance["orders"])}

    def split_of(self, instance: Mapping[str, Any]) -> str:
        """Return the split that has the wordings of an instance's clauses, if there are any."""
        return split_of_words(instance.get("clauses", ())) or super().split_of(instance)

    def _draw(self, rng: np.random.Generator) -> Mapping[str, Any]:
        return self._game.draw(rng, LEVELS[self.level])

    def _sizes(self) -> Mapping[str, int] | None:
        if self._records is None:
            return None
        return {split: len(entries) for split, entries in self._entries.items()}

    def _task_of_record(self, split: str, index: int) -> Task:
        """Return the Task of a window; what a file does not have, such as costs, is drawn."""
        records, entry = self._records, self._entries[split][index]
        assert records is not None
        rng = self._task_generator(split, index)
        for _ in range(_MOST_DRAWS):
            drawn = records.instance(rng, LEVELS[self.level], entry)
            instance = to_plain_json({**drawn, "source": records.digest, "window": entry.start})
            answer = _solve(instance, rng, records.outcomes(entry.start, instance))
            if answer is not None:
                reference = min(answer["reference"], _most_reference(answer))
                answer = to_plain_json({**answer, "reference": reference})
                return self._new_task(split, index, instance, answer)
        raise TaskError(
            f"the window at entry {entry.start} leaves nothing to gain, whatever the costs"
        )

    def _solve(
        self, instance: Mapping[str, Any], rng: np.random.Generator
    ) -> Mapping[str, Any] | None:
        answer = _solve(instance, rng, None)
        fits = answer is not None and answer["reference"] <= _most_reference(answer)
        return answer if fits else None

    def _compile_options(self) -> tuple[object, ...]:
        return (self.prompt, self.turn_limit)

    @classmethod
    def _compile(cls, task: Task, prompt: str = "full", replies: int = 1) -> Compiled:
        game, answer = GAMES[task.instance["mode"]], task.answer
        problem = game.read(task.instance, answer)
        if problem.turns > replies:
            raise TaskError(f"{problem.turns} decisions exceed the level's {replies} turns")
        value = float(answer["reference"]), float(answer["optimum"])
        return Compiled(game, problem, *value, replies, prompt, task.fingerprint)

    def _begin(self, task: Task) -> Turn:
        self._session = self.compiled.open()
        self._account = FormAccount(self._session.replies)
        if self._credits:
            self._within_reach = self._best_return()
        return Turn(ROLE, self.compiled.opening)

    def _score(self, objective: float) -> float:
        return control_score(objective, self.compiled.reference, self.compiled.optimum)

    def _terms(self, objective: float) -> dict[str, float]:
        """Return what is paid for an objective at the end, if no more form is lost."""
        account, value = self._account, bounded_score(self._score(objective))
        return {"score": account.earned(value), "form": account.form}

    def _best_return(self) -> float:
        """Return the return if all replies to come are the best."""
        return sum(self._terms(self.session.within_reach).values())

    def _respond(self, text: str, complete: bool) -> Turn:
        session = self.session
        text, nearness, reason = session.respond(text, complete)
        metrics = _IN_FORM
        if nearness is not None:
            self._account.note_malformed(nearness)
            metrics = {"well_formed": 0.0, "form": nearness}
        elif not complete:
            self._account.note_cut()
            metrics = {"well_formed": 1.0, "form": 0.0}
        if self._credits:
            before, self._within_reach = self._within_reach, self._best_return()
            metrics = {**metrics, "credit": self._within_reach - before}
        if reason is None:
            return Turn(ROLE, text, metrics=metrics)
        terms = self._terms(session.objective)
        metrics = {
            **metrics,
            "objective": session.objective,
            "normalized_score": self._score(session.objective),
            "turns": float(session.turns),
            **session.metrics(),
        }
        return self._end(ROLE, text, {ROLE: terms}, reason, metrics)


def _foreseen(level: Level, *, drawn: bool) -> bool:
    """Return whether the best that is still to be had is known exactly at every turn."""
    if isinstance(level, PickLevel):
        return drawn and level.announced
    return isinstance(level, StockLevel | LeaseLevel)


def _solve(
    instance: Mapping[str, Any], rng: np.random.Generator, outcomes: Any
) -> Mapping[str, Any] | None:
    """Return the answer of an instance of any mode; `None` if there is nothing to decide.

    Raises:
        TaskError, LookupError, TypeError, ValueError: if it is damaged or too large.
    """
    game = GAMES.get(instance["mode"])
    if game is None:
        raise TaskError(f"the modes are {', '.join(GAMES)}, got {instance['mode']!r}")
    return game.solve(instance, rng, outcomes)


def _most_reference(answer: Mapping[str, Any]) -> float:
    """Return the value up to which a reference leaves enough to gain."""
    optimum = float(answer["optimum"])
    return optimum - _LEAST_GAP * max(1.0, optimum)
