"""A TinkerEnv only appends, ends with the right reason, and treats any tokens as data."""

import asyncio
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import tinker
from hypothesis import given
from hypothesis import strategies as st
from tinker_cookbook.completers import TokenCompleter, TokensWithLogprobs
from tinker_cookbook.renderers import Message as RenderedMessage
from tinker_cookbook.rl.data_processing import trajectory_to_data
from tinker_cookbook.rl.rollouts import do_single_rollout
from tinker_cookbook.rl.types import (
    ActionExtra,
    InitialObservationOverflow,
    StepResult,
    Trajectory,
    Transition,
)

from tests.tokens.duet import DUET, Duet
from tokengym.agents.tinker.codec import RendererCodec, codec_named
from tokengym.agents.tinker.coordinator import Opponent
from tokengym.agents.tinker.env import TinkerEnv
from tokengym.agents.tinker.prompt import TokenPrompt
from tokengym.envs.core.errors import EpisodeStateError, OptionError, RoleError
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.tokens.codec import ByteCodec, Codec, Message
from tokengym.testing import token_arrays

Talk = Callable[..., tuple[World, Task]]
_SLOW = (("qwen3+keep_thinking", "Qwen3"), ("glm5_3_max_reasoning", "Glm"), ("tml_v0", "inkling"))
"""Those whose tokenizers take seconds to load."""
CODECS = (
    *(None, ("role_colon", "bpe"), ("qwen3_instruct", "bpe")),
    *(pytest.param(pair, marks=pytest.mark.nightly) for pair in _SLOW),
)
BYTE = ByteCodec()


@pytest.fixture(params=CODECS, ids=lambda pair: "-".join(pair or ("byte",)))
def codec(request: pytest.FixtureRequest, tokenizer_named: Callable[[str], str]) -> Codec:
    if request.param is None:
        return BYTE
    renderer, tokenizer = request.param
    return codec_named(f"{renderer}@{tokenizer_named(tokenizer)}")


def roll(
    env: TinkerEnv, actions: list[list[int]], why: tinker.StopReason | None = None
) -> Trajectory:
    """Play a whole episode by hand."""

    async def play() -> Trajectory:
        first = await env.initial_observation()
        assert not isinstance(first, InitialObservationOverflow)
        observation, stop = first
        assert stop == env.codec.stop
        transitions = []
        for action in actions:
            extra = None if why is None else ActionExtra(stop_reason=why)
            result = await env.step(action, extra=extra)
            sampled = TokensWithLogprobs(tokens=action, maybe_logprobs=[-1.0] * len(action))
            transitions.append(
                Transition(
                    ob=observation,
                    ac=sampled,
                    reward=result.reward,
                    episode_done=result.episode_done,
                    metrics=result.metrics,
                    logs=result.logs,
                )
            )
            observation = result.next_observation
            if result.episode_done:
                break
        return Trajectory(transitions=transitions, final_ob=observation)

    return asyncio.run(play())


def stops(metrics: Mapping[str, float]) -> list[str]:
    return [key.removeprefix("stop/") for key in metrics if key.startswith("stop/")]


def test_it_works_by_hand(talk: Talk) -> None:
    async def play() -> StepResult:
        world, task = talk(level="one")
        env = TinkerEnv(world, task, "byte")
        first = await env.initial_observation()
        assert not isinstance(first, InitialObservationOverflow)
        assert first[0].to_ints() == BYTE.render([Message(task.instance["texts"][0], own=False)])
        return await env.step(BYTE.write("yes"))

    result = asyncio.run(play())
    assert result.reward == 1.0
    assert result.episode_done
    assert result.metrics == {
        "well_formed": 1.0,
        "malformed": 0.0,
        "copied": 0.0,
        "cut_off": 0.0,
        "repeating": 0.0,
        "term/yes": 1.0,
        "stop/max_turns": 1.0,
    }
    assert result.logs["reply"] == "yes"


def test_sampled_tokens_stay_as_sampled_and_make_one_datum(codec: Codec, talk: Talk) -> None:
    tokens = token_arrays(codec, max_length=8).map(np.ndarray.tolist)
    canonical = list(codec.write("yes"))
    ended = tokens.map(lambda sampled: [*sampled, *canonical])
    answers = st.text(max_size=10) | st.sampled_from(("<|im_end|>", "\n\nUser:", "", "yes\n\n"))

    @given(st.lists(tokens | ended, min_size=4, max_size=6), answers)
    def law(actions: list[list[int]], text: str) -> None:
        world, task = talk(text, "Go on.")
        rollout = roll(TinkerEnv(world, task, codec), actions)
        for before, after in zip(rollout.transitions, rollout.transitions[1:], strict=False):
            start = before.ob.to_ints() + before.ac.tokens
            assert after.ob.to_ints()[: len(start)] == start
            assert all(chunk.length for chunk in after.ob.chunks)
        (datum,) = trajectory_to_data(rollout, 1.0)
        last = rollout.transitions[-1]
        assert datum.model_input.to_ints() == (last.ob.to_ints() + last.ac.tokens)[:-1]
        mask = datum.loss_fn_inputs["mask"].data
        assert sum(mask) == sum(map(len, actions))

    law()


