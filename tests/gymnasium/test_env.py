"""Laws of the Gymnasium environment that hold whatever its world does."""

import warnings
from collections.abc import Mapping
from typing import Any, Literal, cast

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence

from tokengym.envs.core.errors import RoleError
from tokengym.envs.core.play import Policy
from tokengym.envs.gymnasium.env import TextEnv
from tokengym.envs.registry import baselines, scripted_opponent, specs

WORLDS = list(specs())


@pytest.mark.parametrize("mode", ["tokens", "text"])
@pytest.mark.parametrize("world", WORLDS)
def test_observations_lie_in_the_space_despite_long_texts(
    world: str, mode: Literal["tokens", "text"]
) -> None:
    env = gymnasium.make(world, mode=mode, token_budget=40)
    with warnings.catch_warnings(action="ignore"):
        observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    _, _, _, truncated, _ = env.step(env.action_space.sample())
    assert truncated


@pytest.mark.parametrize("world", WORLDS)
def test_token_observations_begin_with_the_one_before_and_the_action(world: str) -> None:
    env = gymnasium.make(world, mode="tokens")
    observation, _ = env.reset(seed=1)
    env.action_space.seed(2)
    done = False
    while not done:
        action = env.action_space.sample()
        before = np.concatenate([observation, action])
        observation, _, terminated, truncated, _ = env.step(action)
        assert np.array_equal(observation[: len(before)], before)
        done = terminated or truncated


def made(world: str, opponents: Mapping[str, Policy | str] | None = None) -> TextEnv:
    env: gymnasium.Env[Any, Any] = gymnasium.make(world, opponents=opponents)
    return cast("TextEnv", env.unwrapped)


@pytest.mark.parametrize("world", WORLDS)
def test_other_roles_are_named_or_usual_opponents(world: str) -> None:
    roles, scripted = specs()[world].roles, baselines(world)
    for role in roles:
        named = dict.fromkeys((other for other in roles if other != role), "null")
        assert made(world, named).role == role
    usual = {role: scripted[scripted_opponent(world, role)] for role in roles[1:]}
    env, twin = made(world), made(world, usual)
    assert env.role == roles[0]
    assert data_equivalence(env.reset(seed=3), twin.reset(seed=3))
    assert data_equivalence(env.step("nonsense"), twin.step("nonsense"))


@pytest.mark.parametrize("world", WORLDS)
def test_opponents_in_unknown_or_all_roles_are_refused(world: str) -> None:
    for roles, message in ((("nobody",), "nobody"), (specs()[world].roles, "not all")):
        with pytest.raises(RoleError, match=message):
            gymnasium.make(world, opponents=dict.fromkeys(roles, "null"))
