"""The picture of an episode: powers, prices, grid and cost, stored energy, violations."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MultipleLocator

from tokengym.envs.core.palette import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PALE,
    PURPLE,
    RED,
    SKY,
    YELLOW,
    figure,
)
from tokengym.envs.core.play import PlayedEpisode, replay
from tokengym.envs.core.world import World
from tokengym.envs.energy.house import House
from tokengym.envs.energy.microgrid import Microgrid
from tokengym.envs.energy.plants import Plant, plant_from
from tokengym.envs.energy.site import Site
from tokengym.envs.energy.step_result import TOLERANCE, Commands
from tokengym.envs.energy.world import EnergyWorld

_MOST_TICKS = 13
_MARGINS = {"left": 0.95, "right": 2.05, "top": 0.65, "bottom": 0.5}
_LABELS_AT = -0.075
"""Where the vertical axes are named, as a share of a panel's width: aligned, whatever they hold."""


@dataclass(frozen=True)
class PlayedDay:
    """An episode of n steps.

    Attributes:
        plant: the plant with all that came to pass.
        stored: battery energy in kWh at the start and after each step: n + 1 numbers.
        car: kWh charged into the car, n + 1 numbers.
        indoor: °C in the house, n + 1 numbers.
        done: the powers that physics allowed, kW per device, by step.
        missed: the safety cost by step: kWh, or K.
        malformed: steps whose reply was not understood.
        grid: kW bought by step; negative if sold.
        spent: money up to the end of each step; the last has what the end charges.
    """

    plant: Plant
    stored: tuple[float, ...]
    car: tuple[float, ...]
    indoor: tuple[float, ...]
    done: tuple[Commands, ...]
    missed: tuple[float, ...]
    malformed: tuple[int, ...]
    grid: tuple[float, ...]
    spent: tuple[float, ...]

    @property
    def edges(self) -> list[float]:
        """Edges of the steps in hours since the midnight before the first: steps + 1 numbers."""
        plant = self.plant
        return [plant.start / 60.0 + plant.dt * step for step in range(plant.steps + 1)]

    def power(self, device: str) -> list[float]:
        """The power of one device by step, kW."""
        at = self.plant.devices.index(device)
        return [powers[at] for powers in self.done]


def replay_day(world: World, record: PlayedEpisode) -> PlayedDay:
    """Replay a Record and collect the states it goes through."""
    plant = plant_from(record.task.instance)
    states = [plant.initial]
    done, missed, malformed, grid, money = [], [], [], [], []
    for number, step in enumerate(replay(EnergyWorld.cast(world), record)):
        outcome = step.after.outcome
        if outcome is not None:
            states.append(outcome.state)
            done.append(outcome.done)
            missed.append(outcome.safety)
            grid.append(outcome.grid)
        money.append(step.turn.metrics["money_cost"])
        if not step.turn.metrics["well_formed"]:
            malformed.append(number)
    stored, car, indoor = (
        tuple(map(attrgetter(name), states)) for name in ("stored", "charged", "indoor")
    )
    spent = tuple(itertools.accumulate(money))
    return PlayedDay(
        plant, stored, car, indoor, tuple(done), tuple(missed), tuple(malformed), tuple(grid), spent
    )


