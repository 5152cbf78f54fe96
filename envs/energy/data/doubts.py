"""Numbers of a file that are probably no measurements: stuck values, and sun at midnight."""

import itertools
from collections.abc import Iterator, Mapping, Sequence

_STUCK = 24 * 60
"""Minutes from which equal numbers in a row are doubtful: a tariff changes within a day."""
_LIGHT_NIGHTS = 0.1
"""Share of midnights with sun from which the clock is doubtful."""


def doubts(
    columns: Mapping[str, Sequence[float]], clock: Sequence[int], minutes: int
) -> Iterator[str]:
    """Yield a sentence for each doubt about a series, to be read before learning from it.

    Args:
        columns: numbers by name, such as `load` and `price`, one per step.
        clock: minute of the day at which each step begins.
        minutes: length of a step.
    """
    for name in ("price", "load"):
        at = 0
        for value, run in itertools.groupby(columns.get(name, ())):
            length = len([*run])
            # A flat tariff is no doubt.
            if length * minutes >= _STUCK and length < len(columns[name]):
                hours, number = length * minutes / 60, "zero" if value == 0.0 else f"{value:g}"
                yield (
                    f"doubtful: {name} is {number} for {hours:g} hours in a row from row {at + 1}, "
                    "as where values are not published yet or a meter is stuck"
                )
            at += length
    sun = zip(columns.get("pv", ()), clock, strict=False)  # weather alone has no panels
    nights = [power for power, minute in sun if minute < minutes]
    if (lit := sum(power > 0.0 for power in nights)) > _LIGHT_NIGHTS * len(nights):
        yield f"doubtful: sun at {lit} of {len(nights)} midnights: are the times in another zone?"
