"""Laws of the Gymnasium environments: registered, checked, seeded, wrapped, vectorised, spawned."""

import functools
import pickle
import subprocess
import sys
import warnings
from typing import Any, cast

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit

import tokengym
from tokengym.envs.adapters.gymnasium_env import TextEnv
from tokengym.envs.core.errors import RoleError
from tokengym.envs.registry import scripted_opponent

Case = tuple[str, str]


def make(case: tuple[str, str | None], **kwargs: Any) -> gymnasium.Env[Any, Any]:
    world_id, level = case
    return gymnasium.make(world_id, level=level, **kwargs)


@pytest.mark.parametrize("mode", ["tokens", "text"])
def test_gymnasiums_own_checker_finds_nothing(case: Case, mode: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # The checker would have observations normalised to [-1, 1]; token ids are not.
        warnings.filterwarnings("ignore", message=".*(normalize|not within the).*")
        check_env(make(case, mode=mode, render_mode="ansi").unwrapped, skip_render_check=False)


@pytest.mark.parametrize("mode", ["tokens", "text"])
def test_two_envs_with_one_seed_do_the_same(case: Case, mode: str) -> None:
    one, two = make(case, mode=mode), make(case, mode=mode)
    assert data_equivalence(one.reset(seed=3), two.reset(seed=3))
    one.action_space.seed(4)
    done = False
    while not done:
        action = one.action_space.sample()
        left, right = one.step(action), two.step(action)
        assert data_equivalence(left, right)
        assert one.observation_space.contains(left[0])
        done = left[2] or left[3]


def test_observations_are_append_only(case: Case) -> None:
    env = make(case)
    observation, _ = env.reset(seed=1)
    env.action_space.seed(2)
    done = False
    while not done:
        action = env.action_space.sample()
        before = np.concatenate([observation, action])
        observation, _, terminated, truncated, _ = env.step(action)
        assert (observation[: len(before)] == before).all()
        done = terminated or truncated


def test_info_tells_text_terms_metrics_and_task(case: Case) -> None:
    env = make(case, mode="text")
    observation, info = env.reset(options={"split": "test", "index": 2})
    world = cast("TextEnv", env.unwrapped).world
    assert info["task"] == world.task("test", 2).fingerprint
    assert info["text"] == observation
    _, reward, terminated, truncated, info = env.step("nonsense")
    if not world.spec.roles[1:]:
        assert sum(info["terms"].values()) == reward
    assert set(info) >= {"text", "terms", "metrics", "task", "cost"}
    assert ("stop_reason" in info) == (terminated or truncated)


def test_wrappers_of_gymnasium_work_around_it(case: Case) -> None:
    env = RecordEpisodeStatistics(TimeLimit(make(case), max_episode_steps=1))
    env.reset(seed=0)
    _, _, terminated, truncated, info = env.step(env.action_space.sample())
    assert terminated or truncated
    assert "episode" in info


def test_an_env_pickles_and_goes_on(case: Case) -> None:
    env = TextEnv(*case)
    env.reset(seed=5)
    twin = pickle.loads(pickle.dumps(env))
    env.action_space.seed(1)
    action = env.action_space.sample()
    assert data_equivalence(env.step(action), twin.step(action))


def test_a_budget_of_tokens_truncates_within_the_space(case: Case) -> None:
    env = make(case, max_tokens=40)
    observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation)


@pytest.mark.parametrize("world_id", list(tokengym.specs()))
def test_make_needs_no_import_and_survives_spawn(world_id: str) -> None:
    build = functools.partial(gymnasium.make, f"tokengym:{world_id}")
    envs = AsyncVectorEnv([build], context="spawn")
    observations, _ = envs.reset(seed=11)
    assert data_equivalence(build().reset(seed=11)[0], observations[0])
    envs.close()


@pytest.mark.parametrize("world_id", list(tokengym.specs()))
@pytest.mark.parametrize("vector", [SyncVectorEnv, AsyncVectorEnv])
@pytest.mark.parametrize("mode", ["tokens", "text"])
def test_gymnasiums_vector_envs_give_what_single_envs_give(
    world_id: str, vector: type, mode: str
) -> None:
    check_vector(world_id, vector([lambda: make((world_id, None), mode=mode)] * 2), mode)


@pytest.mark.parametrize("world_id", list(tokengym.specs()))
@pytest.mark.parametrize("mode", ["tokens", "text"])
def test_make_vec_gives_the_native_batched_env(world_id: str, mode: str) -> None:
    envs = gymnasium.make_vec(world_id, num_envs=2, mode=mode)
    assert type(envs.unwrapped).__name__ == "TextVectorEnv"
    check_vector(world_id, envs, mode)


def check_vector(world_id: str, envs: gymnasium.vector.VectorEnv[Any, Any], mode: str) -> None:
    singles = [make((world_id, None), mode=mode) for _ in range(2)]
    observations, _ = envs.reset(seed=21)
    for number, env in enumerate(singles):
        assert data_equivalence(env.reset(seed=21 + number)[0], observations[number])
    singles[0].action_space.seed(0)
    ended = [False, False]
    for _ in range(3):
        actions = tuple(singles[0].action_space.sample() for _ in range(2))
        observations, rewards, terminated, truncated, _ = envs.step(actions)
        assert observations in envs.observation_space
        for number, env in enumerate(singles):
            if ended[number]:
                assert data_equivalence(env.reset()[0], observations[number])
                ended[number] = False
                continue
            single = env.step(actions[number])
            assert data_equivalence(single[0], observations[number])
            assert single[1] == rewards[number]
            ended[number] = bool(single[2] or single[3])
            assert ended[number] == bool(terminated[number] or truncated[number])
    envs.close()


def test_importing_the_suite_loads_no_heavy_library() -> None:
    code = (
        "import sys, tokengym.envs, tokengym.rewards, tokengym.agents;"
        "heavy = {'scipy', 'pettingzoo', 'torch', 'tinker', 'transformers', 'matplotlib'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert shown.stdout.strip() == "[]"


MULTI_ROLE = [row.id for row in tokengym.specs().values() if len(row.roles) > 1]


@pytest.mark.parametrize("world_id", MULTI_ROLE)
def test_one_role_is_played_here_and_the_others_by_their_usual_opponent(world_id: str) -> None:
    spec, known = tokengym.spec(world_id), tokengym.baselines(world_id)
    for role in spec.roles:
        others = [other for other in spec.roles if other != role]
        named = dict.fromkeys(others, "null")
        assert cast("TextEnv", gymnasium.make(world_id, opponents=named).unwrapped).role == role
    env = cast("TextEnv", gymnasium.make(world_id).unwrapped)
    assert env.role == spec.roles[0]
    usual = {role: known[scripted_opponent(world_id, role)] for role in spec.roles[1:]}
    twin = gymnasium.make(world_id, opponents=usual)
    assert data_equivalence(env.reset(seed=3), twin.reset(seed=3))
    action = np.array(env.codec.write("nonsense"))
    assert data_equivalence(env.step(action), twin.step(action))


@pytest.mark.parametrize("world_id", MULTI_ROLE)
def test_opponents_of_no_role_or_of_every_role_are_refused(world_id: str) -> None:
    with pytest.raises(RoleError, match="nobody"):
        gymnasium.make(world_id, opponents={"nobody": "null"})
    roles = tokengym.spec(world_id).roles
    with pytest.raises(RoleError, match="not all"):
        gymnasium.make(world_id, opponents=dict.fromkeys(roles, "null"))
