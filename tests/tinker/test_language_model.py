"""A language model as an opponent: it remembers one episode, and all of a group meet one seed."""

import asyncio
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import tinker
from tinker_cookbook.utils.ml_log import dump_config

from tokengym.agents.tinker.env import TinkerEnv
from tokengym.agents.tinker.groups import TaskGroupBuilder
from tokengym.agents.tinker.language_model import LanguageModelOpponent
from tokengym.envs.core.episode import DecodedReply
from tokengym.envs.core.turn import Turn
from tokengym.envs.disruption.challengers import null
from tokengym.envs.registry import make_world
from tokengym.envs.tokens.codec import ByteCodec

BYTE = ByteCodec()
ANSWER = "LABEL neutral\nP 0.2 0.3 0.5\n"


class Sampler:
    """Stands in for the SDK's sampler: always gives one reply, and records its prompts."""

    def __init__(self, text: str = ANSWER, stop_reason: tinker.StopReason = "stop") -> None:
        self.text = text
        self.stop_reason = stop_reason
        self.asked: list[tuple[list[int], tinker.SamplingParams]] = []

    async def sample(
        self, prompt: tinker.ModelInput, num_samples: int, sampling_params: tinker.SamplingParams
    ) -> tinker.SampleResponse:
        self.asked.append((prompt.to_ints(), sampling_params))
        await asyncio.sleep(0)
        tokens = np.array(BYTE.write(self.text), dtype=np.int32)
        sequence = tinker.SampledSequence(
            stop_reason=self.stop_reason,
            sequence_id="one",
            tokens_np=tokens,
            logprobs_np=np.zeros(len(tokens), dtype=np.float32),
        )
        return tinker.SampleResponse(sequences=[sequence])


def opponent(sampler: Any, **options: Any) -> LanguageModelOpponent:
    return LanguageModelOpponent(sampler, "byte", max_tokens=64, **options)


async def debate(sampler: Sampler, index: int = 0) -> TinkerEnv:
    """Play the challenger against the model."""
    world = make_world("disruption")
    opponents = {"predictor": opponent(sampler)}
    env = TinkerEnv(world, world.task("train", index), role="challenger", opponents=opponents)
    await env.initial_observation()
    await env.step(BYTE.write("ARGUE disruptive"))
    return env


def test_its_prompt_extends_its_last_prompt_and_reply() -> None:
    sampler = Sampler()
    env = asyncio.run(debate(sampler))
    (first, _), (second, parameters) = sampler.asked
    reply = BYTE.write(ANSWER)
    assert second[: len(first) + len(reply)] == [*first, *reply]
    assert "The challenger argues for disruptive" in bytes(t for t in second if t < 256).decode()
    assert env.coordinator.episode.turn.stop_reason == "completed"
    assert parameters.max_tokens == 64
    assert parameters.stop == BYTE.stop


def test_every_episode_begins_with_an_empty_memory() -> None:
    sampler = Sampler()
    model, turn = opponent(sampler), Turn("predictor", "Hm.")
    for _ in range(2):
        asyncio.run(model.start_episode()(make_world("disruption"), turn, _rng()))  # type: ignore[arg-type]
    assert sampler.asked[0][0] == sampler.asked[1][0]


def _rng() -> np.random.Generator:
    return np.random.default_rng(3)


def test_members_of_a_group_meet_the_same_luck() -> None:
    seeds = []
    for index in (0, 0, 1):
        sampler = Sampler()
        asyncio.run(debate(sampler, index))
        seeds.append([parameters.seed for _, parameters in sampler.asked])
    assert seeds[0] == seeds[1]
    assert seeds[0] != seeds[2]


def test_a_cut_off_reply_is_cut_off_to_the_world() -> None:
    env = asyncio.run(_opened(Sampler(stop_reason="length")))
    assert env.coordinator.episode.reply == DecodedReply(ANSWER, complete=False)
    # Its lines had ended: they count, and the debate goes on.
    assert env.coordinator.episode.turn.role == "challenger"


async def _opened(sampler: Sampler) -> TinkerEnv:
    world = make_world("disruption")
    opponents = {"predictor": opponent(sampler)}
    env = TinkerEnv(world, world.task("train", 0), role="challenger", opponents=opponents)
    await env.initial_observation()
    return env


def test_it_travels_in_a_builder_and_shows_in_a_config() -> None:
    task = make_world("disruption").task("train", 0)
    opponents = {"challenger": opponent(Sampler("ARGUE neutral"), temperature=0.5)}
    builder = pickle.loads(pickle.dumps(TaskGroupBuilder(task, "byte", 2, opponents=opponents)))
    (one, _) = asyncio.run(builder.make_envs())

    async def play() -> str:
        await one.initial_observation()
        await one.step(BYTE.write(ANSWER))
        return str(one.coordinator.episode.turn.text)

    assert "The challenger argues for neutral" in asyncio.run(play())
    written = dump_config({"opponents": opponents})["opponents"]["challenger"]
    assert written["temperature"] == 0.5
    assert written["codec"] == "byte"


def test_a_renderers_model_reads_its_own_chat_format(tokenizer_named: Callable[[str], str]) -> None:
    """What it reads is what a trained policy of that format would read."""
    name = f"qwen3_instruct@{tokenizer_named('bpe')}"
    sampler = Sampler()
    world = make_world("disruption")
    task = world.task("train", 0)
    model = LanguageModelOpponent(sampler, name, max_tokens=64)  # type: ignore[arg-type]
    asyncio.run(model.start_episode()(world.fork(), world.start(task), _rng()))  # type: ignore[arg-type]
    env = TinkerEnv(world.fork(), task, name, opponents={"challenger": null})
    opened = asyncio.run(env.initial_observation())
    assert isinstance(opened, tuple)
    assert sampler.asked[0][0] == opened[0].to_ints()
