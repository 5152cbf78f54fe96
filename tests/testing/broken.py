"""Worlds that break one law each."""

import copy
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np

from tests.testing.thermometer import ROLE, Days, Thermometer
from tokengym.envs.core.optimum import Optimum
from tokengym.envs.core.seeding import SPLITS
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import StopReason, Turn
from tokengym.envs.core.world import World
from tokengym.rewards.bounds import Range

# Tasks


class DrawsAnew(Thermometer):
    drawn = 0

    def _draw(self, rng: np.random.Generator) -> Mapping[str, Any]:
        type(self).drawn += 1
        return {**super()._draw(rng), "drawn": type(self).drawn}


class DrawsByProcess(Thermometer):
    def _draw(self, rng: np.random.Generator) -> Mapping[str, Any]:
        return {**super()._draw(rng), "process": os.getpid()}


class WritesItsOwnJson(Thermometer):
    def task(self, split: str = "train", index: int = 0) -> Task:
        task = super().task(split, index)
        return replace(task, instance_json=task.instance_json.replace(",", ", "))


class ForgetsTheSplit(Thermometer):
    def task(self, split: str = "train", index: int = 0) -> Task:
        super().task(split, index)
        return replace(super().task("test", index), split=split)


class RepeatsTasks(Thermometer):
    def task(self, split: str = "train", index: int = 0) -> Task:
        return replace(super().task(split, index - index % 2), index=int(index))


class TakesAnySplit(Thermometer):
    def task(self, split: str = "train", index: int = 0) -> Task:
        return super().task(split.lower(), index)


class TakesAnyIndex(Thermometer):
    def task(self, split: str = "train", index: int = 0) -> Task:
        return super().task(split, abs(index) if isinstance(index, int) else index)


class GoesOnPastTheEnd(Thermometer):
    """Twenty records a split, and the last of them again and again."""

    def _sizes(self) -> Mapping[str, int]:
        return dict.fromkeys(SPLITS, 20)

    def _task_of_record(self, split: str, index: int) -> Task:
        return self._draw_task(split, index)

    def task(self, split: str = "train", index: int = 0) -> Task:
        return super().task(split, 19 if index == 20 else index)


class HasNoTasks(Thermometer):
    def _sizes(self) -> Mapping[str, int]:
        return dict.fromkeys(SPLITS, 0)


class PlaysForeignTasks(Thermometer):
    def start(self, task: Task) -> Turn:
        return super().start(replace(task, world=self.spec.id))


class TrustsItsTasks(Thermometer):
    def _begin(self, task: Task) -> Turn:
        self.tomorrow = task.instance["tomorrow"]
        return super()._begin(task)

    def _draw(self, rng: np.random.Generator) -> Mapping[str, Any]:
        return {**super()._draw(rng), "tomorrow": 7}


# Episodes


class AnswersAlways(Thermometer):
    def reply(self, text: str, *, complete: bool = True, role: str | None = None) -> Turn:
        if self._role is None:
            return Turn(ROLE, "What?")
        return super().reply(text, complete=complete, role=role)


class AnswersAnyone(Thermometer):
    def reply(self, text: str, *, complete: bool = True, role: str | None = None) -> Turn:
        return super().reply(text, complete=complete)


class RefusesTasks(Thermometer):
    def _begin(self, task: Task) -> Turn:
        if task.index == 1:
            raise KeyError("averages")
        return super()._begin(task)


class RaisesOnAWord(Thermometer):
    def _respond(self, text: str, complete: bool) -> Turn:
        if "nan" in text.lower():
            int(text)
        return super()._respond(text, complete)


class RaisesWhereCutOff(Thermometer):
    """Hard to find by fixed replies: only a certain one, cut off at the second turn."""

    def _respond(self, text: str, complete: bool) -> Turn:
        if self._day == 1 and text.isascii() and text.strip() and not complete:
            raise IndexError(text)
        return super()._respond(text, complete)


class RaisesOnItsPrompt(Thermometer):
    def _respond(self, text: str, complete: bool) -> Turn:
        if text.startswith("On average"):
            raise RecursionError
        return super()._respond(text, complete)


class ShowsBytes(Thermometer):
    def _question(self) -> str:
        return super()._question().encode()  # type: ignore[return-value]


class PaysAStranger(Thermometer):
    def _respond(self, text: str, complete: bool) -> Turn:
        turn = super()._respond(text, complete)
        return turn._replace(rewards={**turn.rewards, "judge": 0.0})


class NeverEnds(Thermometer):
    def _respond(self, text: str, complete: bool) -> Turn:
        self._day = 0
        return super()._respond(text, complete)


class Overpays(Thermometer):
    def _nearness(self, text: str, match: re.Match[str] | None) -> float:
        return 1.5 * super()._nearness(text, match)


class OverpaysInSecret(Thermometer):
    """Does not ask the base class, which would refuse the reward."""

    def _respond(self, text: str, complete: bool) -> Turn:
        turn = super()._respond(text, complete)
        self._returns[ROLE] += 1.0
        paid = {ROLE: turn.rewards[ROLE] + 1.0}
        return turn._replace(rewards=paid, terms={ROLE: {"all": paid[ROLE]}})


class ReturnsTooMuch(Thermometer):
    """Each reward is in its range, and the two together are not."""

    def __init__(self, spec: WorldSpec, level: str | None = None) -> None:
        super().__init__(replace(spec, return_range={ROLE: Range(0.0, 0.6)}), level)


class PaysOffTheGrid(Thermometer):
    def _respond(self, text: str, complete: bool) -> Turn:
        turn = super()._respond(text, complete)
        paid = {ROLE: 0.3 * turn.rewards[ROLE]}
        return turn._replace(rewards=paid, terms={ROLE: {"all": paid[ROLE]}})


