"""A world of one question says how an answer reads, and shows none."""

import itertools

import numpy as np
import pytest

from tokengym.envs import play
from tokengym.envs.core.question import BASELINES, QuestionWorld, blind
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.turn import StopReason
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


def test_a_question_pays_by_its_answer_and_nothing_without_one() -> None:
    world = Sum(SPEC)
    task = world.task()
    best = task.answer["best"]
    assert world.optimum(task)["student"] == (1.0, True)
    ends = {
        f"Let me see.\nSum: {best}": (1.0, "", StopReason.COMPLETED),
        f"Sum: {best}\nSum: {best + 1}": (0.5, "", StopReason.COMPLETED),
        "about twelve": (0.0, world.reply_form.words, StopReason.MALFORMED),
    }
    for reply, (earned, said, reason) in ends.items():
        opening = world.start(task)
        assert opening.text.endswith(f"\n\n{task.instance['question']}")
        assert "Sum: <whole number>" in opening.text
        turn = world.reply(reply)
        assert (world.returns, turn.stop_reason) == ({"student": earned}, reason)
        assert turn.metrics == {"well_formed": float(reason is StopReason.COMPLETED)}
        assert turn.terms == {"student": {"reward": earned}}
        assert said in turn.text
        assert bool(said) == bool(turn.text)
    world.start(task)
    cut = world.reply(f"Sum: {best}", complete=False)
    assert (world.returns, cut.stop_reason) == ({"student": 0.0}, StopReason.MALFORMED)
    assert (world.write(12), world.expected_form) == ("Sum: 12", "Sum: 12")


def test_baselines_of_a_question_know_nothing_or_all() -> None:
    world = Sum(SPEC)
    tasks = world.first_tasks("test", 20)
    earned = {
        name: [play(world, task, policy, seed=n).returns["student"] for n, task in enumerate(tasks)]
        for name, policy in BASELINES.items()
    }
    assert earned["oracle"] == [1.0] * 20
    assert earned["null"] == [0.0] * 20
    assert all(0.0 < one < 1.0 for one in earned["random"])
    constants = blind(world)
    assert 25 < len(constants) <= 32
    for name, policy in constants.items():
        said = {policy(world, world.start(task), np.random.default_rng(0)) for task in tasks}
        assert said == {f"Sum: {name.removeprefix('always ')}"}
    assert blind(world).keys() == constants.keys()


def test_a_question_belongs_to_the_split_of_its_words() -> None:
    world = Sum(SPEC)
    task = world.task("validation", 3)
    assert world.split_of(task.instance) == "validation"
    assert world.split_of({**task.instance, "seed": 0}) == "validation"
