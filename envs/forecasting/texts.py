"""The texts that a forecaster reads: the macros of `prompt_full` and `prompt_terse`.

A prompt has `opening`, the first Turn around a question, `follow_up`, a later one, and for each
family a macro of its name, which words what it shows. `lines` has what both say alike, and by
family with more turns than one, what is new in a later turn.
"""

from itertools import pairwise
from pathlib import Path

from tokengym.envs.core.seeding import generator
from tokengym.envs.core.templates import templates
from tokengym.envs.forecasting.families.patterns import pattern
from tokengym.envs.forecasting.grammar import LETTERS, write_forecast


def _example(options: int, seed: str) -> str:
    """Return a well-formed answer; its numbers are uniform over all forecasts."""
    rng = generator("forecasting example", seed)
    return write_forecast(tuple(rng.dirichlet([1.0] * (options or 2)).tolist()), options)


macros = templates(
    Path(__file__).parent,
    example=_example,
    letters=LETTERS,
    pairwise=pairwise,
    pattern=pattern,
    zip=zip,
)
"""From the name of a template to its macros."""
