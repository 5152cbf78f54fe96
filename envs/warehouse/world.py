"""The warehouse as a World: one turn a decision of the shift lead, scored at the end."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import Optimum, World
from tokengym.envs.warehouse import pick
from tokengym.envs.warehouse.levels import LEVELS, draw_pick
from tokengym.envs.warehouse.pick import PickProblem, PickSession
from tokengym.envs.warehouse.prompt import PICK_FORM
from tokengym.rewards.control import bounded_score, control_score

ROLE = "lead"


class WarehouseWorld(World):
    """Lead a shift: batch orders, route trips, reorder stock."""

    expected_form: ClassVar[str] = PICK_FORM

    def __init__(self, spec: WorldSpec, level: str | None = None) -> None:
        super().__init__(spec, level)
        self._session: PickSession | None = None

    @property
    def session(self) -> PickSession:
        """The shift under way."""
        assert self._session is not None
        return self._session

    def optimum(self, task: Task) -> Mapping[str, Optimum]:
        return {ROLE: Optimum(1.0, exact=_problem(task).exact)}

    def _draw(self, rng: np.random.Generator) -> Mapping[str, Any]:
        return draw_pick(rng, LEVELS[self.level])

    def _solve(
        self, instance: Mapping[str, Any], rng: np.random.Generator
    ) -> Mapping[str, Any] | None:
        answer = pick.solve(instance)
        if answer["optimum"] - answer["reference"] < 0.05 * answer["optimum"]:
            return None
        return answer

    def _begin(self, task: Task) -> Turn:
        self._session = _problem(task).begin(self.turn_limit)
        return Turn(ROLE, self._session.opening)

    def _respond(self, text: str, complete: bool) -> Turn:
        session = self.session
        said, reason = session.respond(text, complete)
        if reason is None:
            return Turn(ROLE, said)
        problem = session.problem
        score = control_score(session.objective, problem.reference, problem.optimum)
        metrics = {
            "objective": session.objective,
            "normalized_score": score,
            "refused": float(session.refused),
            "malformed": float(session.malformed),
            **session.metrics(),
        }
        return self._end(ROLE, said, {ROLE: {"score": bounded_score(score)}}, reason, metrics)


@lru_cache(maxsize=4096)
def _problem(task: Task) -> PickProblem:
    try:
        return PickProblem.of(task.instance, task.answer)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TaskError(f"damaged Task of {task.world}: {error}") from error
