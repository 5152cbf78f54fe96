"""Exact value functions, and the credit of each step: minus the cost it added to the optimum.

The cost-to-go of a plant with one store is convex and piecewise linear in what is stored, so that
dynamic programming over it is exact: no grid, no tolerance. Breaking the floor costs `UNSAFE` money
per unit here, more than any way to keep it, so that values are finite after a violation too and
equal the safe optimum wherever that exists.
"""

from tokengym.envs.core.errors import OptionError
from tokengym.envs.energy.microgrid import LOST_LOAD, Microgrid
from tokengym.envs.energy.oracle import UNSAFE
from tokengym.envs.energy.piecewise import Convex, Piece
from tokengym.envs.energy.step_result import State, StepResult


class CostToGo:
    """The optimal cost-to-go V*(state, step) of one microgrid.

    Args:
        grid: a microgrid with nothing to command but a battery, whose sales never pay more than
            purchases cost (else the cost-to-go is not convex).

    Raises:
        OptionError: if it is another one.
    """

    def __init__(self, grid: Microgrid) -> None:
        self._values = tuple(_microgrid(grid))

    def at(self, step: int, state: State) -> float:
        """Return the least cost from `step` on: money, and `UNSAFE` per unit of safety cost.

        Args:
            step: 0 to the number of steps; after the last step it is what the end charges.
            state: the state before it.
        """
        return self._values[step].at(state.stored)

    def credit(self, step: int, state: State, outcome: StepResult) -> float:
        """A_t = V*(s_t, t) - [cost_t + V*(s_t+1, t+1)], at most 0 up to rounding.

        Summed over an episode the values cancel: what is left is exactly minus its regret, the
        money (and `UNSAFE` per unit of safety cost) it spent beyond the optimum.
        """
        spent = outcome.money + UNSAFE * outcome.safety
        return self.at(step, state) - (spent + self.at(step + 1, outcome.state))


def _microgrid(grid: Microgrid) -> list[Convex]:
    if len(grid.devices) > 1:
        raise OptionError(
            "the credit needs a convex cost-to-go: it is defined for a battery alone, "
            f"got the devices {list(grid.devices)}"
        )
    value = Convex.through(
        grid.energy,
        0.0,
        [(-grid.price_of_missing, grid.energy)],
        [(-grid.price_of_extra, grid.capacity - grid.energy)],
    )
    values = [value]
    for step in reversed(range(grid.steps)):
        guarded = _guarded(value, grid, grid.reserve[step])
        value = _exchange(grid, step).reflected().convolved(guarded)
        value = value.restricted(0.0, grid.capacity)
        values.append(value)
    return values[::-1]


def _guarded(value: Convex, plant: Microgrid, least: float) -> Convex:
    """Add what it costs to hold less than `least` at the end of a step."""
    within = value.bent(least, -plant.price_of_miss, 0.0)
    return within.bent(least - plant.slack, plant.price_of_miss - UNSAFE, 0.0)


def _exchange(grid: Microgrid, step: int) -> Convex:
    """Return the least money of a step as a function of the change of the battery's energy, kWh."""
    price, resale = grid.price[step], grid.resale[step]
    if resale > price:
        raise OptionError(
            f"the credit needs sales that pay no more than purchases cost, got {resale!r} > "
            f"{price!r} at step {step}"
        )
    dt, eta, load, pv = grid.dt, grid.efficiency, grid.load[step], grid.pv[step]
    imports, exports = (grid.import_cap, grid.export_cap) if grid.up[step] else (0.0, 0.0)
    spare = (1.0 - grid.critical) * load
    # Money per kWh as a function of the power needed from outside, from full sun to dark house.
    net = Convex.through(
        0.0,
        0.0,
        [(0.0, pv + grid.power), (resale, exports)],
        [
            (price, imports),
            (LOST_LOAD, spare),
            (LOST_LOAD + UNSAFE, max(load - spare, 0.0) + grid.power),
        ],
    )
    still = load - pv
    discharging = net.restricted(still - min(grid.power, load + exports), still)
    charging = net.restricted(still, still + max(min(grid.power, imports - still), 0.0))
    left: list[Piece] = [
        ((slope - grid.wear) * eta, width * dt / eta) for slope, width in discharging.pieces
    ]
    right: list[Piece] = [
        ((slope + grid.wear) / eta, width * dt * eta) for slope, width in charging.pieces
    ]
    return Convex.through(0.0, dt * net.at(still), left, right)
