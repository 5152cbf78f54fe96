"""Two independent questions at once: will both come true? The twin of each of its parts."""

from collections.abc import Mapping

import numpy as np

from tokengym.envs.core.task import canonical_json
from tokengym.envs.forecasting.families.base import Family, Shown, bernoulli
from tokengym.envs.forecasting.levels import Knobs
from tokengym.rewards.scoring import Forecast

PARTS = 2


def conjunction(parts: Mapping[str, Family]) -> Family:
    """Return the family that asks whether two questions of yes/no families both come true.

    Args:
        parts: the families it draws its questions from, by name.
    """
    names = sorted(parts)

    def draw(rng: np.random.Generator, knobs: Knobs) -> Shown:
        picked = [names[int(rng.integers(len(names)))] for _ in range(PARTS)]
        return {
            "parts": [{"family": name, "shown": parts[name].draw(rng, knobs)} for name in picked]
        }

    def product(shown: Shown, chance: str, *arguments: np.random.Generator) -> Forecast:
        both = 1.0
        for part in shown["parts"]:
            both *= getattr(parts[part["family"]], chance)(part["shown"], *arguments)[1]
        return bernoulli(both)

    return Family(
        "conjunction",
        "Two unrelated questions, each with the law of its own family; both must come true.",
        draw,
        predictive=lambda shown: product(shown, "predictive"),
        latent=lambda shown, rng: product(shown, "latent", rng),
        empirical=lambda shown: product(shown, "empirical"),
        split_key=lambda shown: sorted(map(canonical_json, shown["parts"])),
    )
