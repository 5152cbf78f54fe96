"""Laws of Tasks as data, of drawing them, and of playing and replaying them."""

import copy
import json
import pickle
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.test_question import SPEC as SUM
from tests.core.test_question import Sum
from tests.tokens.duet import DUET, ROLES, Duet
from tokengym.envs import Task, World, play
from tokengym.envs.core.errors import EpisodeStateError, OptionError, RoleError, TaskError
from tokengym.envs.core.play import PlayedEpisode, record_replies, replay
from tokengym.envs.core.task import canonical_json, to_plain_json
from tokengym.envs.core.task_drawing import Unusable, draw_usable
from tokengym.envs.core.turn import StopReason, Turn
from tokengym.rewards.bounds import Range, RewardRangeError

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.text(max_size=4), PLAIN, max_size=4)
FIELDS: dict[str, Any] = {"world": "w", "level": "l", "split": "train", "index": 0}


@pytest.mark.nightly
@given(OBJECTS, OBJECTS, OBJECTS, st.integers(0, 10**9))
def test_a_task_comes_back_from_json_and_pickle(
    instance: dict[str, Any], answer: dict[str, Any], options: dict[str, Any], index: int
) -> None:
    made = Task.create(
        **{**FIELDS, "index": index}, instance=instance, answer=answer, options=options
    )
    assert (made.instance, made.answer, made.options) == (instance, answer, options)
    for again in (Task.from_json(made.to_json()), pickle.loads(pickle.dumps(made))):
        assert again == made
        assert hash(again) == hash(made)
        assert (again.index, again.answer) == (index, answer)
    assert copy.deepcopy(made) is made
    assert "\n" not in made.to_json()
    # Only the fields travel: what was read from them is read again.
    assert set(made.__getstate__()) == set(Task.__dataclass_fields__)


def test_a_fingerprint_is_of_the_world_and_the_instance_alone() -> None:
    base = Task.create(**FIELDS, instance={"a": 1}, answer={})
    same = Task.create(
        world="w", level="m", split="test", index=7, instance={"a": 1}, answer={"b": 2}
    )
    assert base.fingerprint == same.fingerprint == "b0a0dd149861019b9808393877d2bcbb"
    others = [
        Task.create(**{**FIELDS, "world": "v"}, instance={"a": 1}, answer={}),
        Task.create(**FIELDS, instance={"a": 1.0}, answer={}),
    ]
    assert len({base.fingerprint, *(other.fingerprint for other in others)}) == 3
    assert len(base.fingerprint) == 32


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"index": -1}, "must be an integer >= 0, got -1"),
        ({"index": True}, "must be an integer >= 0, got True"),
        ({"index": 1.0}, "must be an integer >= 0, got 1.0"),
        *(({name: 3}, f"'{name}' must be a string, got 3") for name in ("world", "level", "split")),
        *(
            ({name: []}, f"{name} must be a JSON object, got list")
            for name in ("instance", "answer")
        ),
        ({"options": None}, "options must be a JSON object, got NoneType"),
        ({"more": 1}, "a Task has the fields"),
    ],
)
def test_a_damaged_task_is_refused_by_name(changes: dict[str, Any], said: str) -> None:
    whole = json.loads(Task.create(**FIELDS, instance={}, answer={}).to_json())
    assert Task.from_json(json.dumps(whole)).index == 0
    with pytest.raises(TaskError, match=re.escape(said)):
        Task.from_json(json.dumps({**whole, **changes}))
    for name in whole:
        with pytest.raises(TaskError, match="a Task has the fields"):
            Task.from_json(json.dumps({key: whole[key] for key in whole if key != name}))


@pytest.mark.parametrize("text", ["", "{", "[]", "1", '{"world": NaN}', '{"world": -Infinity}'])
def test_what_is_no_object_of_json_is_no_task(text: str) -> None:
    with pytest.raises(TaskError):
        Task.from_json(text)


def test_numpy_values_become_plain_and_must_be_finite() -> None:
    found = to_plain_json(
        {1: np.arange(3), "x": (np.float64(0.5), np.int64(2), np.bool_(True)), "n": None}
    )
    assert found == {"1": [0, 1, 2], "x": [0.5, 2, True], "n": None}
    assert canonical_json(found) == '{"1":[0,1,2],"n":null,"x":[0.5,2,true]}'
    for bad in (float("nan"), float("inf"), -float("inf"), np.float64("nan"), [np.inf]):
        with pytest.raises(TaskError, match="finite numbers only"):
            to_plain_json(bad)
        with pytest.raises(TaskError, match="plain finite JSON"):
            canonical_json(bad)
    with pytest.raises(TaskError, match="plain finite JSON"):
        canonical_json({"a": object()})


def drawn(owners: Iterator[str]) -> Any:
    numbers = iter(range(10**6))
    return lambda: ({"n": next(numbers)}, next(owners))


def test_the_splits_first_instance_with_an_answer_counts() -> None:
    owners = iter(["test", "train", "train", "train"])
    found = draw_usable(
        drawn(owners), lambda one: {"a": np.int64(one["n"])} if one["n"] > 1 else None, "train", "w"
    )
    assert found == ({"n": 2}, {"a": 2})
    assert next(owners) == "train"


