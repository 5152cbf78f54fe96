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

    Attributes:
        opening: the text of the first Turn.
    """

    def __init__(self, plant: Plant) -> None:
        self._plant = plant
        self._labels = hour_labels(plant)
        self._pieces = tuple(map(self._split, range(plant.steps)))
        self._did = tuple(map(self._write_did, plant.devices))
        now = self.turn(0, plant.seen(0, plant.initial))
        self.opening = f"{self._write_rules()}\n{now}{self._write_form()}"

    def turn(self, step: int, seen: State) -> str:
        """Return the text on a step to be commanded, on a state as shown."""
        pieces = self._pieces[step]
        text = f"{pieces[0]}{seen[0]:g}{pieces[1]}"
        return text if len(pieces) == 2 else f"{text}{seen[1]:g}{pieces[2]}"

    def malformed(self, text: str, *, complete: bool) -> str:
        """Return the complaint about a reply without a command; it shows no example."""
        return complaint(text, expected(self._plant.devices), complete=complete) + "\n"

    def deviation(self, commands: Commands, done: Commands) -> str:
        """Return the text on commands that physics clipped noticeably; empty if it did not."""
        text = ""
        for device, power in enumerate(done):
            if abs(commands[device] - power) > 0.005:
                before, after = self._did[device]
                text += f"{before}{power + 0.0:.2f}{after}"
        return text

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
    def _write_did(self, device: str) -> tuple[str, str]:
        """Write the text on what a device did, before and after its power in kW."""

    def _write_form(self) -> str:
        """Write the form of a reply, where the rules leave it out."""
        return ""

    @abstractmethod
    def _write_conditions(self, step: int) -> tuple[str, str]:
        """Write the text on a step before and after the state."""

    @abstractmethod
    def _write_state(self, step: int) -> str:
        """Write the state, with `%g` for battery energy or temperature and for the car at home."""

    def _split(self, step: int) -> tuple[str, ...]:
        """Return the text on a step, in the pieces between the numbers of the state."""
        before, after = self._write_conditions(step)
        first, *more = self._write_state(step).split("%g")
        return (before + first, *more[:-1], more[-1] + after)

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


def cents(money: float) -> str:
    """Write an amount of money in cents, with every digit that counts."""
    return f"{round(100.0 * money, 3):g}"


def shortfall(safety: float) -> str:
    """Write by how much a floor was missed, in hundredths, never as 0."""
    return f"{rounded_up(safety):.2f}"
