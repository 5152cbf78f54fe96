"""Search eight numbers of a linear rule that corrects a level's best baseline.

    python -m benchmarks.linear_rules energy:commit warehouse:pick_online --seconds 150

Before a level's best baseline is called the best one known, a rule that adds a linear function of
what is shown to its replies is sought on train Tasks, by steps that are kept if they gain. It is
then played on validation Tasks beside the baseline. At all numbers 0 it is the baseline.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import process_time

import numpy as np

from benchmarks.hour.entry import played, value_of
from tokengym.agents.scale.level_scale import ladder_of
from tokengym.envs.core.play import Policy
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.energy.grammar import read_commands, write_commands
from tokengym.envs.energy.site import OffGridSite
from tokengym.envs.energy.world import EnergyWorld
from tokengym.envs.registry import baselines, make_world, spec
from tokengym.envs.warehouse.games.picking.session import PickSession
from tokengym.envs.warehouse.world import WarehouseWorld
from tokengym.rewards.arrays import Floats
from tokengym.rewards.estimates import mean_estimate

NUMBERS = 8
TRAIN_TASKS = 24
VALIDATION_TASKS = 100
_FIRST_STEP = 0.1
_WIDER, _NARROWER = 1.5, 0.92

Linear = Callable[[Floats, Policy, World, Turn, np.random.Generator], str]
"""A policy by eight numbers and the baseline that it corrects."""


def operator(
    numbers: Floats, base: Policy, world: World, turn: Turn, rng: np.random.Generator
) -> str:
    """Add four numbers' worth of power to each of two devices that run, or eight to one."""
    shown = EnergyWorld.cast(world).shown
    plant, step, devices = shown.plant, shown.step, shown.plant.devices
    commands = read_commands(base(world, turn, rng), devices, complete=True).value
    assert commands is not None
    left = 1.0 - step / plant.steps
    full = shown.state.stored / plant.capacity - 0.5
    if isinstance(plant, OffGridSite):
        days = list(plant.possible(step))
        needs = (np.array(plant.loads) - np.array(plant.suns))[days, step]
        chances = np.array(plant.chances)[days]
        spread = needs.max() - np.average(needs, weights=chances)
        seen = np.array([1.0, full, left, spread])
        more = numbers.reshape(2, 4) @ seen
        commands = tuple(p and max(p + m, 0.0) for p, m in zip(commands, more, strict=True))
    else:
        need, price = plant.load[step] - plant.pv[step], plant.price[step]
        later = np.array(plant.price[step:])
        dear = (price - later.mean()) / (later.std() + 0.01)
        seen = np.array([1.0, full, left, dear])
        wide = np.array([*seen, need, need * full, need * dear, full * dear])
        if plant.house:
            battery, heat = numbers.reshape(2, 4) @ seen
            commands = (commands[0] + battery, *commands[1:-1], max(commands[-1] + heat, 0.0))
        else:
            commands = (commands[0] + numbers @ wide, *commands[1:])
    return write_commands(commands, devices)


def picker(
    numbers: Floats, base: Policy, world: World, turn: Turn, rng: np.random.Generator
) -> str:
    """Wait a time unit where a linear function of what is shown is above 1."""
    session = WarehouseWorld.cast(world).session
    assert isinstance(session, PickSession)
    picking = session.picking
    known = picking.known().values()
    slack = [order.due - picking.now for order in known] or [0]
    units = sum(order.units for order in known) / picking.site.capacity
    value = sum(order.value for order in known) / 50.0
    tight, mean = min(slack) / 50.0, float(np.mean(slack)) / 50.0
    waited = float(not picking.shipments or picking.shipments[-1].finish < picking.now)
    coming = (len(picking.open) - len(known)) / len(picking.orders)
    seen = [1.0, units, value, tight, mean, waited, coming, picking.now / 100.0]
    if coming and numbers @ np.array(seen) > 1.0:
        return "WAIT 1"
    return base(world, turn, rng)


RULES: Mapping[str, Linear] = {"energy": operator, "warehouse": picker}


def search(world: World, rule: Linear, base: Policy, seconds: float) -> tuple[Floats, int]:
    """Return the best numbers found in so much processor time, and how many were tried."""
    tasks, rng = world.first_tasks("train", TRAIN_TASKS), np.random.default_rng(0)
    best, size, tried = np.zeros(NUMBERS), _FIRST_STEP, 0
    most, until = _mean(world, tasks, partial(rule, best, base)), process_time() + seconds
    while process_time() < until:
        numbers = best + size * rng.standard_normal(NUMBERS)
        value = _mean(world, tasks, partial(rule, numbers, base))
        size *= _WIDER if value > most else _NARROWER
        if value > most:
            best, most = numbers, value
        tried += 1
    return best, tried


def _values(world: World, tasks: Sequence[Task], policy: Policy) -> Floats:
    return np.array([value_of(world, played(world, task, policy)) for task in tasks])


def _mean(world: World, tasks: Sequence[Task], policy: Policy) -> float:
    return float(_values(world, tasks, policy).mean())


def compared(name: str, seconds: float, count: int = VALIDATION_TASKS) -> str:
    """Search a level's rule, and say what it gains more than the baseline, as a share of that.

    Args:
        name: such as `energy:commit`.
        seconds: processor time of the search.
        count: validation Tasks that both are compared on.
    """
    short, _, level = name.partition(":")
    world = make_world(short, level, **spec(short).check_options)
    ladder = ladder_of(world.spec, level, world.spec.roles[0])
    assert ladder is not None
    policies, declared = baselines(short), world.spec.reachable[level]
    base = policies[declared.policy]
    numbers, tried = search(world, RULES[short], base, seconds)
    tasks = world.first_tasks("validation", count)
    theirs = _values(world, tasks, base)
    gain = float((theirs - _values(world, tasks, policies[ladder.zero])).mean())
    mine = _values(world, tasks, partial(RULES[short], numbers, base))
    lead = mean_estimate(((mine - theirs) / gain).tolist())
    return f"{name}: {lead} of the gain of {declared.policy}, {tried} rules tried, best {numbers}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what is found at levels."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("levels", nargs="+", help="such as energy:commit")
    parser.add_argument("--seconds", type=float, default=150.0, help="processor time of a search")
    asked = parser.parse_args(arguments)
    for name in asked.levels:
        print(compared(name, asked.seconds), flush=True)


if __name__ == "__main__":
    main()