def test_drawing_ends_after_so_many_refusals_and_says_why() -> None:
    whys = ["dark"] * 3 + ["cold"] * 2 + ["wet"] + ["late"] * 194
    solved: list[int] = []

    def solve(one: Any) -> Any:
        solved.append(one["n"])
        return Unusable(whys[one["n"]]) if one["n"] else None

    said = (
        "w gave no usable instance for 'train' in 200 draws, refused 194 times: late; "
        "2 times: dark; 2 times: cold"
    )
    with pytest.raises(TaskError, match=f"^{re.escape(said)}$"):
        draw_usable(drawn(iter(["train"] * 999)), solve, "train", "w")
    assert len(solved) == 200


def test_drawing_ends_after_so_many_instances_of_other_splits() -> None:
    owners = iter(["test"] * 20_000)
    with pytest.raises(TaskError, match=r"for 'train' in 10000 draws$"):
        draw_usable(drawn(owners), lambda one: {}, "train", "w")
    assert len(list(owners)) == 10_000
    late = iter(["test"] * 9_999 + ["train"])
    assert draw_usable(drawn(late), lambda one: {}, "train", "w") == ({"n": 9999}, {})


def long(world: World, turn: Turn, rng: np.random.Generator) -> str:
    return "x" * int(rng.integers(1, 9))


def test_a_play_needs_a_policy_for_each_role() -> None:
    world = Duet(DUET)
    task = world.task("test", 3)
    played = play(world, task, long)
    assert len(played.replies) == 12 == len(played.turns) - 1
    assert played.metrics is played.turns[-1].metrics
    assert played.returns == world.returns
    assert [turn.done for turn in played.turns] == [False] * 12 + [True]
    assert [turn.role for turn in played.turns[:-1]] == [*ROLES] * 6
    sums = {role: sum(turn.rewards.get(role, 0.0) for turn in played.turns) for role in ROLES}
    assert sums == played.returns
    both = play(world, task, dict.fromkeys(ROLES, long))
    assert both.replies == played.replies
    with pytest.raises(RoleError, match=re.escape("no policy for the role 'second', only for ['")):
        play(world, task, {"first": long})


def test_a_replay_shows_the_world_before_and_after_each_reply() -> None:
    world = Duet(DUET, "short")
    played = play(world, world.task(), long, seed=1)
    world.start(world.task("train", 9))
    said = []
    for number, (before, reply, turn, after) in enumerate(replay(world, played)):
        said.append(reply)
        assert turn == played.turns[number + 1]
        assert before is not after
        assert (before._said, after._said) == (number, number + 1)
        before.reply("a copy is free to change")
    assert tuple(said) == played.replies
    assert world._said == 0  # an episode under way goes on
    wrong = {**played.returns, "first": 99.0}
    with pytest.raises(TaskError, match="must be replayed with the options it was played with"):
        list(replay(world, PlayedEpisode(played.task, played.turns, tuple(said), wrong)))


@pytest.mark.parametrize("count", [0, 1, 5, 6])
def test_given_replies_may_be_finished_by_empty_ones(count: int) -> None:
    world = Duet(DUET, "short")
    replies = ["abc"] * count
    begun = record_replies(world, world.task(), replies)
    assert begun.replies == tuple(replies)
    assert len(begun.turns) == count + 1
    finished = record_replies(world, world.task(), replies, finish=True)
    assert finished.replies == (*replies, *[""] * (6 - count))
    assert finished.turns[-1].done
    assert finished.returns == begun.returns
    with pytest.raises(EpisodeStateError):
        world.reply("")


@given(st.integers(0, 12))
def test_a_stop_pays_all_that_is_left_and_says_why(count: int) -> None:
    world = Duet(DUET)
    turn = world.start(world.task())
    paid = dict.fromkeys(ROLES, 0.0)
    for number in range(count):
        turn = world.reply("x" * (number % 3))
        for role, reward in turn.rewards.items():
            paid[role] += reward
    if turn.done:
        with pytest.raises(EpisodeStateError, match=r"no episode is under way; call start\(task\)"):
            world.stop()
        return
    moved = turn if count else None
    last = world.stop(StopReason.ABANDONED, after=moved)
    for role in ROLES:
        before = moved.rewards.get(role, 0.0) if moved else 0.0
        assert paid[role] - before + last.rewards.get(role, 0.0) == world.returns[role]
        assert sum(last.terms.get(role, {}).values()) == last.rewards.get(role, 0.0)
    assert (last.terminated, last.truncated, last.stop_reason) == (False, True, "abandoned")
    assert (last.text, last.role) == ("Over.", "second")  # of the world's own last Turn


def test_no_return_lies_outside_the_worlds_range() -> None:
    narrow = replace(DUET, return_range={**DUET.return_range, "second": Range(0.0, 2.0)})
    world = Duet(narrow, "short")
    world.start(world.task())
    for number in range(5):
        world.reply("x" * (number + 1))
    with pytest.raises(RewardRangeError, match="return of 'second'"):
        world.reply("x" * 6)


