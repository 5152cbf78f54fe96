"""Laws of the PettingZoo environments, for every world of several roles in tokens and in text."""

import pickle
import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest
from pettingzoo.test import api_test, render_test, seed_test

from tokengym.envs.core.errors import EpisodeStateError, OptionError, RoleError, TokenError
from tokengym.envs.gymnasium.aec_env import TextAECEnv
from tokengym.envs.registry import baselines, specs

MULTI_ROLE = [row.id for row in specs().values() if len(row.roles) > 1]
pytestmark = pytest.mark.parametrize("mode", ["tokens", "text"])

# Advice for numeric observations and numbered players that a conversation cannot follow.
ADVICE = "(Observation|Action) space for each agent probably|We recommend agents|Observation"


@pytest.fixture(params=MULTI_ROLE)
def make(
    request: pytest.FixtureRequest, mode: Literal["tokens", "text"]
) -> Callable[..., TextAECEnv]:
    return lambda **kwargs: TextAECEnv(request.param, mode=mode, **kwargs)


def scripted_action(env: TextAECEnv, name: str, rng: np.random.Generator) -> Any:
    """What a baseline would do now, in the env's mode."""
    turn = env.turn
    said = baselines(env.world.spec.id)[name](env.world, turn, rng)
    if env.mode == "text":
        return said
    return np.array(env.codec.write(said), dtype=np.int64)


def play(env: TextAECEnv, name: str = "noisy", seed: int = 0) -> dict[str, float]:
    """Play one episode with a baseline in every role; what each agent was paid through `last`."""
    rng = np.random.default_rng(seed)
    paid = dict.fromkeys(env.possible_agents, 0.0)
    for agent in env.agent_iter():
        observation, reward, terminated, truncated, _ = env.last()
        assert env.observation_space(agent).contains(observation)
        paid[agent] += reward
        env.step(None if terminated or truncated else scripted_action(env, name, rng))
    return paid


def test_pettingzoos_own_tests_find_nothing(make: Callable[..., TextAECEnv]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=ADVICE)
        api_test(make(), num_cycles=20)
        seed_test(make, num_cycles=20)


@pytest.mark.nightly
def test_renders_for_people_and_as_text(
    make: Callable[..., TextAECEnv], capsys: pytest.CaptureFixture[str]
) -> None:
    render_test(make)  # pyright: ignore[reportArgumentType] - its annotation names Gymnasium
    assert make().world.spec.roles[0] in capsys.readouterr().out


def test_opponents_of_all_roles_but_one_leave_one_agent(make: Callable[..., TextAECEnv]) -> None:
    world = make().world
    first, *others = world.spec.roles
    env = make(opponents=dict.fromkeys(others, "null"))
    env.reset(seed=0)
    assert env.possible_agents == [first]
    assert play(env) == {first: env.world.returns[first]}
    with pytest.raises(RoleError, match="nobody"):
        make(opponents={"nobody": "null"})
    with pytest.raises(RoleError, match="all"):
        make(opponents=dict.fromkeys(world.spec.roles, "null"))


def test_an_env_pickles_and_goes_on(make: Callable[..., TextAECEnv]) -> None:
    env = make()
    env.reset(seed=4)
    twin = pickle.loads(pickle.dumps(env))
    assert play(twin, seed=2) == play(env, seed=2)


def test_a_given_task_is_played(make: Callable[..., TextAECEnv]) -> None:
    env = make()
    task = env.world.task("test", 3)
    env.reset(options={"task": task})
    assert {info["task"] for info in env.infos.values()} == {task.fingerprint}
    env.reset(options={"split": "test", "index": 3})
    assert {info["task"] for info in env.infos.values()} == {task.fingerprint}


def test_a_budget_holds_for_each_agents_conversation(make: Callable[..., TextAECEnv]) -> None:
    env = make()
    env.reset(seed=0)
    longest = max(len(env.observe(agent)) for agent in env.agents)
    for budget in (longest + 20, 3 * longest):
        env = make(token_budget=budget)
        env.reset(seed=0)
        seen = dict.fromkeys(env.agents, 0)
        for agent in env.agent_iter():
            observation, _, terminated, truncated, _ = env.last()
            if terminated or truncated:
                env.step(None)
                continue
            action = scripted_action(env, "noisy", np.random.default_rng(0))
            seen[agent] = len(observation) + (seen[agent] if env.mode == "text" else 0)
            assert seen[agent] <= budget
            seen[agent] += len(action)
            env.step(action)
        assert env.turn.truncated == (budget == longest + 20)


def test_a_callers_mistake_is_named(make: Callable[..., TextAECEnv], mode: str) -> None:
    env = make()
    with pytest.raises(EpisodeStateError, match="reset"):
        env.step(None)
    env.reset(seed=0)
    with pytest.raises(OptionError):
        env.step(None)
    with pytest.raises((TokenError, OptionError)):
        env.step(np.array([[1.5]]))
    if mode == "tokens":
        with pytest.raises(OptionError, match='mode="text"'):
            env.step("a string")
    with pytest.raises(OptionError, match="Task"):
        env.reset(options={"task": "no task"})
    mistakes: list[dict[str, Any]] = [
        {"mode": "x"},
        {"split": "x"},
        {"render_mode": "x"},
        {"token_budget": 0},
    ]
    for wrong in mistakes:
        with pytest.raises(OptionError, match=next(iter(wrong))):
            TextAECEnv(env.world.spec.id, **wrong)