def test_a_codec_that_renders_again_shows_the_conversation_alone(
    talk: Talk, tokenizer_named: Callable[[str], str]
) -> None:
    """Each observation is what the renderer makes of the texts, replies without their thinking."""
    codec = codec_named(f"qwen3@{tokenizer_named('bpe')}")
    assert isinstance(codec, RendererCodec)
    assert not codec.append_only
    world, task = talk("Say it.", "Again.", "Once more.", level="three")
    replies = ["yes, one", "yes, two", "yes, three"]
    thought = [codec.tokenizer.encode(f"<think>\nHm.\n</think>\n\n{said}") for said in replies]
    end = list(codec.write(""))[-1:]
    rollout = roll(TinkerEnv(world, task, codec), [[*tokens, *end] for tokens in thought])
    assert [step.logs["reply"] for step in rollout.transitions] == replies
    talked: list[RenderedMessage] = []
    for step, text, said in zip(rollout.transitions, task.instance["texts"], replies, strict=True):
        talked.append({"role": "user", "content": text})
        assert step.ob.to_ints() == codec.renderer.build_generation_prompt(talked).to_ints()
        talked.append({"role": "assistant", "content": said})


def test_replies_that_end_like_the_first_text_are_copies(talk: Talk) -> None:
    """Of the first text alone: what came later may be the form that was asked for."""
    world, task = talk("Say it:\n  yes, 17\nor not.", "yes, 18", level="three")
    replies = ["yes, 17", "yes, 18", "Hm.\nyes, 17 \n\n"]
    rollout = roll(TinkerEnv(world, task), [BYTE.write(one) for one in replies])
    assert [step.metrics["copied"] for step in rollout.transitions] == [1.0, 0.0, 1.0]
    rollout = roll(TinkerEnv(world, task), [BYTE.write(one) for one in ("", "yes, 1", "yes")])
    assert [step.metrics["copied"] for step in rollout.transitions] == [0.0, 0.0, 0.0]


def test_a_reply_without_its_end_is_cut_off(
    talk: Talk, tokenizer_named: Callable[[str], str]
) -> None:
    codec = codec_named(f"qwen3_instruct@{tokenizer_named('bpe')}")
    whole = list(codec.write("yes"))
    unended = whole[: whole.index(list(codec.write(""))[-1])]
    cases: list[tuple[list[list[int]], tinker.StopReason | None, float]] = [
        ([whole] * 3, None, 0.0),
        ([whole] * 3, "stop", 0.0),
        ([whole] * 3, "length", 1.0),
        ([unended] * 3, None, 1.0),
        ([unended] * 3, "stop", 1.0),
    ]
    for actions, why, cut_off in cases:
        rollout = roll(TinkerEnv(*talk(level="three"), codec), actions, why)
        assert [step.metrics["cut_off"] for step in rollout.transitions] == [cut_off] * 3, why


@given(st.lists(token_arrays(BYTE, max_length=9).map(np.ndarray.tolist), max_size=5))
def test_a_prompt_is_as_good_as_a_checked_model_input(parts: list[list[int]]) -> None:
    prompt = TokenPrompt()
    handed_out = []
    for part in parts:
        prompt.append(part)
        handed_out.append(prompt.model_input())
    for count, built in enumerate(handed_out, start=1):
        chunks = [tinker.EncodedTextChunk(tokens=part) for part in parts[:count] if part]
        checked = tinker.ModelInput(chunks=list(chunks))
        assert built == checked
        assert built.model_dump_json() == checked.model_dump_json()
        assert pickle.loads(pickle.dumps(built)) == checked
        assert built.model_copy(deep=True) == checked
        assert tinker.ModelInput.model_validate_json(built.model_dump_json()) == checked
        assert built.length == sum(map(len, parts[:count]))


def test_an_env_is_used_once(talk: Talk) -> None:
    async def play() -> None:
        env = TinkerEnv(*talk(level="one"))
        with pytest.raises(EpisodeStateError, match="initial_observation"):
            await env.step([])
        await env.initial_observation()
        with pytest.raises(EpisodeStateError, match="one episode"):
            await env.initial_observation()
        await env.step([])
        with pytest.raises(EpisodeStateError, match="over"):
            await env.step([])

    asyncio.run(play())


@pytest.mark.parametrize(
    ("replies", "why", "reason"),
    [
        (["yes", "yes", "yes"], "stop", "max_turns"),
        (["yes", "no", "no"], "stop", "parse_error"),
        (["yes", "yes", "yes"], "length", "max_tokens"),
    ],
)
def test_every_end_has_its_reason(
    talk: Talk, replies: list[str], why: tinker.StopReason, reason: str
) -> None:
    rollout = roll(TinkerEnv(*talk(level="three")), [BYTE.write(r) for r in replies], why)
    assert [stops(step.metrics) for step in rollout.transitions] == [[], [], [reason]]


