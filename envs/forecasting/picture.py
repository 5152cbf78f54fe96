"""The picture of an episode: what was stated of each outcome, and what the facts imply.

The posterior and the outcome are drawn only for answered turns: a policy that
sees pictures must not read its answer off them.
"""

import textwrap
from collections.abc import Iterator
from typing import NamedTuple

from matplotlib.figure import Figure

from tokengym.envs.core.display import shorten
from tokengym.envs.core.play import PlayedEpisode
from tokengym.envs.core.rendering import BLACK, BLUE, ORANGE, figure, plot_probabilities
from tokengym.envs.core.tools import call_line, read_call
from tokengym.envs.core.world import World
from tokengym.envs.forecasting.grammar import read_forecast
from tokengym.envs.forecasting.world import ForecastWorld

_WIDTH, _MOST = 52, 240
"""Characters in a line of a question, and the most of a question."""


class _Line(NamedTuple):
    name: str
    implied: float | None = None
    happened: float | None = None
    stated: float | None = None


def render_episode(world: World, record: PlayedEpisode, title: str) -> Figure:
    """Return the picture of a Record: a line for each outcome of each turn."""
    world = ForecastWorld.cast(world)
    lines = list((_calls if world.tools else _outcomes)(world, record))
    names, implied, happened, stated = zip(*lines, strict=True)
    marks = {
        "what the facts imply": ("|", BLACK, implied),
        "scored against": ("*", ORANGE, happened),
        "stated": ("o", BLUE, stated),
    }
    made = figure(11.0, 2.2 + 0.75 * len(lines), title)
    plot_probabilities(made.subplots(), names, marks)
    return made


def _outcomes(world: ForecastWorld, record: PlayedEpisode) -> Iterator[_Line]:
    """Yield a line for each outcome of each question: its text, and its letter of several."""
    for number, turn in enumerate(world.compile(record.task)):
        question, options = turn.question, turn.question.options
        asked = " ".join(question.text.rpartition("Question: ")[2].split())
        asked = textwrap.fill(shorten(asked, _MOST), _WIDTH)
        letters = [chr(ord("A") + outcome) for outcome in range(options)]
        names = {0: f"{asked}\nA", **dict(enumerate(letters[1:], 1))} if letters else {1: asked}
        for outcome, name in names.items():
            if number >= len(record.replies):
                yield _Line(name)
                continue
            odds, said = question.predictive, read_forecast(record.replies[number], options).value
            yield _Line(
                name,
                None if odds is None else odds[outcome],
                turn.weights[outcome],
                None if said is None else said[outcome],
            )


def _calls(world: ForecastWorld, record: PlayedEpisode) -> Iterator[_Line]:
    """Yield a line for each reply there may be, with the posterior that it was given at."""
    again = world.fork()
    again.start(record.task)
    for reply in record.replies:
        implied, call = again.best_forecast[1], read_call(reply, again.tools)
        metrics = again.reply(reply).metrics
        name = "no call" if call is None else call_line(call)
        yield _Line(name, implied, metrics.get("label"), metrics.get("probability"))
    yield from [_Line("")] * (again.turn_limit - len(record.replies))
