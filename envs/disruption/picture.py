"""The picture of a debate: what the predictor stated before and after, and what the facts imply."""

import textwrap
from collections.abc import Sequence

from matplotlib.figure import Figure

from tokengym.envs.core.play import PlayedEpisode
from tokengym.envs.core.rendering import BLACK, BLUE, ORANGE, SKY, figure, plot_probabilities
from tokengym.envs.core.world import World
from tokengym.envs.disruption.grammar import PredictorAnswer, read_answer
from tokengym.envs.disruption.labels import LABELS
from tokengym.envs.disruption.literature import Probabilities
from tokengym.envs.disruption.world import PREDICTOR, DisruptionWorld

_WIDTH = 90
"""Characters in a line of the title."""


def render_episode(world: World, record: PlayedEpisode, title: str) -> Figure:
    """Return the picture of a Record: a line for each label of each target.

    The posterior and the paper's outcome are drawn once the episode is over: a
    policy that sees pictures must not read its answer off them.
    """
    world = DisruptionWorld.cast(world)
    compiled, targets = world.compile(record.task), world.targets
    said = [turn.role for turn in record.turns[: len(record.replies)]]
    played = list(zip(said, record.replies, strict=True))
    answers = [read_answer(text, targets).value for role, text in played if role == PREDICTOR]
    over = record.turns[-1].done
    names = [label for target in targets for label in LABELS[target]]
    marks = {
        "what the evidence implies": ("|", BLACK, _flat(compiled.posteriors if over else ())),
        "what became of it": ("*", ORANGE, _became(compiled.gold if over else ())),
        "stated first": ("s", SKY, _reports(answers[:1])),
        "stated after the challenge": ("o", BLUE, _reports(answers[1:])),
    }
    argued = [" / ".join(text.split("\n")) for role, text in played if role != PREDICTOR]
    paper = textwrap.shorten(f"{compiled.evidence.title}: {' '.join(argued)}", 2 * _WIDTH)
    made = figure(11.0, 2.4 + 0.6 * len(names), f"{title}\n{textwrap.fill(paper, _WIDTH)}")
    plot_probabilities(made.subplots(), names, marks)
    return made


def _flat(reports: Sequence[Probabilities]) -> list[float | None]:
    return [value for report in reports for value in report]


def _reports(answers: Sequence[PredictorAnswer | None]) -> list[float | None]:
    return _flat(answers[0].reports) if answers and answers[0] is not None else []


def _became(gold: Sequence[int]) -> list[float | None]:
    return [1.0 if label == true else None for true in gold for label in range(3)]
