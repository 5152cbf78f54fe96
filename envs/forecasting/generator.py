"""Drawing instances: a question of a level, and its outcomes given what it shows."""

from collections.abc import Mapping
from functools import cache
from statistics import fmean
from typing import Any

import numpy as np

from tokengym.envs.core.label_noise import OUTCOMES
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.task import to_plain_json
from tokengym.envs.forecasting.families import FAMILIES
from tokengym.envs.forecasting.levels import LEVELS, ForecastLevel
from tokengym.envs.forecasting.oracle import as_asked, predictive

_BASE_RATE_QUESTIONS = 2000
_DISTRACTORS = (
    "The report was filed at {}:15.",
    "The site lies {} km from the coast.",
    "The log has {} pages.",
    "A staff of {} keeps the records.",
    "The name was chosen {} years ago.",
    "The office is on floor {}.",
)
_SMALLEST, _LARGEST = 2, 23


def draw(
    rng: np.random.Generator, families: tuple[str, ...], level: ForecastLevel
) -> dict[str, Any]:
    """Draw an instance of one of `families` at `level`; its values may still be numpy's."""
    family = FAMILIES[families[int(rng.integers(len(families)))]]
    return {
        "family": family.name,
        "shown": family.draw(rng, level.knobs),
        "negated": family.options is None and bool(rng.random() < level.negated),
        "asides": _draw_distractors(rng, level.distractors),
        "turns": level.turns,
    }


def _draw_distractors(rng: np.random.Generator, most: int) -> list[str]:
    """Draw 0 to `most` different irrelevant sentences, which a forecast should ignore."""
    count = int(rng.integers(most + 1)) if most else 0
    picked = rng.choice(len(_DISTRACTORS), size=count, replace=False) if count else ()
    return [_DISTRACTORS[i].format(int(rng.integers(_SMALLEST, _LARGEST + 1))) for i in picked]


def draw_outcomes(instance: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Draw the outcomes of an instance; return the answer of its Task.

    `p_bayes` are the outcomes' probabilities given all that is shown, `p_latent` those under the
    hidden parameter. The first outcome is drawn from `p_latent`; each one after it draws the
    hidden parameter again, so that the shares of the outcomes tend to `p_bayes`.
    """
    family = FAMILIES[instance["family"]]
    bayes = predictive(instance)
    latent = as_asked(family.latent(instance["shown"], rng), negated=instance["negated"])
    uniforms = rng.random(OUTCOMES)
    outcomes = np.searchsorted(np.cumsum(bayes)[:-1], uniforms, side="right")
    outcomes[0] = np.searchsorted(np.cumsum(latent)[:-1], uniforms[0], side="right")
    return {"p_bayes": bayes, "p_latent": latent, "outcomes": "".join(map(str, outcomes))}


@cache
def share_of_yes(level: str, families: tuple[str, ...]) -> float:
    """Return the mean probability of yes over 2,000 yes/no questions of a level.

    Args:
        level: name of the level.
        families: names of the families to ask; ½ if all of them have several outcomes.
    """
    asked = tuple(name for name in families if FAMILIES[name].options is None)
    if not asked:
        return 0.5
    rng = generator("forecasting base rate", level, *asked)
    drawn = (to_plain_json(draw(rng, asked, LEVELS[level])) for _ in range(_BASE_RATE_QUESTIONS))
    return fmean(predictive(instance)[1] for instance in drawn)
