"""Laws of a world's Gymnasium env: checked, seeded, pickled, spawned, vectorised."""

import functools
import pickle
import re
import warnings
from collections.abc import Callable
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import Autoreset

from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.gymnasium.env import TextEnv
from tokengym.envs.registry import GROUP, register
from tokengym.envs.testing.law import Violation, describe, law, require
from tokengym.envs.testing.subject import Subject

_MODES = ("tokens", "text")
_STEPS = 3

Env = gymnasium.Env[Any, Any]


@law(needs_id=True)
def gymnasium_accepts_the_env(subject: Subject) -> None:
    """Gymnasium's own checker accepts the env."""
    for mode in _MODES:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # The checker would have observations normalised to [-1, 1]; token ids are not.
            warnings.filterwarnings("ignore", message=".*(normalize|not within the).*")
            env = _env(subject, mode=mode, render_mode="ansi")
            try:
                # Pictures take time and matplotlib, and do not depend on the mode.
                skip = mode == "tokens" or find_spec("matplotlib") is None
                check_env(env.unwrapped, skip_render_check=skip)
            except Exception as error:
                raise Violation(f"in mode {mode!r}: {describe(error)}") from error
            env.reset(seed=0)
            text = env.render()
            require(isinstance(text, str) and text != "", f"in mode {mode!r} it renders {text!r}")


@law(needs_id=True)
def envs_of_one_seed_are_identical(subject: Subject) -> None:
    """Envs with one seed behave identically, and their observations lie in the space."""
    for mode in _MODES:
        env, twin = _env(subject, mode=mode), _env(subject, mode=mode)
        _alike(env.reset(seed=3), twin.reset(seed=3), f"in mode {mode!r} they start differently")
        env.action_space.seed(4)
        done = False
        while not done:
            action = env.action_space.sample()
            left, right = env.step(action), twin.step(action)
            _alike(left, right, f"in mode {mode!r} they answer differently")
            inside = env.observation_space.contains(left[0])
            require(inside, f"in mode {mode!r} an observation is not of the space")
            done = left[2] or left[3]


@law(needs_id=True)
def infos_are_complete(subject: Subject) -> None:
    """An info has the text, terms, metrics, cost and Task, and at the end the stop reason."""
    env = _env(subject, mode="text")
    world = cast("TextEnv", env.unwrapped).world
    for task in subject.tasks("test", 3)[-1:]:
        observation, info = env.reset(options={"split": "test", "index": task.index})
        require(info["task"] == task.fingerprint, "reset plays another Task", task)
        require(info["text"] == observation, "the text is not the observation", task)
        _, reward, terminated, truncated, info = env.step("nonsense")
        missing = {"text", "terms", "metrics", "task", "cost"} - set(info)
        require(not missing, f"the info of a step lacks {sorted(missing)}", task)
        if len(world.spec.roles) == 1:
            same = sum(info["terms"].values()) == reward
            require(same, f"{info['terms']} for a reward of {reward}", task)
        ended = terminated or truncated
        require(("stop_reason" in info) == ended, "a stop_reason goes with the end", task)


@law(needs_id=True)
def a_pickled_env_goes_on(subject: Subject) -> None:
    """An env pickled in the middle of an episode continues identically."""
    env = TextEnv(subject.spec.id, subject.level)
    env.reset(seed=5)
    twin = pickle.loads(pickle.dumps(env))
    env.action_space.seed(1)
    action = env.action_space.sample()
    _alike(env.step(action), twin.step(action), "they answer differently")


@law(per_level=False, needs_id=True)
def an_env_can_be_spawned(subject: Subject) -> None:
    """An env can be made by its id in a spawned process, which has imported nothing."""
    build = _builder(subject)
    envs = AsyncVectorEnv([build], context="spawn")
    try:
        observations, _ = envs.reset(seed=11)
        single, _ = build().reset(seed=11)
        _alike(single, observations[0], "the spawned env starts differently")
    finally:
        envs.close()


@law(per_level=False, needs_id=True)
def vector_envs_match_single_envs(subject: Subject) -> None:
    """Gymnasium's vector envs return what single envs return, step by step."""
    for mode in _MODES:
        build = _builder(subject, mode=mode)
        for kind in (SyncVectorEnv, AsyncVectorEnv):
            _check_vector(kind([build] * 2), build, f"{kind.__name__} in mode {mode!r}")


@law(per_level=False, needs_id=True)
def make_vec_makes_the_native_vector_env(subject: Subject) -> None:
    """`gymnasium.make_vec` makes the native vector env, which returns what single envs return."""
    for mode in _MODES:
        envs = gymnasium.make_vec(subject.spec.id, level=subject.level, num_envs=2, mode=mode)
        kind = type(envs.unwrapped).__name__
        require(kind == "TextVectorEnv", f"made a {kind}")
        _check_vector(envs, _builder(subject, mode=mode), f"mode {mode!r}")


def _check_vector(envs: VectorEnv[Any, Any, Any], build: Callable[[], Env], what: str) -> None:
    """Compare with single envs whose wrapper begins the next episode at the step after an end."""
    singles = [Autoreset(build()) for _ in range(2)]
    try:
        started = tuple(env.reset(seed=21 + number)[0] for number, env in enumerate(singles))
        _alike(envs.reset(seed=21)[0], started, f"{what}: they start differently")
        singles[0].action_space.seed(0)
        for _ in range(_STEPS):
            actions = tuple(singles[0].action_space.sample() for _ in range(2))
            observations, *paid, _ = envs.step(actions)
            require(observations in envs.observation_space, f"{what}: observations of no space")
            steps = [env.step(action) for env, action in zip(singles, actions, strict=True)]
            seen, *single, _ = zip(*steps, strict=True)
            _alike(observations, seen, f"{what}: they answer differently")
            require(np.array_equal(paid, single), f"{what}: {paid} instead of {single}")
    finally:
        envs.close()


def _alike(first: object, second: object, detail: str) -> None:
    require(data_equivalence(first, second), detail)


def _env(subject: Subject, **options: Any) -> Env:
    return gymnasium.make(subject.spec.id, level=subject.level, **options)


def _builder(subject: Subject, **options: Any) -> Callable[[], Env]:
    """Return what makes an env of a level in any process, one that has imported nothing too."""
    make = functools.partial(gymnasium.make, f"tokengym:{subject.spec.id}")
    if not _is_installed(subject.spec):
        make = functools.partial(_register_and_make, subject.spec)
    return functools.partial(make, level=subject.level, **options)


def _is_installed(spec: WorldSpec) -> bool:
    """Return whether other processes know the world: by an entry point, unless it is built in."""
    declaring = {"tokengym", *(_package(point.value) for point in entry_points(group=GROUP))}
    return _package(spec.entry_point) in declaring


def _package(path: str) -> str:
    return re.split("[.:]", path)[0]


def _register_and_make(spec: WorldSpec, **options: Any) -> Env:
    register(spec)
    return gymnasium.make(spec.id, **options)
