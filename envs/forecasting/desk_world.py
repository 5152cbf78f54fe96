"""The desk: notes are opened at a price, one call a reply, until an answer is given."""

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tokengym.envs.core.form import ReplyForm, nearness
from tokengym.envs.core.optimum import Optimum
from tokengym.envs.core.task import Task
from tokengym.envs.core.tools import Call, Tool, call_reading, check_tools
from tokengym.envs.core.turn import StopReason, Turn, expected_return
from tokengym.envs.forecasting.desk.archive import ANSWER_SHARE, BASE, PURSE, State, opened
from tokengym.envs.forecasting.desk.compiled import SLIP, SLIP_COST, CompiledDesk
from tokengym.envs.forecasting.desk.generator import FAMILY, draw_archive, draw_contents
from tokengym.envs.forecasting.levels import LEVELS, DeskKnobs
from tokengym.envs.forecasting.question import Question
from tokengym.envs.forecasting.world import ROLE, ForecastWorld
from tokengym.rewards.bounds import dyadic
from tokengym.rewards.form import FORM_SHARE, FormAccount, form_of
from tokengym.rewards.scoring import Forecast

_FORM = "a line with one call, open(note=N) or answer(probability=P), with numbers for N and P"
_FORMS = ("open(note=0)", "answer(probability=0.000)")


class _Step(NamedTuple):
    """Effect of one reply.

    Attributes:
        text: the answer to it.
        terms: the named parts of its reward.
        metrics: of the Turn.
        choice: the value it was expected to leave and earn, less what was to be had.
        luck: what a note showed, less what it was expected to be worth; `None` without a look.
        over: whether the question is answered.
    """

    text: str
    terms: dict[str, float]
    metrics: dict[str, float]
    choice: float
    luck: float | None = None
    over: bool = False