def render_episode(world: World, record: PlayedEpisode, title: str) -> Figure:
    """Return the picture of a Record: panels over the same hours."""
    day = replay_day(world, record)
    plant = day.plant
    ratios: tuple[float, ...] = (3, 2, 1.5, 2, 1.5, 3)
    if isinstance(plant, Site):
        ratios = (3, 3, 1.5, 3)
    elif plant.house:
        ratios = (3, 2, 1.5, 2, 1.5, 2, 2, 3)
    tall = 12.0 if len(ratios) < 7 else 16.0
    made = figure(11.0, tall, f"{title}\n{_verdict(day)}", margins=_MARGINS)
    heights = {"height_ratios": ratios, "hspace": 0.12}
    panels: list[Axes] = list(made.subplots(len(ratios), 1, sharex=True, gridspec_kw=heights))
    if isinstance(plant, Site):
        _days(panels[0], plant, day)
        _generators(panels[1], plant, day)
        _cost(panels[2], day)
        _energy(panels[3], plant, day)
    else:
        _outages(panels, plant, day.edges)
        _powers(panels[0], plant, day)
        _battery(panels[1], plant, day)
        _price(panels[2], plant, day)
        _exchange(panels[3], day)
        _cost(panels[4], day)
        _charge(panels[5], plant, day)
        if plant.house:
            _weather(panels[6], plant, day)
            _indoors(panels[7], plant, plant.house, day)
    for axes in panels:
        axes.grid(color=PALE, lw=0.6)
        axes.set_axisbelow(True)
        axes.yaxis.set_label_coords(_LABELS_AT, 0.5)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=9)
    _hours(panels[-1], day.edges)
    return made


def _verdict(day: PlayedDay) -> str:
    cost = f"cost {100.0 * (day.spent or (0.0,))[-1]:.0f} ct"
    broken = [missed for missed in day.missed if missed]
    if not broken:
        return f"{cost}, every limit kept"
    unit = "K" if isinstance(day.plant, Microgrid) and day.plant.house else "kWh"
    return (
        f"{cost}, limit broken in {len(broken)} of {len(day.missed)} steps, "
        f"by up to {max(broken):.2f} {unit}"
    )


def _hours(axes: Axes, edges: Sequence[float]) -> None:
    """Label as many hours as there is room for."""
    span = edges[-1] - edges[0]
    pace = next(hours for hours in (1, 2, 3, 6, 12, 24) if span / hours < _MOST_TICKS)
    axes.xaxis.set_major_locator(MultipleLocator(pace))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda hour, _: f"{hour % 24:.0f}"))
    axes.set_xlim(edges[0], edges[-1])
    axes.set_xlabel("hour of the day")


def _outages(panels: Sequence[Axes], plant: Microgrid, edges: Sequence[float]) -> None:
    down = [step for step, up in enumerate(plant.up) if not up]
    for axes in panels:
        for step in down:
            named = axes is panels[0] and step == down[0]
            label = "grid down" if named else None
            axes.axvspan(edges[step], edges[step + 1], color="#c9c9c9", lw=0, zorder=0, label=label)


def _powers(axes: Axes, plant: Microgrid, day: PlayedDay) -> None:
    edges = day.edges
    axes.stairs(plant.pv, edges, fill=True, color=YELLOW, label="sun")
    _line(axes, day, plant.pv_forecast, ORANGE, "sun, first forecast", ls=":")
    _line(axes, day, plant.load, BLACK, "load", lw=1.8)
    _line(axes, day, plant.load_forecast, GREY, "load, first forecast", ls=":")
    if plant.car:
        _line(axes, day, day.power("EV"), PURPLE, "car charging", lw=1.8)
    if plant.house:
        _line(axes, day, day.power("HEAT"), RED, "heat pump", lw=1.8)
    cut = [step for step in range(len(day.missed)) if _unserved(day, plant, step)]
    if cut:
        middles = [edges[step] + plant.dt / 2 for step in cut]
        loads = [plant.load[step] for step in cut]
        axes.plot(middles, loads, "X", color=RED, ms=9, label="critical load\nnot served")
    axes.set_ylim(bottom=0.0)
    axes.set_ylabel("power (kW)")


def _unserved(day: PlayedDay, plant: Microgrid, step: int) -> bool:
    """Return whether a violation has load not served, beyond what reserve or band lack."""
    missed = plant.lacking(step, day.stored[step + 1], day.indoor[step + 1])
    _, short = plant.judged(missed)
    return day.missed[step] > short + TOLERANCE


def _battery(axes: Axes, plant: Microgrid, day: PlayedDay) -> None:
    powers = day.power("BATTERY")
    charging = [max(power, 0.0) for power in powers]
    discharging = [min(power, 0.0) for power in powers]
    _bars(axes, day, charging, SKY, "charging")
    _bars(axes, day, discharging, ORANGE, "discharging")
    axes.axhline(0.0, color=BLACK, lw=0.8)
    _misread(axes, day)
    axes.set_ylim(-1.08 * plant.power, 1.08 * plant.power)
    axes.set_ylabel("battery (kW)")


