"""An Episode is append-only, keeps its budget, forks, and never minds what is sampled."""

import copy
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tokens.duet import DUET, ROLES, Duet
from tokengym.envs.core.errors import EpisodeStateError, OptionError, RoleError, TokenError
from tokengym.envs.core.turn import StopReason
from tokengym.envs.tokens.codec import ByteCodec, Message
from tokengym.envs.tokens.episode import Episode
from tokengym.testing import token_arrays

BYTE = ByteCodec()


class Rerendering(ByteCodec):
    """A format that shows only the last text and the last reply."""

    append_only = False

    def render(self, conversation: Sequence[Message]) -> list[int]:
        return super().render(conversation[-2:])


def episode(**options: Any) -> Episode:
    world = Duet(DUET)
    return Episode(world, world.task("train", 0), **options)


actions = token_arrays(BYTE, max_length=12).map(np.ndarray.tolist)


@given(st.lists(actions, max_size=12))
def test_an_observation_extends_the_last_by_action_and_tokens(said: list[list[int]]) -> None:
    played = episode()
    seen: dict[str, list[int]] = {}
    for action in said:
        role = played.role
        before = played.observation.tolist()
        assert before[: len(seen.get(role, []))] == seen.get(role, [])
        played.act(np.array(action, dtype=np.int64))
        seen[role] = before + action
    for role, tokens in seen.items():
        assert played.observation_of(role).tolist()[: len(tokens)] == tokens
        assert played.tokens_of(role) == played.observation_of(role).tolist()
        assert played.tokens_of(role, 7) == played.tokens_of(role)[7:]


@given(st.lists(st.text(), max_size=11))
def test_what_is_said_in_text_is_what_rendering_shows(said: list[str]) -> None:
    played = episode()
    talks: dict[str, list[Message]] = {role: [] for role in ROLES}
    talks[played.role].append(Message(played.turn.text, own=False))
    for text in said:
        talks[played.role].append(Message(text, own=True))
        turn = played.say(text)
        talks[turn.role].append(Message(turn.text, own=False))
    for role in ROLES[: len(said) + 1]:
        assert played.tokens_of(role) == BYTE.render(talks[role])


def test_views_handed_out_keep_what_they_showed() -> None:
    for codec in (BYTE, Rerendering()):
        played = episode(codec=codec)
        kept = []
        for _ in range(11):
            kept.append((played.observation, played.observation.tolist()))
            played.say("x" * 700)
        for view, shown in kept:
            assert view.tolist() == shown
            assert view.dtype == np.int64
            with pytest.raises(ValueError, match="read-only"):
                view[0] = 0


def test_a_format_that_forbids_appending_renders_again() -> None:
    played = episode(codec=Rerendering())
    assert not played.append_only
    for text in ("abc", "defg", "hij"):
        played.say(text)
    last = [Message("defg", own=True), Message(played.turn.text, own=False)]
    assert played.observation.tolist() == BYTE.render(last)


@pytest.mark.nightly
@given(st.integers(1, 200), st.lists(actions, min_size=12, max_size=12))
def test_no_observation_exceeds_the_budget(budget: int, said: list[list[int]]) -> None:
    played = episode(token_budget=budget)
    earned = dict.fromkeys(ROLES, 0.0)
    turns = [played.turn]
    for action in said:
        if played.done:
            break
        assert len(played.observation) <= budget
        turns.append(played.act(action))
    for turn in turns:
        for role, reward in turn.rewards.items():
            earned[role] += reward
    assert earned == played.world.returns
    assert played.done
    reason = StopReason.TOKEN_BUDGET if played.turn.truncated else StopReason.COMPLETED
    assert played.turn.stop_reason is reason


def test_the_last_answer_survives_the_end_of_budget() -> None:
    played = episode(token_budget=60)
    while not played.done:
        played.say("abcdef")
    assert played.turn.stop_reason is StopReason.TOKEN_BUDGET
    assert played.answer.stop_reason is None
    assert played.reply == ("abcdef", True)


def test_a_reply_cut_off_is_incomplete() -> None:
    assert episode().act(BYTE.write("abc"), "length").rewards["first"] == 0.0
    assert episode().act(BYTE.write("abc"), "stop").rewards["first"] == 1.0
    assert episode().act(BYTE.write("abc")).rewards["first"] == 1.0


@given(st.lists(actions, min_size=1, max_size=5), st.lists(actions, min_size=1, max_size=5))
def test_a_fork_is_an_independent_twin(shared: list[list[int]], after: list[list[int]]) -> None:
    played = episode()
    for action in shared:
        played.act(action)
    twins = [played.fork(), copy.deepcopy(played), pickle.loads(pickle.dumps(played))]
    before = played.observation.tolist()
    for action in after:
        played.act(action)
    for twin in twins:
        assert twin.observation.tolist() == before
        for action in after:
            twin.act(action)
        assert twin.observation.tolist() == played.observation.tolist()
        assert twin.turn == played.turn


def test_a_role_may_speak_in_text_only() -> None:
    played = episode(roles=("second",))
    with pytest.raises(RoleError, match="first"):
        played.act([1])
    with pytest.raises(RoleError, match="first"):
        _ = played.observation
    played.say("abc")
    assert played.observation.tolist() == BYTE.render([Message("It said: abc", own=False)])
    played.act(BYTE.write("defg"))
    with pytest.raises(RoleError, match="first"):
        played.tokens_of("first")
    with pytest.raises(RoleError, match="third"):
        episode(roles=("third",))


@pytest.mark.parametrize(
    "action", [[-1], [258], [0.5], [[1, 2]], "ab", [True, False], np.zeros((1, 2), dtype=int)]
)
def test_what_is_no_token_array_is_refused(action: Any) -> None:
    with pytest.raises(TokenError):
        episode().act(action)


@pytest.mark.parametrize("action", [[], np.array([], dtype=np.int32), np.array([65], np.uint8)])
def test_any_integer_array_will_do(action: Any) -> None:
    assert episode().act(action).role == "second"


def test_after_the_end_nobody_speaks() -> None:
    played = episode()
    while not played.done:
        played.say("abc")
    with pytest.raises(EpisodeStateError, match="over"):
        played.act([1])
    with pytest.raises(EpisodeStateError, match="over"):
        played.play([1])
    with pytest.raises(EpisodeStateError, match="over"):
        played.say("abc")


def test_a_budget_is_positive() -> None:
    with pytest.raises(OptionError, match="at least 1"):
        episode(token_budget=0)
