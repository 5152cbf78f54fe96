"""The prompt says all: planners that read only texts do as well as rules that know the world.

A planner parses the full prompt and nothing else, keeps its own books, and raises where a text
contradicts them: what is enforced follows from what is shown.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np
import pytest

from tests.contract.planners import disruption, energy, forecast, warehouse
from tokengym.envs.core.play import play
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines, make_world, spec


class Planner(Protocol):
    """Answers one episode from its texts."""

    def reply(self, text: str) -> str:
        """Read a Turn and answer it."""

    def end(self, text: str) -> None:
        """Read the last Turn."""


PLANNERS: dict[str, Callable[[], Planner]] = {
    "energy": energy.Operator,
    "forecast": forecast.Forecaster,
    "warehouse": warehouse.Lead,
    "disruption": disruption.Predictor,
}
RIVALS = {
    "energy": "mpc",
    "energy-commit": "stochastic",
    "energy-commit_6": "stochastic",
    "forecast": "oracle",
    "warehouse": "replan",
    "disruption": "oracle",
}
"""By world or level, the honest rule that its planner must match."""
TOLERANCES = {"energy": 0.02}
"""By world, what a planner may lose; energy's commands are rounded to the nearest shown digit."""
TOLERANCE = 0.01
TASKS = 3
CASES = [(world, level) for world in PLANNERS for level in spec(world).levels]


@pytest.mark.nightly
@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_a_planner_of_texts_matches_the_best_honest_rule(case: tuple[str, str]) -> None:
    world = make_world(*case, **spec(case[0]).check_options)
    rule = baselines(case[0])[RIVALS.get("-".join(case), RIVALS[case[0]])]
    tasks = [world.task("test", index) for index in range(TASKS)]
    planned = [play_texts(world, task, PLANNERS[case[0]]()) for task in tasks]
    role = spec(case[0]).roles[0]
    honest = [play(world, task, rule).returns[role] for task in tasks]
    assert np.mean(planned) >= np.mean(honest) - TOLERANCES.get(case[0], TOLERANCE)


def play_texts(world: World, task: Task, planner: Planner) -> float:
    """Play an episode with a planner that is given texts alone, and return what it earned.

    Roles other than the first are played by scripts.
    """
    role, rng = world.spec.roles[0], np.random.default_rng(0)
    turn = world.start(task)
    while not turn.done:
        if turn.role == role:
            turn = world.reply(planner.reply(turn.text))
        else:
            turn = world.reply(baselines(world.spec.id)["scripted"](world, turn, rng))
        assert turn.metrics["well_formed"]
    planner.end(turn.text)
    return world.returns[role]
