"""Worlds in the newest Gymnasium and PettingZoo: their own loops, checkers and wrappers."""

from typing import Any

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import RecordEpisodeStatistics
from pettingzoo.test import api_test, parallel_api_test
from pettingzoo.utils import turn_based_aec_to_parallel

from tests.docs.pages import ROOT, blocks
from tests.gymnasium.test_pettingzoo import ADVICE
from tests.integrations.reference import WORLDS, play_own
from tokengym.envs import TextAECEnv, make_world

TOKENS = {"mode": "tokens", "token_budget": 4096}


def make(world: str, **options: Any) -> gymnasium.Env[Any, Any]:
    """Make an environment by its id."""
    return gymnasium.make(make_world(world).spec.id, **options)


@pytest.mark.parametrize("world", WORLDS)
def test_an_episode_has_the_statistics_of_its_rewards(world: str) -> None:
    own = play_own(world, index=1)
    env = RecordEpisodeStatistics(make(world, disable_env_checker=True))
    _, info = env.reset(options={"split": "test", "index": 1})
    for reply in own.replies:
        *_, info = env.step(reply)
    assert info["episode"]["r"] == pytest.approx(sum(own.rewards))
    assert info["episode"]["l"] == len(own.replies)
    check_env(make(world).unwrapped, skip_render_check=True)


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    """Names that the page's block for Stable-Baselines3 defines."""
    found = blocks(ROOT / "docs" / "integrations.md")
    (code,) = [block.text for block in found if block.name == "with_stable_baselines3.py"]
    names: dict[str, Any] = {}
    exec(code, names)
    return names


def test_stable_baselines3_learns_in_token_mode(page: dict[str, Any]) -> None:
    sb3 = pytest.importorskip("stable_baselines3", reason="needs stable-baselines3")
    env = page["written"](page["padded"](make("forecast", **TOKENS), 64), 8)
    learner = sb3.PPO("MlpPolicy", env, n_steps=8, batch_size=8, n_epochs=1, device="cpu")
    assert learner.learn(16).num_timesteps == 16


@pytest.mark.filterwarnings(f"ignore:{ADVICE}")
@pytest.mark.parametrize("world", WORLDS)
def test_pettingzoos_own_checks_pass(world: str) -> None:
    name = make_world(world).spec.id
    api_test(TextAECEnv(name, **TOKENS), num_cycles=20)
    parallel_api_test(turn_based_aec_to_parallel(TextAECEnv(name, **TOKENS)), num_cycles=20)
