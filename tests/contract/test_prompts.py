"""Golden prompts: what every level shows in each style, for people to read.

`TOKENGYM_UPDATE_GOLDEN=1` rewrites them.
"""

import itertools
import os

import numpy as np
import pytest

from tests.contract.grammars import GOLDEN, LEVELS, OF_EACH_GRAMMAR
from tokengym.envs.core.world import PROMPTS
from tokengym.envs.registry import baselines, make_world

CASES = [
    (*case, style)
    for style in PROMPTS
    for case in (OF_EACH_GRAMMAR if style == "direct" else LEVELS)
]
"""`direct` differs from `full` in its closing sentences alone."""


@pytest.mark.every_level
@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_prompts_read_as_they_did(case: tuple[str, str, str]) -> None:
    golden = GOLDEN / f"{'-'.join(case)}.txt"
    found = transcript(*case)
    if os.environ.get("TOKENGYM_UPDATE_GOLDEN"):
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(found, encoding="utf-8")
    assert found == golden.read_text(encoding="utf-8")


@pytest.mark.nightly
@pytest.mark.parametrize("case", LEVELS, ids="-".join)
def test_a_full_prompt_shows_no_reply_that_could_be_copied(case: tuple[str, str]) -> None:
    """A model that learns from rewards alone copies a reply that it is shown."""
    world = make_world(*case)
    for task in world.first_tasks("test", 4):
        text = world.start(task).text
        lines = text.splitlines()
        pairs = map("\n".join, itertools.pairwise(lines))
        for copied in {text, *lines, *pairs}:
            world.start(task)
            assert world.reply(copied).metrics["well_formed"] == 0.0, copied


def transcript(world_id: str, level: str, style: str) -> str:
    """The opening, the Turns after a random reply and a malformed one, and the end."""
    world, rng = make_world(world_id, level, prompt=style), np.random.default_rng(0)
    random = baselines(world_id)["random"]
    turns = [world.start(world.task("test", 0))]
    for reply in ("", "I am not sure."):
        if not turns[-1].done:
            turns.append(world.reply(reply or random(world, turns[-1], rng)))
    last = turns[-1]
    while not last.done:
        last = world.reply(random(world, last, rng))
    texts = [turn.text for turn in turns] + [last.text] * (last is not turns[-1])
    return "\n\n----\n\n".join(texts) + "\n"
