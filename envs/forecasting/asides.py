"""Facts beside the point, told before a question so that a forecaster must leave them out."""

import numpy as np

_ASIDES = (
    "The report was filed at {}:15.",
    "The site lies {} km from the coast.",
    "The log has {} pages.",
    "A staff of {} keeps the records.",
    "The name was chosen {} years ago.",
    "The office is on floor {}.",
)
_SMALLEST, _LARGEST = 2, 23


def draw_asides(rng: np.random.Generator, most: int) -> list[str]:
    """Draw 0 to `most` different sentences, each with a number that bears on nothing."""
    count = int(rng.integers(most + 1)) if most else 0
    picked = rng.choice(len(_ASIDES), size=count, replace=False) if count else ()
    return [_ASIDES[i].format(int(rng.integers(_SMALLEST, _LARGEST + 1))) for i in picked]