class NamesOtherTerms(Thermometer):
    def _respond(self, text: str, complete: bool) -> Turn:
        return super()._respond(text, complete)._replace(terms={ROLE: {"nearness": 1.0}})


class MisstatesReturns(Thermometer):
    @property
    def returns(self) -> Mapping[str, float]:
        return {ROLE: 0.0}


class DoesNotJudgeTheForm(Thermometer):
    def _respond(self, text: str, complete: bool) -> Turn:
        return super()._respond(text, complete)._replace(metrics={})


class EndsWithoutReason(Thermometer):
    def _respond(self, text: str, complete: bool) -> Turn:
        return super()._respond(text, complete)._replace(stop_reason=None)


class PaysNonsense(Thermometer):
    def _nearness(self, text: str, match: re.Match[str] | None) -> float:
        return 0.25 if match is None and len(text) > 1000 else super()._nearness(text, match)


class PaysANearMiss(Thermometer):
    def _nearness(self, text: str, match: re.Match[str] | None) -> float:
        near = match is None and "GUESS" in text
        return 0.25 if near else super()._nearness(text, match)


class IgnoresTheCut(Thermometer):
    def _respond(self, text: str, complete: bool) -> Turn:
        return super()._respond(text, True)


class PaysWhatWasCutOff(Thermometer):
    """Calls it malformed, and pays."""

    def _respond(self, text: str, complete: bool) -> Turn:
        turn = super()._respond(text, True)
        return turn._replace(metrics={"well_formed": float(complete and len(text) < 20)})


class StopsLikeAnEnd(Thermometer):
    def stop(
        self, reason: StopReason = StopReason.TOKEN_BUDGET, *, after: Turn | None = None
    ) -> Turn:
        return super().stop(reason, after=after)._replace(terminated=True, truncated=False)


# Twins


class SharesItsDay(Thermometer):
    """The day is the class's: one world at a time plays well."""

    now = 0

    @property
    def _day(self) -> int:
        return type(self).now

    @_day.setter
    def _day(self, day: int) -> None:
        type(self).now = day


class Remembers(Thermometer):
    """Counts its episodes and pays less in each."""

    def __init__(self, spec: WorldSpec, level: str | None = None) -> None:
        super().__init__(spec, level)
        self._played = 0

    def _begin(self, task: Task) -> Turn:
        self._played += 1
        return super()._begin(task)

    def _nearness(self, text: str, match: re.Match[str] | None) -> float:
        return super()._nearness(text, match) / self._played


class ForksShareAList(Thermometer):
    """A fork keeps the list that the world goes on to change."""

    def fork(self) -> Self:
        return copy.copy(self)

    def _respond(self, text: str, complete: bool) -> Turn:
        self._measured.append(self._measured[0] + len(text))
        turn = super()._respond(text, complete)
        return turn._replace(metrics={**turn.metrics, "noted": float(len(self._measured))})


class LosesItsStateInAPickle(Thermometer):
    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_averages": [0, 0]}


class CannotBePickled(Thermometer):
    def _begin(self, task: Task) -> Turn:
        self._ticks = (tick for tick in range(9))
        return super()._begin(task)


class ShowsTheAnswer(Thermometer):
    def _question(self) -> str:
        return f"{super()._question()} ({self.measured % 10})"


# Returns


class PromisesTooMuch(Thermometer):
    def optimum(self, task: Task) -> Mapping[str, Optimum]:
        return {ROLE: Optimum(1.5, exact=False)}


class PaysHalf(Thermometer):
    """The oracle earns half of what is stated to be the optimum."""

    def optimum(self, task: Task) -> Mapping[str, Optimum]:
        return {ROLE: Optimum(1.0, exact=True)}

    def _nearness(self, text: str, match: re.Match[str] | None) -> float:
        return super()._nearness(text, match) / 2


class PaysAllAlike(Thermometer):
    def _nearness(self, text: str, match: re.Match[str] | None) -> float:
        return 0.25 if match else 0.0


class PrintsTheAnswer(Thermometer):
    """What is measured follows from what was drawn, and stands in the prompt."""

    @classmethod
    def _compile(cls, task: Task) -> Days:
        (first, second) = task.instance["averages"]
        return Days((int(first), int(second)), (int(first), int(second)))

    def _question(self) -> str:
        return f"It was measured (for the grader: GUESS {self.measured})."


class PromisesTooLittle(Thermometer):
    def optimum(self, task: Task) -> Mapping[str, Optimum]:
        return {ROLE: Optimum(0.125, exact=True)}


class PaysTheFarther(Thermometer):
    """The oracle's guess earns the least."""

    def _nearness(self, text: str, match: re.Match[str] | None) -> float:
        return 0.5 - super()._nearness(text, match) if match else 0.0


class Lottery(Thermometer):
    """Sound: what is near pays 0.95 at most, and a gamble all or nothing, nine times in ten all."""

    def _nearness(self, text: str, match: re.Match[str] | None) -> float:
        if match is not None and match[1] == "999":
            return 0.5 if self.measured % 10 != 2 else 0.0
        return 0.95 * super()._nearness(text, match)


def gamble(world: World, turn: Turn, rng: np.random.Generator) -> str:
    """Say what pays all or nothing."""
    return "GUESS 999"


# Envs


class ShowsABook(Thermometer):
    """More than an observation has room for."""

    def _question(self) -> str:
        return "read! " * 10_000 + super()._question()


class ShowsItsProcess(Thermometer):
    def _question(self) -> str:
        return f"{super()._question()} (asks {os.getpid()})"