def _line(
    axes: Axes, day: PlayedDay, values: Sequence[float], colour: str, name: str, **style: Any
) -> None:
    edges = day.edges[: len(values) + 1]
    axes.stairs(values, edges, baseline=None, color=colour, label=name, **style)


def _bars(axes: Axes, day: PlayedDay, powers: Sequence[float], colour: str, name: str) -> None:
    # One outline that returns to zero between steps, in place of a rectangle for each of them.
    gap = 0.05 * day.plant.dt
    steps = list(itertools.pairwise(day.edges[: len(powers) + 1]))
    sides = [side for low, high in steps for side in (low + gap, high - gap)]
    heights = [height for power in powers for height in (power, 0.0)]
    if powers:
        axes.stairs(heights[:-1], sides, fill=True, color=colour, lw=0, label=name)


def _misread(axes: Axes, day: PlayedDay) -> None:
    if day.malformed:
        middles = [day.edges[step] + day.plant.dt / 2 for step in day.malformed]
        zeros, label = [0.0] * len(middles), "reply not understood"
        axes.plot(middles, zeros, "x", color=BLACK, ms=6, label=label, clip_on=False)


def _price(axes: Axes, plant: Microgrid, day: PlayedDay) -> None:
    bought = [100.0 * price for price in plant.price]
    sold = [100.0 * price for price in plant.resale]
    _line(axes, day, bought, BLUE, "buy", lw=1.8)
    _line(axes, day, sold, GREEN, "sell", lw=1.5, ls="--")
    axes.set_ylim(bottom=min(0.0, *bought, *sold))
    axes.set_ylabel("price (ct/kWh)")


def _exchange(axes: Axes, day: PlayedDay) -> None:
    _bars(axes, day, [max(power, 0.0) for power in day.grid], BLUE, "bought from the grid")
    _bars(axes, day, [min(power, 0.0) for power in day.grid], GREEN, "sold to the grid")
    axes.axhline(0.0, color=BLACK, lw=0.8)
    axes.set_ylabel("grid (kW)")


def _cost(axes: Axes, day: PlayedDay) -> None:
    costs = [0.0, *(100.0 * money for money in day.spent)]
    label = "paid so far,\nat the end settled"
    axes.plot(day.edges[: len(costs)], costs, color=BLACK, lw=1.8, label=label)
    axes.axhline(0.0, color=GREY, lw=0.8)
    axes.set_ylabel("cost (ct)")


def _charge(axes: Axes, plant: Microgrid, day: PlayedDay) -> None:
    edges = day.edges
    axes.axhline(plant.capacity, color=GREY, ls="--", lw=1.2, label="capacity")
    if not plant.house:
        axes.stairs(plant.reserve, edges, fill=True, color=RED, alpha=0.22)
        _line(axes, day, plant.reserve, RED, "reserve to keep", lw=1.2)
    now = edges[: len(day.stored)]
    axes.plot(now, day.stored, "-o", color=BLUE, ms=3, lw=1.8, label="in the battery")
    if plant.car:
        _car(axes, plant, day)
    short = [
        step
        for step in range(len(day.missed))
        if plant.judged(plant.reserve[step] - day.stored[step + 1])[1]
    ]
    _violations(
        axes,
        [edges[step + 1] for step in short],
        [day.stored[step + 1] for step in short],
        [plant.reserve[step] for step in short],
        "below the reserve",
    )
    axes.set_ylim(0.0, 1.08 * max(plant.capacity, *(plant.car[2:3] or (0.0,))))
    axes.set_ylabel("energy (kWh)")


