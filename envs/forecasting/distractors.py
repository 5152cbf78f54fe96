"""Distractors: irrelevant sentences before a question, which a forecast should ignore."""

import numpy as np

_SENTENCES = (
    "The report was filed at {}:15.",
    "The site lies {} km from the coast.",
    "The log has {} pages.",
    "A staff of {} keeps the records.",
    "The name was chosen {} years ago.",
    "The office is on floor {}.",
)
_SMALLEST, _LARGEST = 2, 23


def draw_distractors(rng: np.random.Generator, most: int) -> list[str]:
    """Draw 0 to `most` different sentences, each with an irrelevant number."""
    count = int(rng.integers(most + 1)) if most else 0
    picked = rng.choice(len(_SENTENCES), size=count, replace=False) if count else ()
    return [_SENTENCES[i].format(int(rng.integers(_SMALLEST, _LARGEST + 1))) for i in picked]
