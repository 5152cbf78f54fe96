"""The exact credit as a reward: what it pays over an episode is minus the regret."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.world import World
from tokengym.envs.energy.oracle import UNSAFE
from tokengym.envs.energy.world import EnergyWorld
from tokengym.envs.gymnasium.env import TextEnv
from tokengym.envs.gymnasium.exact_credit import ExactCredit
from tokengym.envs.tokens.codec import ByteCodec

Made = tuple[ExactCredit, World]


def made(level: str, **options: Any) -> Made:
    """Energy-v2 around the wrapper, and its world."""
    energy = "tokengym.envs:tokengym/Energy-v2"
    inner = gymnasium.make(energy, level=level, mode="tokens", **options)
    assert isinstance(inner.unwrapped, TextEnv)
    return ExactCredit(inner), inner.unwrapped.world


def play(env: ExactCredit, index: int, policy: Callable[[], str]) -> tuple[list[float], Any]:
    """Play a Task and return what each step was paid and the last info."""
    env.reset(options={"index": index})
    rewards: list[float] = []
    while True:
        said = np.array(ByteCodec().write(policy()))
        _, reward, terminated, truncated, info = env.step(said)
        rewards.append(reward)
        if terminated or truncated:
            return rewards, info


@settings(max_examples=12, deadline=None)
@given(st.sampled_from(["small", "day"]), st.integers(0, 2**16), st.sampled_from([1500, 9999]))
def test_it_pays_minus_regret_to_the_budgets_end(level: str, seed: int, budget: int) -> None:
    env, world = made(level, credit=True, token_budget=budget, prompt="terse")
    rng = np.random.default_rng(seed)
    rewards, info = play(env, seed % 3, lambda: f"BATTERY {rng.uniform(-4.0, 4.0):.2f}")
    metrics = info["metrics"]
    spent = metrics["total_money_cost"] + UNSAFE * metrics["total_cost"]
    answer = world.task("train", seed % 3).answer
    # Steps that are played at once are malformed; each takes its share of the optimum's value,
    # which a cost of the scale lowers by 0.8 times 0.36.
    worth = answer["scale"] / (0.8 * 0.36) / len(answer["plan"])
    spent += worth * metrics["malformed_replies"]
    assert sum(rewards) == pytest.approx(answer["optimum"] - spent, abs=1e-8)
    assert 0.0 <= info["return"] <= 1.0
    if budget == 1500 and level == "day":
        assert info["stop_reason"] == "token_budget"


def test_the_optimal_plan_is_paid_nothing_at_any_step() -> None:
    env, world = made("small", credit=True)
    assert isinstance(world, EnergyWorld)
    rewards, info = play(env, 0, lambda: f"BATTERY {world.optimal_commands[0]:.12f}")
    assert rewards == pytest.approx([0.0] * 12, abs=1e-8)
    assert info["return"] == pytest.approx(1.0, abs=1e-4)


def test_it_is_refused_where_no_credit_is_told() -> None:
    env, _ = made("small")
    with pytest.raises(OptionError, match="credit=True"):
        play(env, 0, lambda: "BATTERY 0")