def _car(axes: Axes, plant: Microgrid, day: PlayedDay) -> None:
    arrives, departs, need = int(plant.car[0]), plant.departure, plant.car[2]
    edges = day.edges
    last = min(departs, len(day.car) - 1)
    home = range(arrives, last + 1)
    hours, charge = [edges[step] for step in home], [day.car[step] for step in home]
    axes.plot(hours, charge, "-s", color=PURPLE, ms=3, lw=1.5, label="in the car")
    axes.plot(
        [edges[departs]], [need], "*", color=PURPLE, ms=13, mec=BLACK, mew=0.6, label="car's need"
    )


def _violations(
    axes: Axes, at: Sequence[float], reached: Sequence[float], limit: Sequence[float], name: str
) -> None:
    """Mark violations and how far they miss the limit."""
    if at:
        axes.vlines(at, reached, limit, color=RED, lw=1.5)
        axes.plot(
            at, reached, "X", color=RED, ms=9, mec="white", mew=0.7, label=name, clip_on=False
        )


def _days(axes: Axes, plant: Site, day: PlayedDay) -> None:
    axes.stairs(plant.pv, day.edges, fill=True, color=YELLOW, label="sun")
    for number, load in enumerate(plant.loads):
        _line(axes, day, load, GREY, "" if number else "load, other days", ls=":")
    _line(axes, day, plant.loads[plant.day], BLACK, "load", lw=1.8)
    axes.set_ylim(bottom=0.0)
    axes.set_ylabel("power (kW)")


def _generators(axes: Axes, plant: Site, day: PlayedDay) -> None:
    big, small = map(day.power, plant.devices)
    both = [one + other for one, other in zip(big, small, strict=True)]
    _bars(axes, day, both, GREEN, "small unit")
    _bars(axes, day, big, BLUE, "big unit")
    _misread(axes, day)
    axes.set_ylim(bottom=0.0)
    axes.set_ylabel("generators (kW)")


def _energy(axes: Axes, plant: Site, day: PlayedDay) -> None:
    edges = day.edges
    axes.axhline(plant.capacity, color=GREY, ls="--", lw=1.2, label="capacity")
    axes.axhspan(0.0, plant.floor, color=RED, alpha=0.22, label="to be kept")
    now = edges[: len(day.stored)]
    axes.plot(now, day.stored, "-o", color=BLUE, ms=3, lw=1.8, label="in the battery")
    broken = [step for step, missed in enumerate(day.missed) if missed]
    _violations(
        axes,
        [edges[step + 1] for step in broken],
        [day.stored[step + 1] for step in broken],
        [plant.floor for _ in broken],
        "limit broken",
    )
    axes.set_ylim(0.0, 1.08 * plant.capacity)
    axes.set_ylabel("energy (kWh)")


def _weather(axes: Axes, plant: Microgrid, day: PlayedDay) -> None:
    _line(axes, day, plant.outside, BLACK, "outside", lw=1.8)
    _line(axes, day, plant.outside_forecast, GREY, "first forecast", ls=":", lw=1.5)
    axes.set_ylabel("outside (°C)")


def _indoors(axes: Axes, plant: Microgrid, house: House, day: PlayedDay) -> None:
    edges = day.edges
    highs = [house.high] * plant.steps
    axes.stairs(
        highs, edges, baseline=list(plant.low), fill=True, color=GREEN, alpha=0.2, label="band"
    )
    _line(axes, day, plant.low, GREEN, "", lw=1.2)
    axes.axhline(house.high, color=GREEN, lw=1.2)
    now = edges[: len(day.indoor)]
    axes.plot(now, day.indoor, "-o", color=BLUE, ms=3, lw=1.8, label="indoors")
    broken = [step for step, missed in enumerate(day.missed) if missed]
    reached = [day.indoor[step + 1] for step in broken]
    limits = [
        house.high if indoor > house.high else plant.low[step]
        for step, indoor in zip(broken, reached, strict=True)
    ]
    _violations(axes, [edges[step + 1] for step in broken], reached, limits, "outside the band")
    axes.set_ylim(min(*plant.low, *day.indoor) - 0.6, max(house.high, *day.indoor) + 0.6)
    axes.set_ylabel("indoors (°C)")
