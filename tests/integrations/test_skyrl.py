"""Worlds as text environments of SkyRL-gym: the same episodes."""

from typing import Any

import pytest

pytest.importorskip("skyrl_gym", reason="needs the extra `skyrl`")

import skyrl_gym
from skyrl_gym.envs.registration import registry

from tests.integrations.reference import SPLITS, WORLDS, paid_by, play_own
from tokengym.agents.adapters.skyrl import WorldTextEnv


def make(world: str, index: int, split: str) -> Any:
    """Make an environment as SkyRL's generator does: by an id, with the row's extras."""
    name = f"tokengym-{world}"
    if name not in registry:
        skyrl_gym.register(name, WorldTextEnv, {"rollouts": world})
    extras = {"split": split, "index": index}
    return skyrl_gym.make(name, env_config=None, extras=extras)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("world", WORLDS)
def test_an_episode_of_skyrl_is_the_same_episode(world: str, split: str) -> None:
    own = play_own(world, split=split, index=1, **paid_by(world, split))
    for _ in range(3):  # a group on one Task
        env = make(world, index=1, split=split)
        messages, info = env.init([])
        texts, rewards, done = [messages[-1]["content"]], [], False
        assert info["task_id"] == own.task_id
        for reply in own.replies:
            assert not done
            step = env.step(reply)
            texts += [message["content"] for message in step["observations"]]
            rewards.append(step["reward"])
            done = step["done"]
        assert done
        assert (texts, rewards) == (own.texts[:-1], own.rewards)
        assert env.get_metrics() == {"return": sum(own.rewards), "well_formed": 1.0}
        env.close()
