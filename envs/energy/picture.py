"""The picture of an episode: what is stored, powers and prices by hour.

Of what is hidden it shows the steps that are over: a policy that sees pictures must not read the
future off them.
"""

from collections.abc import Sequence

from matplotlib.figure import Figure

from tokengym.envs.core.play import PlayedEpisode, replay
from tokengym.envs.core.rendering import Series, figure, plot_series
from tokengym.envs.core.world import World
from tokengym.envs.energy.microgrid import Microgrid
from tokengym.envs.energy.plants import plant_from
from tokengym.envs.energy.world import EnergyWorld


def render_episode(world: World, record: PlayedEpisode, title: str) -> Figure:
    """Return the picture of a Record: panels over the same hours since midnight."""
    plant = plant_from(record.task.instance)
    played = [step.after.outcome for step in replay(EnergyWorld.cast(world), record)]
    steps = [outcome for outcome in played if outcome is not None]
    states, over = [plant.initial, *(step.state for step in steps)], len(steps)
    grid = plant if isinstance(plant, Microgrid) else None
    if isinstance(plant, Microgrid):
        load, least = plant.load, plant.reserve
    else:
        load, least = plant.loads[plant.day], (plant.floor,) * plant.steps
    energy: dict[str, tuple[str, Sequence[float]]] = {
        "in the battery": ("-o", [state.stored for state in states]),
        "to be kept": ("steps", least[:over]),
    }
    power: dict[str, tuple[str, Sequence[float]]] = {
        "load": ("steps", load[:over]),
        "sun": ("steps", plant.pv[:over]),
    }
    for number, device in enumerate(plant.devices):
        power[device.lower()] = ("steps", [step.done[number] for step in steps])
    panels: dict[str, Series] = {"energy (kWh)": energy, "power (kW)": power}
    if grid:
        power["bought"] = ("steps", [step.grid for step in steps])
        prices = {"buy": grid.price, "sell": grid.resale}
        panels["price (ct/kWh)"] = {
            name: ("steps", [100.0 * price for price in series]) for name, series in prices.items()
        }
    if grid and grid.car:
        energy["in the car"] = ("-s", [state.charged for state in states])
    if grid and grid.house:
        del energy["to be kept"]
        panels["indoors (°C)"] = {
            "indoors": ("-o", [state.indoor for state in states]),
            "low": ("steps", grid.low),
            "high": ("steps", [grid.house.high] * grid.steps),
        }
    turns = [turn.metrics for turn in record.turns[1:]]
    cost = sum(100.0 * metrics["money_cost"] for metrics in turns)
    misread = sum(not metrics["well_formed"] for metrics in turns)
    missed = sum(step.safety > 0.0 for step in steps)
    said = f"cost {cost:.0f} ct, limit missed in {missed} steps, {misread} replies not understood"
    made = figure(11.0, 2.7 * len(panels) + 0.8, f"{title}\n{said}")
    hours = [plant.start / 60.0 + plant.dt * step for step in range(plant.steps + 1)]
    plot_series(made, "hours since midnight", hours, panels)
    return made
