"""The picture of an episode: what was stated of each outcome, and what the facts imply."""

import textwrap

from matplotlib.figure import Figure

from tokengym.envs.core.display import shorten
from tokengym.envs.core.palette import BLACK, BLUE, ORANGE, figure, plot_probabilities
from tokengym.envs.core.play import PlayedEpisode
from tokengym.envs.core.world import World
from tokengym.envs.forecasting.compiled import CompiledTurn
from tokengym.envs.forecasting.grammar import read_forecast
from tokengym.envs.forecasting.world import ForecastWorld

_WIDTH = 52
"""Characters in a line of a question."""
_MOST = 240
"""Characters of a question that are shown, its end."""


def render_episode(world: World, record: PlayedEpisode, title: str) -> Figure:
    """Return the picture of a Record: a line for each outcome of each turn.

    What the facts imply and what happened are drawn of turns that were answered alone: a policy
    that sees pictures must not read its answer off them.
    """
    names: list[str] = []
    stated: list[float | None] = []
    implied: list[float | None] = []
    happened: list[float | None] = []
    for number, turn in enumerate(ForecastWorld.cast(world).compile(record.task)):
        options = turn.question.options
        answered = number < len(record.replies)
        forecast = read_forecast(record.replies[number], options) if answered else ""
        names += _names(turn)
        for outcome in range(options) if options else (1,):
            stated.append(None if isinstance(forecast, str) else forecast[outcome])
            odds = turn.question.predictive if answered else None
            implied.append(None if odds is None else odds[outcome])
            happened.append(turn.weights[outcome] if answered else None)
    made = figure(11.0, 2.2 + 0.75 * len(names), title)
    marks = {
        "what the facts imply": ("|", BLACK, implied),
        "scored against": ("*", ORANGE, happened),
        "stated": ("o", BLUE, stated),
    }
    plot_probabilities(made.subplots(), names, marks)
    return made


def _names(turn: CompiledTurn) -> list[str]:
    """Return the question, and the letter of each outcome if it has several."""
    asked = " ".join(turn.question.text.rpartition("Question: ")[2].split())
    said = textwrap.fill(shorten(asked, _MOST), _WIDTH)
    letters = [chr(ord("A") + option) for option in range(turn.question.options)]
    return [f"{said}\n{letters[0]}", *letters[1:]] if letters else [said]
