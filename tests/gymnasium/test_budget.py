"""Laws of the budget of a conversation in the Gymnasium environments."""

import re
import warnings

import gymnasium
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from tokengym.envs.gymnasium.vector_env import TextVectorEnv
from tokengym.envs.registry import specs

MODES = ("tokens", "text")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("world", specs())
def test_a_conversation_keeps_to_its_budget(world: str, mode: str) -> None:
    env = gymnasium.make(world, mode=mode)
    first = len(env.reset(seed=0)[0])
    env.action_space.seed(1)
    action = env.action_space.sample()
    for budget in (first - 1, first, first + len(action) + 1, 32_768):
        env = gymnasium.make(world, mode=mode, token_budget=budget)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            observation, _ = env.reset(seed=0)
        lengths = f"{first:,} .*={budget:,};"
        fits = budget >= first
        assert fits != any(re.search(lengths, str(warning.message)) for warning in said)
        seen, done = len(observation), False
        while not done:
            assert env.observation_space.contains(observation)
            assert seen <= budget
            observation, _, terminated, truncated, info = env.step(action)
            seen = len(observation) + (seen + len(action) if mode == "text" else 0)
            done = terminated or truncated
        # A world that ends with the first reply needs no more room.
        assert info["stop_reason"] == "token_budget" or fits
        assert budget != 32_768 or info["stop_reason"] != "token_budget"


@pytest.mark.parametrize("mode", MODES)
def test_a_batch_goes_on_without_overlong_first_texts(mode: str) -> None:
    world = "tokengym/Forecast-v1"
    env = gymnasium.make(world, mode=mode)
    lengths = sorted(len(env.reset(seed=seed)[0]) for seed in range(8))
    budget = (lengths[3] + lengths[4]) // 2
    native = TextVectorEnv(8, world=world, mode=mode, token_budget=budget)
    made = [lambda: gymnasium.make(world, mode=mode, token_budget=budget)] * 8
    generic = SyncVectorEnv(made, autoreset_mode=AutoresetMode.NEXT_STEP)
    for envs in (native, generic):
        ended = refused = 0
        with warnings.catch_warnings(action="ignore"):
            observations, _ = envs.reset(seed=0)
            assert sum(len(observation) > 0 for observation in observations) == 4
            for _ in range(6):
                _, _, terminated, truncated, _ = envs.step(envs.action_space.sample())
                ended += int(terminated.sum())
                refused += int(truncated.sum())
        assert ended >= 4
        assert refused >= 4