def test_a_first_observation_over_budget_is_no_exception(talk: Talk) -> None:
    world, task = talk("x" * 100, level="three")
    env = TinkerEnv(world, task, max_trajectory_tokens=100)
    overflow = asyncio.run(env.initial_observation())
    assert isinstance(overflow, InitialObservationOverflow)
    assert overflow.reward == 0.0
    assert stops(overflow.metrics) == ["max_tokens"]
    with pytest.raises(EpisodeStateError, match="the episode is over"):
        asyncio.run(env.step(BYTE.write("yes")))


def test_no_prompt_and_reply_exceed_the_budget(talk: Talk) -> None:
    @given(st.integers(30, 400), st.integers(1, 20), st.integers(0, 30))
    def law(total: int, turn: int, length: int) -> None:
        asyncio.run(play(total, turn, BYTE.write("yes" + "!" * length)[:turn]))

    async def play(total: int, turn: int, action: list[int]) -> None:
        env = TinkerEnv(*talk(), max_trajectory_tokens=total, max_turn_tokens=turn)
        first = await env.initial_observation()
        if isinstance(first, InitialObservationOverflow):
            assert stops(first.metrics) == ["max_tokens"]
            return
        observation = first[0]
        earned, ends = 0.0, list[str]()
        while not ends:
            assert observation.length + turn <= total
            result = await env.step(action)
            earned += result.reward
            ends, observation = stops(result.metrics), result.next_observation
            assert result.episode_done == bool(ends)
        assert ends[0] in ("context_overflow", "max_turns", "parse_error")
        # Rewards from before the budget ran out are kept, and the rest is paid at once.
        assert earned == env.world.returns["speaker"]

    law()


def test_the_runner_gets_the_budgets(talk: Talk) -> None:
    asked: list[int | None] = []

    class Policy(TokenCompleter):
        async def __call__(
            self, model_input: Any, stop: Any, *, max_tokens: int | None = None
        ) -> TokensWithLogprobs:
            asked.append(max_tokens)
            return TokensWithLogprobs(tokens=BYTE.write("yes"), maybe_logprobs=[0.0] * 4)

    env = TinkerEnv(*talk(), max_trajectory_tokens=100, max_turn_tokens=10)
    rollout = asyncio.run(do_single_rollout(Policy(), env))
    assert asked == [10] * len(rollout.transitions)
    assert rollout.stop_reason == "context_overflow"


@pytest.mark.parametrize(
    "budgets",
    [
        {"max_trajectory_tokens": 0},
        {"max_trajectory_tokens": 10, "max_turn_tokens": 10},
        {"max_turn_tokens": 0},
    ],
)
def test_a_budget_without_room_for_a_reply_is_refused(talk: Talk, budgets: Any) -> None:
    with pytest.raises(OptionError, match="must fit"):
        TinkerEnv(*talk(), **budgets)


def short_word(world: World, turn: Turn, rng: np.random.Generator) -> str:
    return "a" * int(rng.integers(1, 4))


async def long_word(world: World, turn: Turn, rng: np.random.Generator) -> str:
    await asyncio.sleep(0)
    return "a" * 9


def test_a_cut_off_reply_does_not_rename_another_end() -> None:
    """Only where the world ends on a malformed reply is the token limit the reason."""
    world = Duet(DUET, "short")
    for role, other in (("first", "second"), ("second", "first")):
        env = TinkerEnv(world, world.task("train", 0), role=role, opponents={other: short_word})
        rollout = roll(env, [BYTE.write("aaaa")] * 3, "length")
        assert [step.metrics["cut_off"] for step in rollout.transitions] == [1.0] * 3
        assert stops(rollout.transitions[-1].metrics) == ["completed"]


@pytest.mark.parametrize("role", DUET.roles)
@pytest.mark.parametrize("opponent", [short_word, long_word])
def test_metrics_are_those_of_the_members_own_reply(role: str, opponent: Opponent) -> None:
    """Whoever has replied since it; a reply of eleven letters is the member's alone."""
    other = "second" if role == "first" else "first"
    world = Duet(DUET, "short")
    env = TinkerEnv(world, world.task("train", 0), role=role, opponents={other: opponent})
    rollout = roll(env, [BYTE.write("a" * 11)] * 3)
    assert [step.metrics["length"] for step in rollout.transitions] == [11.0] * 3


@pytest.mark.parametrize("opponents", [{}, {"first": short_word}, {"third": short_word}])
def test_every_role_needs_somebody_to_play_it(opponents: Any) -> None:
    world = Duet(DUET, "short")
    with pytest.raises(RoleError, match="second"):
        TinkerEnv(world, world.task("train", 0), role="first", opponents=opponents)
