"""A heated house: a heat pump whose coefficient of performance falls with the cold, and walls.

With Δt the step in hours, T the indoor temperature, P the heat pump's electric power:

    T' = T + Δt / C [COP P + gain + window sun - L (T - T_out)],  0 <= P <= power
    COP = max(1, cop + slope T_out)
    missed = (low - T')⁺ + (T' - high)⁺ in K
"""

from typing import NamedTuple

_LEAST_COP = 1.0
"""Below it, the pump would heat less than a resistor."""


class House(NamedTuple):
    """A house with its heat pump.

    Attributes:
        capacity: heat capacity C, kWh/K.
        loss: kW of heat lost per K above outside, L.
        cop: kW of heat per kW of power at 0 °C outside.
        slope: by how much that rises per K.
        power: most kW of the heat pump.
        temperature: °C at the start.
        gain: kW of heat from people and appliances.
        window: kW of heat through the windows per kW of the roof's sun.
        high: most °C at the end of any step.
        price_of_missing: money per K less than at the start, after the last step.
        price_of_extra: money paid per K more than at the start.
    """

    capacity: float
    loss: float
    cop: float
    slope: float
    power: float
    temperature: float
    gain: float
    window: float
    high: float
    price_of_missing: float
    price_of_extra: float

    def cop_at(self, outside: float) -> float:
        """Return the kW of heat per kW of power at a temperature outside in °C."""
        return max(self.cop + self.slope * outside, _LEAST_COP)

    def keep(self, dt: float) -> float:
        """Return the share of the temperature that remains after a step of `dt` hours."""
        return 1.0 - dt * self.loss / self.capacity

    def drift(self, dt: float, outside: float, sun: float) -> float:
        """Return the K that a step adds whatever the heat pump does.

        Args:
            dt: hours of the step.
            outside: °C.
            sun: kW that the roof could give.
        """
        return dt / self.capacity * (self.loss * outside + self.gain + self.window * sun)

    def rise(self, dt: float, outside: float) -> float:
        """Return the K that each kW of power adds in a step of `dt` hours."""
        return dt / self.capacity * self.cop_at(outside)
