"""Laws of the fingerprint of a Task's answer: it names what decides the reward, and no more."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.envs import make_world
from tokengym.envs.core.task import Task

numbers = st.floats(-1e6, 1e6) | st.integers(-(10**9), 10**9)
answers = st.dictionaries(st.text(max_size=4), numbers | st.text(max_size=4), max_size=4)


def task(answer: dict[str, Any], **options: Any) -> Task:
    return Task.create(
        world="a/B-v0",
        level="x",
        split="test",
        index=0,
        instance={},
        answer=answer,
        options=options,
    )


@given(first=answers, second=answers)
def test_answers_equal_to_seven_digits_share_a_fingerprint(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    def rounded(answer: dict[str, Any]) -> str:
        values = {k: f"{v:.7g}" if isinstance(v, float) else v for k, v in answer.items()}
        kinds = {k: isinstance(v, str) for k, v in answer.items()}
        return json.dumps([values, kinds], sort_keys=True)

    same = task(first).answer_fingerprint == task(second).answer_fingerprint
    assert same == (rounded(first) == rounded(second))
    assert task(first).fingerprint == task(second).fingerprint
    for name in ("plan", "base_rate"):
        assert (
            task({**first, name: 1}).answer_fingerprint
            == task({**first, name: 2}).answer_fingerprint
        )


@given(answer=answers)
def test_options_of_the_reward_are_named_and_json_changes_nothing(answer: dict[str, Any]) -> None:
    plain = task(answer)
    assert task(answer, score="log").answer_fingerprint != plain.answer_fingerprint
    assert Task.from_json(plain.to_json()).answer_fingerprint == plain.answer_fingerprint


@pytest.mark.parametrize("name", ["forecast", "energy", "warehouse", "disruption"])
def test_it_is_neither_of_the_instance_nor_of_the_place(name: str) -> None:
    first = make_world(name).task("test", 0)
    moved = replace(first, split="train", index=7, level="other", instance_json="{}")
    assert moved.answer_fingerprint == first.answer_fingerprint
    assert make_world(name).task("test", 1).answer_fingerprint != first.answer_fingerprint
