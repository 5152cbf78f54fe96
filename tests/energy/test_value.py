"""The law of the return: of two safe policies the dearer in expectation never earns more.

Expectations are over days that open alike and turn out differently.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from tests.energy.drawn import task_of, world_of
from tokengym.envs.core.play import Policy, play
from tokengym.envs.core.task import Task, canonical_json
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.energy.world import EnergyWorld
from tokengym.envs.registry import baselines, spec

DAYS = 6
NAMES = ("hold", "time_of_use", "worked", "backward", "null")


def alike(world: EnergyWorld, first: Task, donors: list[Task]) -> list[Task]:
    """Tasks that open like the first and go on like the others, as the world would solve them."""
    tasks = [first]
    for number, donor in enumerate(donors):
        instance, theirs = dict(first.instance), donor.instance
        if "day" in instance:
            instance["day"] = number % len(instance["chances"])
        for name in ("load", "pv", "outside", "up"):
            if name in instance:
                instance[name] = [instance[name][0], *theirs[name][1:]]
        answer = world._solve(instance, np.random.default_rng(0))
        if isinstance(answer, dict):
            tasks.append(
                replace(
                    first,
                    instance_json=canonical_json(instance),
                    answer_json=canonical_json(answer),
                )
            )
    return tasks


def shifted(name: str, share: float) -> Policy:
    """A baseline that charges more than it would in every fourth step."""

    def play_it(world: World, turn: Turn, rng: np.random.Generator) -> str:
        said = baselines("energy")[name](world, turn, rng)
        shown = EnergyWorld.cast(world).shown
        device, power = said.splitlines()[-len(shown.plant.devices)].split()
        more = share if shown.step % 4 == 0 else 0.0
        return said + f"\n{device} {float(power) + more:.2f}"

    return play_it


@pytest.mark.nightly
@pytest.mark.parametrize("level", spec("energy").levels)
def test_dearer_safe_policies_never_earn_more(level: str) -> None:
    world, compared = world_of(level), 0
    # What a policy earns less if it costs the scale of its Task more.
    slope = 0.95 * 0.8 * 0.9 / (3.0 if level.startswith("commit") else 2.5)
    for index in range(2):
        tasks = alike(world, task_of(level, index), [task_of(level, 2 + n) for n in range(DAYS)])
        assert len(tasks) > DAYS // 2
        assert len({task.answer["scale"] for task in tasks}) == 1
        means = []
        for name, share in itertools.product(NAMES, (0.0, 0.4)):
            runs = [play(world, task, shifted(name, share)) for task in tasks]
            ends = [run.metrics for run in runs]
            scores = [end["normalized_score"] or 0.0 for end in ends]
            affine = min(scores) >= -1.5 and max(scores) <= 1.5
            if any(end["total_cost"] for end in ends) or not affine:
                continue
            earned = [run.returns["operator"] for run in runs]
            costs = [end["total_money_cost"] for end in ends]
            means.append((float(np.mean(np.array(costs, float))), float(np.mean(earned))))
        scale = tasks[0].answer["scale"]
        for (cost, paid), (other_cost, other_paid) in itertools.combinations(means, 2):
            compared += 1
            expected = slope * (other_cost - cost) / scale
            assert paid - other_paid == pytest.approx(expected, abs=2**-14)
            assert (paid - other_paid) * (other_cost - cost) >= 0.0 or abs(expected) < 2**-13
    assert compared >= 3
