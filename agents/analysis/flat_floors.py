"""A flat floor for every world, to compare its graded rewards against.

Energy has one as an option of the world; there the rule here pays what the option pays. The other
worlds have none to turn on: for them the rule says what their rollouts would have earned if
everything short of a plain reference were paid alike, as many a reward does.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokengym.rewards.bounds import dyadic
from tokengym.rewards.control import FLOOR, bounded_score

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class FlatFloor:
    """A rule that pays all episodes below a threshold alike.

    Attributes:
        below: episodes that earn less than this fall to the floor.
        pays: what they earn there.
        what: who falls, in words.
        option: whether the world has it as its own option `flat_floor`.
    """

    below: float
    pays: float
    what: str
    option: bool = False

    def flattened(self, rewards: Floats) -> Floats:
        """Return what these graded returns, of any shape, are worth on the flat floor."""
        return np.where(rewards < self.below, self.pays, rewards)


FLOORS: Mapping[str, FlatFloor] = {
    "tokengym/Energy-v0": FlatFloor(
        FLOOR, 0.0, "an episode that breaks the reserve earns 0", option=True
    ),
    "tokengym/Warehouse-v0": FlatFloor(
        bounded_score(0.0), 0.0, "a shift worse than one order at a time, in order, earns 0"
    ),
    "tokengym/Forecast-v0": FlatFloor(
        dyadic(0.05 + 0.95 * 0.75), 0.0, "a forecast worse than stating one half earns 0"
    ),
    "tokengym/Disruption-v0": FlatFloor(
        0.0, -1.0, "a wrong final label earns -1, whatever its reasons"
    ),
}
"""By id of the world. One half earns 0.05 + 0.95 · 0.75 by the Brier score, whatever the label."""
