"""What every neighbour is compared with: scripted episodes of our own Env, reward for reward."""

from typing import Any, NamedTuple

import gymnasium
import numpy as np

import tokengym  # noqa: F401
from tokengym.envs import Task, baselines, make_world, specs

WORLDS = ("forecast", "warehouse", "energy", "disruption")
SPLITS = ("train", "test")
LEVELS = [(row.short_name, level) for row in specs().values() for level in row.levels]


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


def paid_by(world: str, split: str) -> dict[str, Any]:
    """Return the options by which an adapter pays a split; our own Env must be told them."""
    return dict(make_world(world).spec.training) if split == "train" else {}


def task_of(world: str, level: str | None = None, split: str = "test", index: int = 0) -> Task:
    """Return the Task that `play_own` plays."""
    return make_world(world, level).task(split, index)


def replies_by_text(played: Played) -> dict[str, str]:
    """Return by what is read the reply to it."""
    return dict(zip(played.texts, played.replies, strict=False))