def test_a_world_refuses_what_is_not_its_own() -> None:
    world = Duet(DUET)
    assert repr(world) == "<Duet test/Duet-v0 long: no episode under way>"
    assert (world.level, world.turn_limit, world.prompt) == ("long", 6, "full")
    assert Duet(DUET, "short").turn_limit == 3
    for use in (lambda: world.compiled, lambda: world.reply("")):
        with pytest.raises(EpisodeStateError, match=r"test/Duet-v0: no episode is under way"):
            use()
    task = world.task("validation", np.int64(2))  # type: ignore[arg-type]
    assert (task.split, task.index, type(task.index)) == ("validation", 2, int)
    world.start(task)
    assert world.compiled is task
    assert repr(world).endswith("first to reply>")
    with pytest.raises(RoleError, match="it is the turn of 'first', not of 'second'"):
        world.reply("", role="second")
    assert world.reply("abc", role="first").role == "second"
    world.returns["first"] = 9.0  # type: ignore[index]
    assert world.returns == {"first": 1.0, "second": 0.0}
    assert Duet.cast(world) is world
    with pytest.raises(TypeError, match="expected a Sum, got Duet"):
        Sum.cast(world)
    with pytest.raises(TaskError, match="test/Duet-v0 cannot play a Task of 'tests/Sum-v0'"):
        world.start(Sum(SUM).task())
    with pytest.raises(TaskError, match=r"damaged Task of tests/Sum-v0: KeyError\('best'\)"):
        Sum(SUM).start(
            Task.create(**{**FIELDS, "world": SUM.id}, instance={"question": "?"}, answer={})
        )


@pytest.mark.parametrize("index", [-1, True, 1.0, "1", None])
def test_an_index_is_a_whole_number_from_0(index: Any) -> None:
    with pytest.raises(
        OptionError, match=re.escape(f"index must be an integer >= 0, got {index!r}")
    ):
        Duet(DUET).task("train", index)


class Recorded(Duet):
    """Tasks of a user's records: three to train on, one to test on."""

    def _sizes(self) -> dict[str, int]:
        return {"train": 3, "validation": 0, "test": 1}

    def _task_of_record(self, split: str, index: int) -> Task:
        return self._new_task(split, index, {"greeting": f"{split} {index}"}, {})


def test_tasks_of_records_run_out_and_drawn_ones_do_not() -> None:
    world = Recorded(DUET)
    sizes = {split: world.size(split) for split in ("train", "validation", "test")}
    assert sizes == {"train": 3, "validation": 0, "test": 1}
    assert not world.generates
    assert world.size() == 3
    assert [task.index for task in world.first_tasks("train", 9)] == [0, 1, 2]
    assert [task.index for task in world.first_tasks("train", 2)] == [0, 1]
    assert world.task("test", 0).instance == {"greeting": "test 0"}
    assert (world.task().split, world.task().index) == ("train", 0)
    for split, index in (("test", 1), ("train", 3), ("validation", 0)):
        with pytest.raises(OptionError, match=f"'{split}' holds {sizes[split]} Tasks, got index"):
            world.task(split, index)
    free = Duet(DUET)
    assert free.size() is None
    assert free.generates
    assert len(free.first_tasks("test", 4)) == 4
    for use in (free.size, free.task, free.first_tasks):
        with pytest.raises(OptionError, match="split must be one of"):
            use("dev", *([1] if use == free.first_tasks else []))
    with pytest.raises(NotImplementedError, match="counts records and makes no Task"):
        free._task_of_record("train", 0)
    with pytest.raises(NotImplementedError, match="has windows and draws none"):
        free._draw_window(np.random.default_rng(0), 0)


class Scored(Duet):
    """A world that scores replies by an option."""

    by = "length"

    def _scoring_options(self) -> dict[str, Any]:
        return {} if self.by == "length" else {"by": self.by}


def test_a_task_keeps_its_options_until_it_is_adopted() -> None:
    usual, other = Scored(DUET), Scored(DUET)
    other.by = "words"
    task = usual.task("train", 4)
    with pytest.raises(
        TaskError, match=re.escape('scored by the options {}, this world by {"by":')
    ):
        other.start(task)
    adopted = other.adopt(task)
    assert adopted.options == other.options == {"by": "words"}
    assert adopted.fingerprint == task.fingerprint
    assert other.start(adopted).text == usual.start(task).text
    assert other.task("train", 4) == adopted


def test_a_fork_shares_only_what_cannot_change() -> None:
    world = Duet(DUET)
    world.start(world.task())
    twin = world.fork()
    assert twin is not world
    assert twin.spec is world.spec
    assert twin.compiled is world.compiled
    assert twin.reply("abc") == world.reply("abc")
    twin.reply("abcd")
    assert (world._said, twin._said) == (1, 2)
    assert world.returns == {"first": 1.0, "second": 0.0}
    assert twin.returns == {"first": 1.0, "second": 1.0}
