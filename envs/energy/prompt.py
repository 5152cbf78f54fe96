"""The texts that an operator reads; the templates `prompt_full` and `prompt_terse` word them."""

import itertools
import re
from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

from tokengym.envs.core.seeding import generator
from tokengym.envs.core.templates import templates
from tokengym.envs.energy.grammar import write_commands
from tokengym.envs.energy.microgrid import LOST_LOAD, Microgrid
from tokengym.envs.energy.plants import Plant
from tokengym.envs.energy.site import OffGridSite
from tokengym.envs.energy.step_result import Commands, State, rounded_up
from tokengym.rewards.control import AFFINE_FROM, floor_return
from tokengym.rewards.form import FORM_SHARE

_FIELD = re.compile(r"%\((\w+)\)")


class EnergyPrompt:
    """All texts of the episodes of one plant. Immutable once made.

    Args:
        plant: the plant.
        style: one of `PROMPTS`.

    Attributes:
        plant: the plant.
        labels: the time of day by step: the hour, with minutes where it is not full.
        times: the same, a full hour with `h`.
        sales_vary: whether the price of what is sold is not the same at every step.
        opening: the text of the first Turn.
    """

    def __init__(self, plant: Plant, style: str) -> None:
        words = _macros(f"prompt_{style}")
        minutes = [(plant.start + round(60 * plant.dt * t)) % 1440 for t in range(plant.steps)]
        self.plant = plant
        self.labels = [f"{m // 60}:{m % 60:02d}" if m % 60 else str(m // 60) for m in minutes]
        self.times = [label if ":" in label else f"{label}h" for label in self.labels]
        self.sales_vary = isinstance(plant, Microgrid) and len(set(plant.resale)) > 1
        # Formats of what an episode's Turns say: between them macros would take most of a step.
        self._now = [_state_format(words.now(self, step)) for step in range(plant.steps)]
        longest = max(unit.hours for unit in plant.units) if isinstance(plant, OffGridSite) else -1
        self._runs = [words.runs(hours) for hours in range(longest + 1)]
        self._did = [words.did(plant, device) for device in plant.devices]
        self._missed = words.missed(plant)
        self._kept: str = words.kept(plant)
        self._broken: str = words.broken(plant)
        shown = f"{words.rules(self)}\n{self.turn(0, plant.seen(0, plant.initial))}"
        self.opening = f"{shown}{words.form(plant, shown)}"

    def turn(self, step: int, seen: State) -> str:
        """Return the text on a step to be commanded, on a state as shown."""
        layout, fields = self._now[step]
        text: str = layout % fields(seen)
        for device, hours in zip(self.plant.devices, seen.running, strict=False):
            text = text.replace(f"<{device}>", f"{device} {self._runs[hours]}")
        return text

    def deviation(self, commands: Commands, done: Commands) -> str:
        """Return the text on commands that physics clipped noticeably; empty if it did not."""
        text = ""
        for device, power in enumerate(done):
            if abs(commands[device] - power) > 0.005:
                text += self._did[device] % (power + 0.0)
        return text

    def missed(self, safety: float) -> str:
        """Return the text on a floor missed by `safety`."""
        text: str = self._missed % shortfall(safety)
        return text

    def ending(self, money: float, safety: Sequence[float]) -> str:
        """Return the text of the last Turn."""
        told: dict[str, object] = {"cost": 100.0 * money}
        text = self._kept
        if broken := [cost for cost in safety if cost > 0.0]:
            told |= {"steps": len(broken), "worst": shortfall(max(broken))}
            text = self._broken
        return text % told


def _state_format(text: str) -> tuple[str, Callable[[State], Any]]:
    """Return a text that names fields of a `State` as a format, and what fills it."""
    return _FIELD.sub("%", text), attrgetter(*_FIELD.findall(text))


def likelier_times(chances: Sequence[float]) -> list[tuple[int, int]]:
    """Return the first and last steps of the times when something is likelier than at others."""
    most = max(chances)
    if most == min(chances):
        return []
    runs, step = [], 0
    for chance, run in itertools.groupby(chances):
        length = len(list(run))
        if chance == most:
            runs.append((step, step + length - 1))
        step += length
    return runs


def fresh_forecasts(plant: Plant, step: int) -> dict[str, tuple[float, ...]]:
    """Return the forecasts made at a step, by name; empty at levels without fresh forecasts."""
    if isinstance(plant, OffGridSite):
        return {}
    made = {"load": plant.load_updates, "sun": plant.pv_updates, "outside": plant.outside_updates}
    return {name: updates[step] for name, updates in made.items() if updates and updates[step]}


def cents(money: float) -> str:
    """Write an amount of money in cents, with every digit that counts."""
    return f"{round(100.0 * money, 3):g}"


def shortfall(safety: float) -> str:
    """Write by how much a floor was missed, in hundredths, never as 0."""
    return f"{rounded_up(safety):.2f}"


def _examples(plant: Plant, shown: str) -> list[str]:
    """Return two made-up replies, whose signs differ where a device takes both.

    They depend on what is shown alone: a Task's fingerprint also depends on the future.
    """
    rng, devices = generator("energy example", shown), plant.devices
    lowest = [-1.0 if device == "BATTERY" else 1.0 for device in devices]
    powers = rng.uniform(0.1, plant.power, (2, len(devices))) * [lowest, [1.0] * len(devices)]
    return [write_commands(tuple(made), devices) for made in powers.tolist()]


_macros = templates(
    Path(__file__).parent,
    cents=cents,
    examples=_examples,
    likelier_times=likelier_times,
    fresh_forecasts=fresh_forecasts,
    lost_load=LOST_LOAD,
    affine_from=AFFINE_FROM,
    safe_return=lambda score, most: (
        (1.0 - FORM_SHARE) * floor_return(score, None, most) + FORM_SHARE
    ),
)
