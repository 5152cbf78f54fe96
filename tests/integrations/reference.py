"""Scripted episodes of our own Env: every integration must pay the same, reward for reward."""

import json
from typing import Any, NamedTuple

import gymnasium
import numpy as np

import tokengym  # noqa: F401
from tokengym.envs import Task, baselines, make_world
from tokengym.envs.core.tools import openai_tools, read_call

WORLDS = ("forecast", "warehouse", "energy", "disruption")
SPLITS = ("train", "test")


DESKS = ("desk", "desk_errata")
"""The levels with tools."""


class Played(NamedTuple):
    """An episode of our own Env.

    Attributes:
        texts: what the role reads, the final feedback last; one more than there are replies.
        replies: of the role.
        rewards: of each of them.
        task_id: the Task's fingerprint.
    """

    texts: list[str]
    replies: list[str]
    rewards: list[float]
    task_id: str


def play_own(
    world: str, level: str | None = None, split: str = "test", index: int = 0, **options: Any
) -> Played:
    """Play one Task in `gymnasium.make(...)` with a baseline that reads only what is shown."""
    env = gymnasium.make(
        make_world(world).spec.id, level=level, mode="text", disable_env_checker=True, **options
    )
    text, info = env.reset(options={"split": split, "index": index})
    inner: Any = env.unwrapped
    name = "noisy" if "noisy" in baselines(world) else "random"
    policy, rng = baselines(world)[name], np.random.default_rng(index)
    played = Played([text], [], [], info["task"])
    done = False
    while not done:
        played.replies.append(policy(inner.world, inner.turn, rng))
        text, reward, terminated, truncated, _ = env.step(played.replies[-1])
        played.texts.append(text)
        played.rewards.append(float(reward))
        done = terminated or truncated
    return played


class Called(NamedTuple):
    """An episode at a desk, played by calls.

    Attributes:
        played: the episode of our own Env, in lines.
        messages: of the model, in OpenAI's form: native calls, two at once, lines, broken ones.
    """

    played: Played
    messages: list[dict[str, Any]]


TOOLS = {level: openai_tools(make_world("forecast", level).tools) for level in DESKS}
"""By level what requests declare."""


def play_called(level: str, split: str = "test", index: int = 0, **options: Any) -> Called:
    """Play a desk by calls of every kind, in our own Env by their lines."""
    world = make_world("forecast", level, **paid_by("forecast", split), **options)
    turn = world.start(task := world.task(split, index))
    played = Played([turn.text], [], [], task.fingerprint)
    messages: list[dict[str, Any]] = []
    rng = np.random.default_rng(7)
    while not turn.done:
        count, call = len(messages), None
        line = baselines("forecast")["random"](world, turn, rng)
        call = read_call(line, world.tools)
        assert call is not None
        broken = count == 1
        arguments = '{"note": 3' if broken else json.dumps(dict(call.arguments))
        function = {"name": "open" if broken else call.name, "arguments": arguments}
        calls = [{"id": f"call_{count}", "type": "function", "function": function}]
        if count % 2:
            other = {"name": "answer", "arguments": '{"probability": 0.5}'}
            calls.append({"id": f"more_{count}", "type": "function", "function": other})
        native = {"content": "Let me look.", "tool_calls": calls}
        messages.append({"content": line} if count == 2 else native)
        line = "open(unreadable arguments)" if broken else line
        played.replies.append(line if count == 2 else f"Let me look.\n{line}")
        turn = world.reply(played.replies[-1])
        played.texts.append(turn.text)
        played.rewards.append(float(turn.rewards["forecaster"]))
    return Called(played, messages)


def check_answered(messages: list[dict[str, Any]]) -> None:
    """Require that each call is answered, the first by the world, and lines by the user."""
    for message, answer in zip(messages[1::2], messages[2::2], strict=False):
        assert message["role"] == "assistant" or "tool_calls" not in message
        assert answer["role"] == ("tool" if message.get("tool_calls") else "user")


def paid_by(world: str, split: str) -> dict[str, Any]:
    """Return the options by which an adapter pays a split; our own Env must be told them."""
    return dict(make_world(world).spec.training) if split == "train" else {}


def task_of(world: str, level: str | None = None, split: str = "test", index: int = 0) -> Task:
    """Return the Task that `play_own` plays."""
    return make_world(world, level).task(split, index)


def replies_by_text(played: Played) -> dict[str, str]:
    """Return by what is read the reply to it."""
    return dict(zip(played.texts, played.replies, strict=False))
