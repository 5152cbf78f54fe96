"""Worlds of the debate, played by given replies, and a paper made by hand."""

import dataclasses
from typing import Any

from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import Turn
from tokengym.envs.disruption.paper import FirstYear, Paper, ReferenceFacts
from tokengym.envs.disruption.world import DisruptionWorld
from tokengym.envs.registry import baselines, make_world

BASELINES = baselines("disruption")
PAPER = Paper(
    openalex_id="W2741809807",
    title="A study of things",
    abstract="We introduce a way to look at things.",
    publication_year=2003,
    cited_by_count=98765,
    cd_index=0.437219,
    novelty_score=-3.14159,
    conventionality_score=27.18281,
    disruption_label="disruptive",
    novelty_label="balanced",
    primary_field="Biology",
)
FULL = dataclasses.replace(
    PAPER, references=ReferenceFacts(31, 7, 12, 3), first_year=FirstYear(4, 1, 2), authors=40
)


def make(level: str = "L2", **options: Any) -> DisruptionWorld:
    return DisruptionWorld.cast(make_world("disruption", level, **options))


def play(world: DisruptionWorld, task: Task, *replies: str) -> Turn:
    """Return the Turn after these replies."""
    turn = world.start(task)
    for reply in replies:
        turn = world.reply(reply)
    return turn