class DeskWorld(ForecastWorld):
    """A forecaster's desk: one question, and an archive of notes that may be read at a price.

    Description:
        A question joins three items by all or by at least one. Reports on them print one of two
        colours; which one means yes is in a style book for each wire, and at `desk_errata` some
        reports were printed in swapped colours, as their errata say. Keys are dear and shared,
        reports cheap, and two reports whose key nobody has read can still contradict each other.
    Observation:
        First the question, the odds and the price of each note; then what the opened note says.
    Action:
        A call: `open(note=3)` or `answer(probability=0.620)`; see `tokengym.envs.core.tools`.
    Reward:
        With 50 points to begin with and 100·S for the answer, 0.95 of them by 150, and 0.05 for
        form. A look costs its price at once. A malformed reply, or a note that is open, costs one
        point and changes nothing; the first also costs form, by its nearness. Without an answer
        what was spent is paid back, and nothing but form is left. With label `expected`, S is
        scored against the exact posterior given the notes that were opened.
    Credit:
        Of every reply, `credit` is what the choice cost against the best one, at most 0;
        `note_luck` and `outcome_luck` are the rest. Their sums and the optimum are the return.

    Its options are those of `ForecastWorld` but `family`, `data`, `cutoff`, `columns` and
    `show_prices`.
    Outcomes are drawn given all notes, and `credit` is always reported.
    """

    expected_form: ClassVar[str] = "answer(probability=0.137)"

    _state: State = ()
    _points = PURSE
    _used = 0
    _spent = 0.0
    _account: FormAccount

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Opening a note, and answering."""
        return _tools(self._knobs.reports + 2 + self._knobs.errata)

    @property
    def _knobs(self) -> DeskKnobs:
        knobs = LEVELS[self.level].desk
        assert knobs is not None
        return knobs

    @property
    def desk(self) -> CompiledDesk:
        """The archive, for policies, which read nothing of it but what the Turns say.

        Raises:
            EpisodeStateError: before the first `start`.
        """
        desk = self.compiled[0].desk
        assert desk is not None
        return desk

    @property
    def state(self) -> State:
        """Which notes were opened, and what they showed."""
        return self._state

    @property
    def looks_left(self) -> int:
        """How many notes may still be opened so that a reply is left for the answer."""
        return self.desk.turns - self._used - 1

    @property
    def question(self) -> Question:
        """The question, with the posterior given what was opened for its forecasts."""
        return self.desk.question(self._state)

    @property
    def best_forecast(self) -> Forecast:
        """The posterior given what was opened."""
        return self.question.predictive or (0.5, 0.5)

    @property
    def reply_form(self) -> ReplyForm:
        """One line with a call."""
        return ReplyForm(_FORM, single_line=True)

    def optimum(self, task: Task) -> Mapping[str, Optimum]:
        """Return the expected return of the best way to look and answer."""
        desk = self.compile(task)[0].desk
        assert desk is not None
        value = desk.plan.value(desk.start, desk.turns - 1)
        return {ROLE: Optimum(FORM_SHARE + value, exact=True)}

    def _draw(self, rng: np.random.Generator) -> Mapping[str, Any]:
        shown = draw_archive(rng, self._knobs)
        return {"family": FAMILY, "shown": shown, "turns": self.turn_limit}

    def _split_key(self, instance: Mapping[str, Any]) -> object:
        return instance

    def _solve(self, instance: Mapping[str, Any], rng: np.random.Generator) -> Mapping[str, Any]:
        return draw_contents(instance["shown"], rng)

    def _begin(self, task: Task) -> Turn:
        self._state, self._points, self._used, self._spent = self.desk.start, PURSE, 0, 0.0
        self._account = FormAccount(self.desk.turns)
        return Turn(ROLE, self.desk.opening)

    def _respond(self, text: str, complete: bool) -> Turn:
        call, said = call_reading(text, self.tools, _FORM, complete=complete)
        before = self._value_left(self._state, self._used)
        self._used += 1
        if call is None:
            step = self._slip(text, said)
        elif call.name == "answer":
            step = self._answer(call)
        else:
            step = self._open(call)
        metrics = {**step.metrics, "credit": step.choice - before}
        if call is not None and not complete:
            self._account.note_cut()
            metrics["form"] = 0.0
            metrics["credit"] -= FORM_SHARE / self.desk.turns
        if step.luck is not None:
            metrics["note_luck"] = step.luck
        if step.over or self._used == self.desk.turns:
            return self._close(step, metrics)
        rewards, rounded = self._pay({ROLE: step.terms}, final=False)
        remark = f"{said} " if call is not None and said else ""
        text = f"{remark}{step.text} You have {self._points:.2f} points."
        return Turn(ROLE, text, rewards, rounded, metrics=metrics)

    def _value_left(self, state: State, used: int) -> float:
        """Return the best value from here on; where no reply is left, what is paid back."""
        looks = self.desk.turns - used - 1
        return self._spent if looks < 0 else self.desk.plan.value(state, looks)

    def _charge(self, points: float, cost: float) -> dict[str, float]:
        self._points -= points
        self._spent += cost
        return {"price": -cost}

    def _slip(self, text: str, said: str) -> _Step:
        near = nearness(text, *_FORMS)
        self._account.note_malformed(near)
        terms = self._charge(SLIP, SLIP_COST)
        lost = FORM_SHARE * (1.0 - form_of(near)) / self.desk.turns
        left = self._value_left(self._state, self._used)
        metrics = {"well_formed": 0.0, "form": near}
        return _Step(f"{said}.", terms, metrics, left - SLIP_COST - lost)

    def _open(self, call: Call) -> _Step:
        note = call.arguments["note"] - 1
        metrics = {"well_formed": 1.0, "form": 1.0}
        if self._state[note]:
            terms = self._charge(SLIP, SLIP_COST)
            left = self._value_left(self._state, self._used)
            return _Step(f"Note {note + 1} is open already.", terms, metrics, left - SLIP_COST)
        cost, chances = self.desk.plan.prices[note], self.desk.plan.model.chances
        terms = self._charge(self.desk.archive["notes"][note]["price"], cost)
        mean = 0.0
        for bit in (0, 1):
            state = opened(self._state, note, bit)
            mean += float(chances[state] / chances[self._state]) * self._value_left(
                state, self._used
            )
        self._state = opened(self._state, note, self.desk.contents[note])
        luck = self._value_left(self._state, self._used) - mean
        return _Step(self.desk.read(note), terms, metrics, mean - cost, luck)

    def _answer(self, call: Call) -> _Step:
        share = float(call.arguments["probability"])
        forecast, turn, odds = (1.0 - share, share), self.compiled[0], self.best_forecast
        weights = odds if self.label == "expected" else turn.weights
        value, expected = turn.rule(forecast, weights), turn.rule(forecast, odds)
        metrics = {
            **{"well_formed": 1.0, "form": 1.0, "score": value, "probability": share},
            **{"label": weights[1], "regret": turn.rule(odds, odds) - expected},
        }
        terms = {"score": ANSWER_SHARE * (BASE * value + PURSE)}
        return _Step("", terms, metrics, ANSWER_SHARE * (BASE * expected + PURSE), over=True)

    def _close(self, step: _Step, metrics: dict[str, float]) -> Turn:
        """End the episode: pay for form, and pay back what was spent where nothing was answered."""
        terms, form = step.terms, self._account.form
        if not step.over:
            terms["paid_back"] = self._spent
        # Reward beyond the choice's expected value: chance, and the reward grid.
        due = step.choice if step.over else terms["paid_back"]
        earned = dyadic(terms["score"]) if step.over else terms["paid_back"]
        metrics["outcome_luck"] = earned - due + dyadic(form) - form
        metrics["looks"] = float(sum(map(bool, self._state)))
        metrics["spent"] = PURSE - self._points
        expected = dyadic(due) + dyadic(form) + self._returns[ROLE]
        expected += 0.0 if step.over else terms["price"]
        metrics[expected_return(ROLE)] = expected
        reason = StopReason.COMPLETED if step.over else StopReason.TURN_LIMIT
        return self._end(ROLE, step.text, {ROLE: {**terms, "form": form}}, reason, metrics)


@cache
def _tools(notes: int) -> tuple[Tool, ...]:
    number = {"type": "integer", "minimum": 1, "maximum": notes, "description": "Its number."}
    share = {"type": "number", "minimum": 0, "maximum": 1, "description": "Of the answer yes."}
    return check_tools(
        (
            Tool("open", "Open a note of the archive, at its price.", {"note": number}),
            Tool("answer", "State the probability of yes, and end.", {"probability": share}),
        )
    )
