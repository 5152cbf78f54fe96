"""Steps per second in tokens: `TinkerEnv.step` compared with the cookbook's `EnvFromMessageEnv`.

Conversations of 20 turns of one world, with the same renderer and tokenizer for both. The texts
differ from conversation to conversation, so that caches do not help. Both sides are means of
processor time: the cookbook renders in threads, whose waits would count as time otherwise. Run it
with `python -m benchmarks.token_steps`; it takes a minute and exits with 1 if a target is missed.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tinker_cookbook.renderers import Message, get_text_content
from tinker_cookbook.rl.message_env import EnvFromMessageEnv, MessageEnv, MessageStepResult
from tinker_cookbook.rl.types import Env

from benchmarks.pages import write_block
from tokengym.agents.reports.markdown import markdown_table
from tokengym.agents.tinker.codec import RendererCodec, codec_named
from tokengym.agents.tinker.env import TinkerEnv
from tokengym.envs.core.optimum import Optimum
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import StopReason, Turn
from tokengym.envs.core.world import World
from tokengym.rewards.bounds import Range

TURNS = 20
LATE_TURN = 100
MOST_GROWTH = 1.3
HEADER = [
    *("renderer", "tokenizer", "cookbook steps/s", "ours steps/s", "ratio", "target"),
    f"turn 100 ÷ turn 2, at most {MOST_GROWTH}",
]
SPEC = WorldSpec(
    id="benchmark/Hours-v0",
    summary="Answers any reply with the next hour's demand and price.",
    entry_point="",
    baselines="",
    roles=("operator",),
    turn_limits={"short": TURNS, "long": LATE_TURN + 2},
    step_range={"operator": Range(0.0, 1.0)},
    return_range={"operator": Range(0.0, 1000.0)},
)


class Hours(World):
    """A minimal world: nearly all of a step's time goes into tokens."""

    expected_form = "output 12"

    def optimum(self, task: Task) -> Mapping[str, Optimum]:
        return {"operator": Optimum(0.0, exact=True)}

    def _draw(self, rng: np.random.Generator) -> Mapping[str, Any]:
        news = [
            f"Hour {hour}: demand {demand} MW, price 0.{price}. Output?"
            for hour, (demand, price) in enumerate(rng.integers(10, 99, (self.turn_limit + 1, 2)))
        ]
        return {"news": news}

    def _solve(self, instance: Mapping[str, Any], rng: np.random.Generator) -> Mapping[str, Any]:
        return {}

    def _begin(self, task: Task) -> Turn:
        self._news = task.instance["news"]
        self._hour = 0
        return Turn("operator", "You run a power station. " + self._news[0])

    def _respond(self, text: str, complete: bool) -> Turn:
        self._hour += 1
        terms = {"operator": {"form": 0.0}}
        metrics = {"well_formed": float(complete)}
        if self._hour == self.turn_limit:
            return self._end("operator", "", terms, StopReason.TURN_LIMIT, metrics)
        rewards, rounded = self._pay(terms, final=False)
        return Turn("operator", self._news[self._hour], rewards, rounded, metrics=metrics)


class Talk(MessageEnv):
    """The same world for the cookbook: every step returns the whole conversation."""

    def __init__(self, world: World, task: Task) -> None:
        self._world = world
        self._task = task
        self._messages: list[Message] = []

    async def initial_observation(self) -> list[Message]:
        self._messages = [Message(role="user", content=self._world.start(self._task).text)]
        return self._messages

    async def step(self, message: Message) -> MessageStepResult:
        turn = self._world.reply(get_text_content(message))
        self._messages += [message, Message(role="user", content=turn.text)]
        return MessageStepResult(turn.rewards["operator"], turn.done, self._messages)


def small_tokenizer(folder: Path) -> str:
    """Train a byte-level BPE tokenizer with chat tokens on this repository's text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    chat = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=8000,
        special_tokens=chat,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    sources = sorted(Path(__file__).resolve().parent.parent.glob("envs/**/*.py"))
    tokenizer.train([str(path) for path in sources], trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=chat[0], additional_special_tokens=chat[1:]
    )
    fast.save_pretrained(folder)
    return str(folder)


async def step_times(env: Env, actions: list[list[int]]) -> list[float]:
    """Play a conversation and return the seconds of processor time of each step."""
    await env.initial_observation()
    times = []
    done = False
    for action in actions:
        start = time.process_time()
        result = await env.step(action)
        times.append(time.process_time() - start)
        done = result.episode_done
    if not done:
        raise RuntimeError("the conversation did not end with the last action")
    return times


class Measured(NamedTuple):
    """Means over conversations of processor time.

    Attributes:
        theirs: seconds per step of the cookbook's env.
        ours: seconds per step of ours.
        growth: seconds of our turns around the 100th / seconds of the second to the sixth.
    """

    theirs: float
    ours: float
    growth: float


async def measure(codec: RendererCodec, conversations: int) -> Measured:
    """Play conversations of both kinds in alternation."""
    short, long = Hours(SPEC, "short"), Hours(SPEC, "long")
    replies = [codec.write(f"output {10 + hour % 80}") for hour in range(long.turn_limit)]
    theirs, ours, long_ones = [], [], []
    for index in range(conversations):
        talk = Talk(Hours(SPEC, "short"), short.task("train", index))
        env: Env = EnvFromMessageEnv(codec.renderer, talk)
        theirs += await step_times(env, replies[:TURNS])
        for again in range(20):
            task = short.task("test", 20 * index + again)
            env = TinkerEnv(Hours(SPEC, "short"), task, codec)
            ours += await step_times(env, replies[:TURNS])
        for again in range(10):
            task = long.task("train", 10 * index + again)
            env = TinkerEnv(Hours(SPEC, "long"), task, codec)
            long_ones.append(await step_times(env, replies))
    mean = statistics.fmean
    late = mean(mean(times[LATE_TURN - 5 : LATE_TURN]) for times in long_ones)
    early = mean(mean(times[1:6]) for times in long_ones)
    return Measured(mean(theirs), mean(ours), late / early)


def main() -> int:
    """Print the table; return 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokenizer", help="Hugging Face tokenizer: name or directory")
    parser.add_argument("--conversations", type=int, default=100)
    parser.add_argument("--markdown", type=Path, help="page whose block is replaced by the table")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    missed, rows = 0, []
    with tempfile.TemporaryDirectory() as folder:
        hugging_face = options.tokenizer or small_tokenizer(Path(folder))
        for name, tokenizer, kind, target in (
            ("qwen3_instruct", hugging_face, "Hugging Face", 25),
            ("role_colon", hugging_face, "Hugging Face", 20),
            ("tml_v0", "thinkingmachines/Inkling-Small", "tml", 7),
        ):
            codec = codec_named(f"{name}@{tokenizer}")
            if not isinstance(codec, RendererCodec):
                raise TypeError(f"{codec.name} is not a renderer")
            found = asyncio.run(measure(codec, options.conversations))
            ratio = found.theirs / found.ours
            missed += ratio < target or found.growth > MOST_GROWTH
            rates = f"{1 / found.theirs:,.0f}", f"{1 / found.ours:,.0f}", f"{ratio:.0f}"
            rows.append([f"`{name}`", kind, *rates, str(target), f"{found.growth:.2f}"])
    text = markdown_table(HEADER, rows)
    print(text)
    if options.markdown:
        write_block(options.markdown, "token_steps.py", text)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
