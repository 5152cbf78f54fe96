"""A world of one question says how an answer reads, and shows none."""

import itertools

import numpy as np
import pytest

from tokengym.envs.core.question import QuestionWorld
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.world import PROMPTS
from tokengym.rewards.bounds import UNIT

SPEC = WorldSpec(
    id="tests/Sum-v0",
    summary="Add two numbers.",
    entry_point="tests.core.test_question:Sum",
    baselines="tokengym.envs.core.question:BASELINES",
    roles=("student",),
    turn_limits={"main": 1},
    step_range={"student": UNIT},
    return_range={"student": UNIT},
)


class Sum(QuestionWorld):
    word = "Sum"
    value = "[0-9]{1,4}"
    example = "12"
    form = "<whole number>"

    def question(self, rng: np.random.Generator) -> tuple[str, int]:
        one, other = rng.integers(1000, size=2).tolist()
        return f"What is {one} + {other}?", one + other

    def reward(self, answer: str, best: int) -> float:
        return 1.0 / (1.0 + abs(int(answer) - best))


@pytest.mark.parametrize("prompt", PROMPTS)
def test_no_line_of_the_prompt_is_an_answer(prompt: str) -> None:
    """A model that learns from rewards alone copies a reply that it is shown."""
    world = Sum(SPEC, prompt=prompt)
    for task in world.first_tasks("test", 4):
        text = world.start(task).text
        assert text.startswith("End with one line in this form:\nSum: <whole number>\n\n")
        lines = text.splitlines()
        for copied in (text, *lines, *map("\n".join, itertools.pairwise(lines))):
            world.start(task)
            turn = world.reply(copied)
            assert turn.rewards["student"] == turn.metrics["well_formed"] == 0.0, copied
            assert "Expected: Sum: <whole number>" in turn.text
