"""Laws of the records of a group: its tokens, their texts and log-probabilities, its advantages."""

import asyncio

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tinker_cookbook.completers import TinkerTokenCompleter
from tinker_cookbook.rl.rollouts import do_group_rollout

from tests.training.rollouts import Scripted, noisy
from tokengym.agents.rollouts import RolloutOrigin, RolloutRecord
from tokengym.agents.tinker.codec import RendererCodec
from tokengym.agents.tinker.group_records import TokenTexts
from tokengym.agents.tinker.groups import TaskGroupBuilder
from tokengym.agents.toy_model import MODEL_DIR
from tokengym.envs import make_world
from tokengym.envs.tokens.codec import ByteCodec

pytestmark = pytest.mark.filterwarnings("ignore")


def test_a_group_is_recorded_as_it_was_sampled() -> None:
    world = make_world("forecast")
    found: list[RolloutRecord] = []
    origin = RolloutOrigin("train", step=3, group=5)
    task = world.task("train", 0)
    builder = TaskGroupBuilder(task, "byte", 3, origin=origin, record=found.extend)
    policy = TinkerTokenCompleter(Scripted(noisy), max_tokens=40)  # type: ignore[arg-type]
    group = asyncio.run(do_group_rollout(builder, policy))
    returns = group.get_total_rewards()
    assert [record.origin.member for record in found] == [0, 1, 2]
    assert [record.total for record in found] == returns
    mean = sum(returns) / 3
    assert [record.advantage for record in found] == [value - mean for value in returns]
    for record, rollout in zip(found, group.trajectories_G, strict=True):
        (turn,), (step,) = record.turns, rollout.transitions
        assert list(turn.tokens) == step.ac.tokens
        assert list(turn.logprobs) == step.ac.logprobs
        assert "".join(turn.pieces) == turn.said
        assert turn.prompt_tokens == step.ob.length
        assert turn.finish == "stop"
        assert record.stop_reason == "completed"
        assert record.fingerprint == task.fingerprint


codec = RendererCodec("qwen3_instruct", str(MODEL_DIR))


@given(st.text(max_size=30), st.integers(0, 4))
def test_the_texts_of_tokens_spell_the_whole(text: str, cut: int) -> None:
    tokens = codec.write(text)[: -cut or None]
    pieces = TokenTexts(codec).pieces(tokens)
    assert len(pieces) == len(tokens)
    assert "".join(pieces) == codec.tokenizer.decode(tokens)


def test_a_character_of_several_tokens_comes_with_the_last() -> None:
    assert TokenTexts(ByteCodec()).pieces(ByteCodec().write("aé🙂")) == [
        *("a", "", "é", "", "", "", "🙂", "")
    ]


def test_log_probabilities_are_the_same_in_single_precision() -> None:
    values = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    from tokengym.agents.rollouts.record import _shortest

    assert all(np.float32(_shortest(float(value))) == value for value in values)
