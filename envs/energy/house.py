"""A heated house that must stay in its comfort band: the thermal twin of the microgrid.

With Δt the step in hours, T the indoor temperature, P the heat pump's electric power:

    T' = T + (Δt / C) [L (T_out - T) + COP P + Q],  0 <= P <= power
    missed = (low - T')⁺ + (T' - high)⁺ in K, which is `judged`;  money = Δt p P
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from tokengym.envs.energy.step_result import Commands, State, StepResult, StoragePlant, latest


@dataclass(frozen=True, kw_only=True)
class House(StoragePlant):
    """One house over one horizon, with its weather. Series have one entry a step.

    Its store is warmth: what is missing or extra at the end, and the budget, are in K.

    Attributes:
        capacity: heat capacity C, kWh/K.
        loss: kW of heat lost per K above outside, L.
        cop: kW of heat per kW of power.
        temperature: °C at the start.
        outside: °C.
        gain: kW of heat from sun and people, Q.
        low: least °C at the end of each step.
        high: most °C at the end of any step.
        outside_forecast: °C, shown at the start.
        gain_forecast: kW, shown at the start.
        outside_updates: by step, °C of the few steps after it; empty if never refreshed.
        gain_updates: as `outside_updates`.
        worst: K by which the band is missed at worst, by step.
        reach: °C at the end without any heating, and at full power throughout.
    """

    SERIES: ClassVar[tuple[str, ...]] = (
        *("outside", "gain", "price", "low"),
        *("outside_forecast", "gain_forecast"),
    )
    rounding: ClassVar[float] = 0.1

    capacity: float
    loss: float
    cop: float
    temperature: float
    outside: tuple[float, ...]
    gain: tuple[float, ...]
    low: tuple[float, ...]
    high: float
    outside_forecast: tuple[float, ...]
    gain_forecast: tuple[float, ...]
    outside_updates: tuple[tuple[float, ...], ...]
    gain_updates: tuple[tuple[float, ...], ...]
    devices: tuple[str, ...] = field(init=False, default=("HEAT",))
    worst: tuple[float, ...] = field(init=False)
    reach: tuple[float, float] = field(init=False)

    def __post_init__(self) -> None:
        """Derive the largest possible distance from the band.

        Heat only adds, so a run without any and a run at full power bound every temperature.
        """
        cold = hot = self.temperature
        worst = []
        for step, low in enumerate(self.low):
            drift = self.drift(step)
            cold = self.keep * cold + drift
            hot = self.keep * hot + drift + self.power * self.dt / self.kwh_per_kelvin
            worst.append(max(low - cold, hot - self.high, 0.0))
        object.__setattr__(self, "worst", tuple(worst))
        object.__setattr__(self, "reach", (cold, hot))
        object.__setattr__(self, "requirement", (max(worst), sum(worst)))

    @property
    def initial(self) -> State:
        """Indoor temperature at the start; there is no car."""
        return State(self.temperature)

    @property
    def keep(self) -> float:
        """Share of the temperature that remains after a step, 1 - Δt L / C."""
        return 1.0 - self.dt * self.loss / self.capacity

    @property
    def kwh_per_kelvin(self) -> float:
        """Electric energy that warms the house by 1 K."""
        return self.capacity / self.cop

    def drift(self, step: int) -> float:
        """Kelvins a step adds whatever the heat pump does: Δt / C (L T_out + Q)."""
        return self.dt / self.capacity * (self.loss * self.outside[step] + self.gain[step])

    def required(self, step: int) -> float:
        """Kelvins by which the band is missed at worst at the end of `step`: the depth's scale."""
        return self.worst[step]

    def advance(self, step: int, state: State, commands: Commands) -> StepResult:
        """Heat during `step`; physics clips the power."""
        power = min(max(commands[0], 0.0), self.power)
        temperature = state.stored
        flow = self.loss * (self.outside[step] - temperature) + self.cop * power
        temperature += self.dt / self.capacity * (flow + self.gain[step])
        missed, safety = self.judged(max(self.low[step] - temperature, temperature - self.high))
        money = self.dt * self.price[step] * power + missed
        return StepResult(State(temperature), money, safety, (power,), power)

    def foreseen(self, step: int) -> Self:
        """The house as shown at `step`."""
        return replace(
            self,
            outside=latest(self.outside, self.outside_forecast, self.outside_updates, step),
            gain=latest(self.gain, self.gain_forecast, self.gain_updates, step),
            outside_updates=self.outside_updates[: step + 1],
            gain_updates=self.gain_updates[: step + 1],
        )

    @property
    def expected(self) -> Self:
        """The house as announced at the start."""
        return replace(self.foreseen(0), outside_updates=(), gain_updates=())
