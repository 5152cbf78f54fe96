"""Key performance indicators of an episode, as CityLearn and pymgrid report them."""

from collections.abc import Mapping, Sequence

from tokengym.envs.energy.house import House
from tokengym.envs.energy.plants import Plant
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
    peak = ramping = carbon = consumed = unserved = discomfort = 0.0
    before = outcomes[0].grid
    for step, outcome in enumerate(outcomes):
        grid = outcome.grid
        peak = max(peak, grid)
        ramping += abs(grid - before)
        if plant.carbon:
            carbon += dt * plant.carbon[step] * max(grid, 0.0)
        consumed += dt * max(outcome.sun - max(-grid, 0.0), 0.0)
        unserved += dt * outcome.unserved
        discomfort += dt * outcome.safety
        before = grid
    values = {"peak_import": peak, "ramping": ramping}
    if plant.carbon:
        values["carbon"] = carbon
    if isinstance(plant, House):
        return values | {"discomfort": discomfort}
    if sun := dt * sum(plant.pv[: len(outcomes)]):
        values["self_consumption"] = consumed / sun
    return values | {"unserved_energy": unserved}
