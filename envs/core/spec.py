"""What a world declares about itself before anything of it is loaded."""

from collections.abc import Mapping
from dataclasses import dataclass

from tokengym.rewards.bounds import Range


@dataclass(frozen=True)
class WorldSpec:
    """One row of the catalogue.

    Attributes:
        id: registered name, such as `tokengym/Forecast-v0`.
        summary: one sentence for people.
        entry_point: `module:class` of the world.
        baselines: `module:mapping` of the world's scripted policies by name.
        roles: who speaks, in order of first speaking.
        turn_limits: by level (the first level is the default), the most turns one role can speak.
        step_range: by role, the range of one step's reward.
        return_range: by role, the range of a whole episode's return.
    """

    id: str
    summary: str
    entry_point: str
    baselines: str
    roles: tuple[str, ...]
    turn_limits: Mapping[str, int]
    step_range: Mapping[str, Range]
    return_range: Mapping[str, Range]

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of the levels, the default first."""
        return tuple(self.turn_limits)

    @property
    def turn_limit(self) -> int:
        """The most turns one role can speak at any level."""
        return max(self.turn_limits.values())

    @property
    def short_name(self) -> str:
        """The id without namespace and version, in lower case: `forecast`."""
        return self.id.rpartition("/")[2].rpartition("-v")[0].lower()
