"""Key performance indicators of an episode, as CityLearn and pymgrid report them."""

from collections.abc import Mapping
from typing import NamedTuple, Self

from tokengym.envs.energy.house import House
from tokengym.envs.energy.outcome import Outcome
from tokengym.envs.energy.plants import Plant


class Indicators(NamedTuple):
    """Sums over the steps so far.

    Attributes:
        grid: kW bought in the last step; negative if sold.
        peak: most kW bought in a step.
        ramping: kW by which the exchange with the grid changed from step to step, summed.
        carbon: kg of CO2 of what was bought.
        sun: kWh that the sun offered.
        kept: kWh of it that was neither sold nor lost.
        unserved: kWh of load not served.
        discomfort: kelvin-hours outside the comfort band.
    """

    grid: float | None = None
    peak: float = 0.0
    ramping: float = 0.0
    carbon: float = 0.0
    sun: float = 0.0
    kept: float = 0.0
    unserved: float = 0.0
    discomfort: float = 0.0

    def after(self, plant: Plant, step: int, outcome: Outcome) -> Self:
        """Return the sums after one more step."""
        dt, grid = plant.dt, outcome.grid
        changed = 0.0 if self.grid is None else abs(grid - self.grid)
        house = isinstance(plant, House)
        carbon = plant.carbon[step] if plant.carbon else 0.0
        return type(self)(
            grid=grid,
            peak=max(self.peak, grid),
            ramping=self.ramping + changed,
            carbon=self.carbon + dt * carbon * max(grid, 0.0),
            sun=self.sun + (0.0 if isinstance(plant, House) else dt * plant.pv[step]),
            kept=self.kept + dt * max(outcome.sun - max(-grid, 0.0), 0.0),
            unserved=self.unserved + dt * outcome.unserved,
            discomfort=self.discomfort + (dt * outcome.safety if house else 0.0),
        )

    def metrics(self, plant: Plant) -> Mapping[str, float]:
        """Return what applies to a plant, by name of its metric."""
        found = {"peak_import": self.peak, "ramping": self.ramping}
        if plant.carbon:
            found["carbon"] = self.carbon
        if isinstance(plant, House):
            return found | {"discomfort": self.discomfort}
        if self.sun:
            found["self_consumption"] = self.kept / self.sun
        return found | {"unserved_energy": self.unserved}
