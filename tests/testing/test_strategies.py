"""What the strategies give: Tasks of a world, replies of every kind, tokens of a vocabulary."""

import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import find, given, settings
from hypothesis.errors import NoSuchExample

from tests.testing.thermometer import SPEC, Thermometer
from tokengym.envs import ByteCodec, Task
from tokengym.envs.core.seeding import SPLITS
from tokengym.envs.tokens.codec import TokenArray
from tokengym.testing import replies, tasks, token_arrays

WORLD = Thermometer(SPEC)


@given(tasks(WORLD, most=9))
def test_tasks_are_those_of_the_world(task: Task) -> None:
    assert task == Thermometer(SPEC).task(task.split, task.index)
    assert task.index < 9


@pytest.mark.parametrize("split", SPLITS)
def test_tasks_are_of_the_splits_asked_for(split: str) -> None:
    @settings(max_examples=10)
    @given(tasks(("forecast", "hard"), [split]))
    def law(task: Task) -> None:
        assert (task.world, task.level, task.split) == ("tokengym/Forecast-v1", "hard", split)

    law()


@given(replies(WORLD))
def test_replies_are_strings_that_a_world_bears(reply: str) -> None:
    WORLD.start(WORLD.task())
    assert WORLD.reply(reply).metrics["well_formed"] in (0.0, 1.0)


PROMPT = Thermometer(SPEC).start(WORLD.task()).text


@pytest.mark.parametrize(
    "kind",
    [
        lambda reply: not reply,
        lambda reply: len(reply) >= 10_000,
        lambda reply: "\x00" in reply,
        lambda reply: "\u202e" in reply,
        lambda reply: any("\ud800" <= character <= "\udfff" for character in reply),
        lambda reply: re.search(r"\d{50}", reply),
        lambda reply: reply.count("**") > 5,
        lambda reply: not reply.isascii() and reply.isprintable() and "\ufffd" not in reply,
    ],
)
def test_every_kind_of_hostile_reply_is_there(kind: Callable[[str], object]) -> None:
    assert find(replies(), lambda reply: bool(kind(reply))) is not None


@pytest.mark.nightly
def test_replies_copy_the_prompt_and_nearly_its_form() -> None:
    found = replies(WORLD)
    assert find(found, lambda reply: reply == PROMPT)
    assert find(found, lambda reply: reply == "GUESS 12")
    assert find(found, lambda reply: reply == "`GUESS 12`")
    with pytest.raises(NoSuchExample):
        find(replies(), lambda reply: "GUESS" in reply, settings=settings(max_examples=200))


@given(token_arrays(ByteCodec(), min_length=1, max_length=5))
def test_token_arrays_are_of_the_vocabulary(tokens: TokenArray) -> None:
    assert tokens.dtype == np.int64
    assert tokens.ndim == 1
    assert 1 <= len(tokens) <= 5
    assert ((tokens >= 0) & (tokens < ByteCodec().vocab_size)).all()


@given(token_arrays(3, max_length=50))
def test_a_vocabulary_may_be_a_number(tokens: TokenArray) -> None:
    assert set(tokens.tolist()) <= {0, 1, 2}
