"""What the two prompts of an operator share; `full` and `terse` write the texts."""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence

from tokengym.envs.core.grammar import complaint
from tokengym.envs.energy.grammar import expected
from tokengym.envs.energy.house import House
from tokengym.envs.energy.microgrid import Microgrid
from tokengym.envs.energy.plants import Plant
from tokengym.envs.energy.step_result import Commands, State, rounded_up


class EnergyPrompt(ABC):
    """All texts of the episodes of one plant. Immutable once made.

    Args:
        plant: the plant.
    """

    def __init__(self, plant: Plant) -> None:
        self._plant = plant
        self._labels = hour_labels(plant)
        self._rules = self._write_rules()
        self._templates = tuple(map(self._template, range(plant.steps)))

    def opening(self, seen: State) -> str:
        """Return the text of the first Turn, on a state as shown."""
        return f"{self._rules}\n{self.turn(0, seen)}"

    def turn(self, step: int, seen: State) -> str:
        """Return the text on a step to be commanded, on a state as shown."""
        template, numbers = self._templates[step]
        return template % seen[:numbers]

    def malformed(self, text: str, *, complete: bool) -> str:
        """Return the complaint about a reply without a command; it shows no example."""
        return complaint(text, expected(self._plant.devices), complete=complete) + "\n"

    @abstractmethod
    def deviation(self, commands: Commands, done: Commands) -> str:
        """Return the text on commands that physics clipped; empty if it clipped no command."""

    @abstractmethod
    def missed(self, safety: float) -> str:
        """Return the text on a floor missed by `safety`."""

    @abstractmethod
    def ending(self, money: float, safety: Sequence[float]) -> str:
        """Return the text of the last Turn."""

    @abstractmethod
    def _write_rules(self) -> str:
        """Write the rules, the constants and the table of forecasts."""

    @abstractmethod
    def _write_conditions(self, step: int) -> tuple[str, str]:
        """Write the text on a step before and after the state."""

    @abstractmethod
    def _write_state(self, step: int) -> str:
        """Write the state, with `%g` for battery energy or temperature and for the car at home."""

    def _template(self, step: int) -> tuple[str, int]:
        """Return the text on a step, with `%g` for the numbers of the state, and their count."""
        before, after = (text.replace("%", "%%") for text in self._write_conditions(step))
        state = self._write_state(step)
        return before + state + after, state.count("%g")

    def _car_is_home(self, step: int) -> bool:
        return isinstance(self._plant, Microgrid) and self._plant.at_home(step)


def hour_labels(plant: Plant) -> tuple[str, ...]:
    """Return the time of day by step: the hour, with minutes where it is not full."""
    minutes = [(plant.start + round(60 * plant.dt * t)) % 1440 for t in range(plant.steps)]
    return tuple(f"{m // 60}:{m % 60:02d}" if m % 60 else str(m // 60) for m in minutes)


def pays_to_buy(grid: Microgrid) -> bool:
    """Return whether a price of a microgrid, as known at the start, is negative."""
    return min(*grid.price_forecast, *grid.resale) < 0.0


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
    if isinstance(plant, House):
        made = {"outside": plant.outside_updates, "gain": plant.gain_updates}
    else:
        made = {"load": plant.load_updates, "sun": plant.pv_updates}
    return {name: updates[step] for name, updates in made.items() if updates and updates[step]}


def clipped(plant: Plant, commands: Commands, done: Commands) -> list[tuple[str, float]]:
    """Return the devices whose commands were clipped noticeably, with their actual power."""
    return [
        (device, power + 0.0)
        for device, command, power in zip(plant.devices, commands, done, strict=True)
        if abs(command - power) > 0.005
    ]


def cents(money: float) -> str:
    """Write an amount of money in cents, with every digit that counts."""
    return f"{round(100.0 * money, 3):g}"


def shortfall(safety: float) -> str:
    """Write by how much a floor was missed, in hundredths, never as 0."""
    return f"{rounded_up(safety):.2f}"
