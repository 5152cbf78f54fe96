"""Laws of the prompts: they state the rules, and what can be copied from them says nothing."""

import re
from typing import Any

import pytest

from tokengym.envs.registry import make_world

ANSWER = re.compile(r"^LABEL .+\nP .+$", re.MULTILINE)


def texts(level: str, count: int, **options: Any) -> list[str]:
    world = make_world("disruption", level, **options)
    return [world.start(world.task("train", index)).text for index in range(count)]


@pytest.mark.nightly
def test_terse_examples_differ_from_task_to_task_and_are_blind() -> None:
    found = [re.findall(ANSWER, text) for text in texts("L2", 100, prompt="terse")]
    assert all(len(answers) == 1 for answers in found)
    answers = [answer for (answer,) in found]
    assert len(set(answers)) > 20
    counts = [sum(f"LABEL {word}" in answer for answer in answers) for word in ("d", "c", "n")]
    assert min(counts) > 15  # of 100, a third each


@pytest.mark.parametrize("target", ["disruption", "both"])
def test_the_full_prompt_states_the_reward_as_first_described(target: str) -> None:
    (text,) = texts("L2", 1, reward="original", target=target)
    right = "the final label is" if target == "disruption" else "both final labels are"
    assert f"Score: 1 if {right} right and -1 if not." in text
    assert all(f"earn up to {most}" in text for most in (0.3, 0.2))
