"""Key performance indicators of an episode, as CityLearn and pymgrid report them."""

from collections.abc import Mapping, Sequence
from operator import mul, sub

from tokengym.envs.energy.plants import Plant
from tokengym.envs.energy.site import OffGridSite
from tokengym.envs.energy.step_result import StepResult


def indicators(plant: Plant, outcomes: Sequence[StepResult]) -> Mapping[str, float]:
    """Return the indicators that apply to a plant, by name of the metric.

    `peak_import`: most kW bought in a step. `ramping`: kW by which the exchange with the grid
    changed from step to step, summed. `carbon`: kg of CO2 of what was bought. `discomfort`:
    kelvin-hours outside the comfort band. `self_consumption`: share of the sun's energy that was
    neither sold nor lost. `unserved_energy`: kWh of load not served.

    Args:
        plant: the plant.
        outcomes: of the episode's steps, from the first.
    """
    dt = plant.dt
    if isinstance(plant, OffGridSite):
        return {"unserved_energy": sum(outcome.unserved for outcome in outcomes)}
    _, _, safety, _, grid, unserved, used = zip(*outcomes, strict=True)
    values = {"peak_import": max(0.0, *grid), "ramping": sum(map(abs, map(sub, grid[1:], grid)))}
    if plant.carbon:
        bought = [power if power > 0.0 else 0.0 for power in grid]
        values["carbon"] = dt * sum(map(mul, plant.carbon, bought))
    if plant.house:
        values["discomfort"] = dt * sum(safety)
    if sun := sum(plant.pv[: len(outcomes)]):
        sold = [-power if power < 0.0 else 0.0 for power in grid]
        values["self_consumption"] = sum([kw for kw in map(sub, used, sold) if kw > 0.0]) / sun
    return values | {"unserved_energy": dt * sum(unserved)}
