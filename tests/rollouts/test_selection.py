"""Laws of selecting rollouts, and of the training data made from them."""

from collections.abc import Sequence
from typing import Any

import pytest

from tokengym.agents.rollouts import RolloutOrigin, RolloutRecord, TurnRecord
from tokengym.agents.rollouts.selection import (
    RolloutSelection,
    conversation,
    demonstrations,
    preferences,
)
from tokengym.envs.core.errors import OptionError


def rollout(
    said: Sequence[str],
    total: float,
    *,
    read: Sequence[str] = ("How many?", "And now?"),
    task: str = "one",
    step: int = 0,
    **turn: Any,
) -> RolloutRecord:
    turns = [TurnRecord("player", *pair, **turn) for pair in zip(read, said, strict=False)]
    origin = RolloutOrigin("train", step=step, policy="model")
    place = ("acme/Change-v0", "small", "train", 0, task)
    return RolloutRecord(origin, *place, "player", tuple(turns), "completed", total)


GOOD, BAD, WORSE = rollout(["2", "5"], 0.9), rollout(["2", "6"], 0.4), rollout(["3", "5"], 0.1)


def test_good_enough_group_winners_are_imitated() -> None:
    other = rollout(["7"], 0.3, task="another")
    found = list(demonstrations([WORSE, GOOD, other, BAD], 0.5))
    assert found == [{"messages": conversation(GOOD), "return": 0.9}]
    assert conversation(GOOD) == [
        {"role": "user", "content": "How many?"},
        {"role": "assistant", "content": "2"},
        {"role": "user", "content": "And now?"},
        {"role": "assistant", "content": "5"},
    ]


def test_malformed_or_cut_replies_are_not_imitated() -> None:
    malformed = rollout(["x"], 1.0, malformed=True)
    cut = rollout(["y"], 1.0, complete=False)
    assert [one["return"] for one in demonstrations([malformed, cut, BAD], 0.0)] == [0.4]


def test_a_pair_holds_the_replies_where_rollouts_part() -> None:
    pairs = list(preferences([GOOD, BAD, WORSE], 0.05))
    assert [
        (pair["prompt"], pair["chosen"][0]["content"], pair["rejected"][0]["content"])
        for pair in pairs
    ] == [
        (conversation(GOOD)[:3], "5", "6"),
        (conversation(GOOD)[:1], "2", "3"),
        (conversation(GOOD)[:1], "2", "3"),
    ]
    assert [pair["margin"] for pair in pairs] == pytest.approx([0.5, 0.8, 0.3])
    assert len(list(preferences([GOOD, BAD, WORSE], 0.4))) == 2


def test_ties_and_equal_replies_and_other_tasks_make_no_pair() -> None:
    tie = rollout(["9", "9"], 0.9)
    lucky = rollout(["2", "5"], 1.0)
    elsewhere = rollout(["4"], 0.0, task="another")
    later = rollout(["4"], 0.0, step=1)
    assert list(preferences([GOOD, tie, elsewhere, later], 0.01)) == []
    assert list(preferences([GOOD, lucky], 0.01)) == []
    answered = rollout(["2", "8"], 0.0, read=("How many?", "Really?"))
    assert list(preferences([GOOD, answered], 0.01)) == []
    with pytest.raises(OptionError, match="margin must be positive"):
        list(preferences([GOOD, tie], 0.0))


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (RolloutSelection(), [GOOD, BAD, WORSE]),
        (RolloutSelection(least=0.4), [GOOD, BAD]),
        (RolloutSelection(most=0.4), [BAD, WORSE]),
        (RolloutSelection(kind="evaluation"), []),
        (RolloutSelection(steps=(0, 3)), [GOOD, BAD, WORSE]),
        (RolloutSelection(steps=(1, 3)), []),
        (RolloutSelection(role="player", policy="model"), [GOOD, BAD, WORSE]),
        (RolloutSelection(role="other"), []),
    ],
)
def test_only_what_is_asked_for_is_chosen(
    wanted: RolloutSelection, found: list[RolloutRecord]
) -> None:
    assert [one for one in (GOOD, BAD, WORSE) if wanted.holds(one)] == found
