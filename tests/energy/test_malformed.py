"""Laws of malformed replies: they are 0 kW, they cost, and giving up never pays."""

import numpy as np
import pytest

from tests.energy.drawn import task_of, world_of
from tokengym.envs.core.play import Policy, play
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.energy.world import EnergyWorld
from tokengym.envs.registry import baselines, spec

LEVELS = spec("energy").levels
GARBAGE = ("", "charge a lot", "BATTERY much", "The price is high, so I would sell 3 kW now.")
TASKS = 6


def earned(world: EnergyWorld, task: Task, policy: Policy) -> float:
    return play(world, task, policy).returns["operator"]


def first(world: EnergyWorld, count: int, policy: Policy, then: Policy) -> Policy:
    """Follow a policy for `count` steps, and another one from there on."""

    def both(seen: World, turn: Turn, rng: np.random.Generator) -> str:
        return (policy if world.shown.step < count else then)(seen, turn, rng)

    return both


def always(reply: str) -> Policy:
    return lambda world, turn, rng: reply


@pytest.mark.parametrize("level", LEVELS)
def test_a_malformed_reply_is_no_power_and_costs(level: str) -> None:
    world, null, rule = world_of(level), baselines("energy")["null"], baselines("energy")["hold"]
    task, steps = task_of(level, 0), spec("energy").turn_limits[level]
    for count in (0, 1, steps // 2, steps - 1):
        same = play(world, task, first(world, count, rule, null))
        for reply in GARBAGE:
            policy = first(world, count, rule, always(reply))
            record = play(world, task, policy)
            assert record.returns["operator"] < same.returns["operator"]
            assert record.metrics["total_money_cost"] == same.metrics["total_money_cost"]
            assert record.metrics["malformed_replies"] == steps - count


@pytest.mark.nightly
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", ["noisy", "time_of_use", "hold"])
def test_playing_on_earns_more_than_garbage_from_some_step_on(name: str, level: str) -> None:
    world, policy = world_of(level), baselines("energy")[name]
    tasks = [task_of(level, index) for index in range(3 * TASKS)]
    whole = np.mean([earned(world, task, policy) for task in tasks])
    for count in (0, 1, 3, spec("energy").turn_limits[level] // 2):
        for reply in GARBAGE[:2]:
            given_up = first(world, count, policy, always(reply))
            assert np.mean([earned(world, task, given_up) for task in tasks]) < whole


@pytest.mark.parametrize("level", LEVELS)
def test_ending_the_token_budget_never_pays_better(level: str) -> None:
    world, null = world_of(level), baselines("energy")["null"]
    for name in ("noisy", "hold"):
        policy = baselines("energy")[name]
        for count in (0, 1, spec("energy").turn_limits[level] - 1):
            rng = np.random.default_rng(0)
            turn = world.start(task_of(level, 1))
            for _ in range(count):
                turn = world.reply(policy(world, turn, rng))
            on = world.fork()
            world.stop()
            while not turn.done:
                turn = on.reply(null(on, turn, rng))
            assert world.returns["operator"] < on.returns["operator"]


@pytest.mark.parametrize("reply", GARBAGE)
def test_termination_does_not_dilute_malformed_replies(reply: str) -> None:
    world = world_of("small", terminate_on_violation=True)
    for index in range(TASKS):
        task = world.adopt(task_of("small", index))
        record = play(world, task, always(reply))
        assert record.returns["operator"] == record.turns[-1].terms["operator"]["form"] < 0.045
