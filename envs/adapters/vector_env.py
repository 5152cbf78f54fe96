"""A batched environment: many worlds stepped in one process, without sub-processes or copies."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from tokengym.envs.adapters.config import Observation
from tokengym.envs.adapters.gymnasium_env import TextEnv
from tokengym.envs.core.errors import OptionError

Flags = npt.NDArray[np.bool_]
Batch = tuple[Observation, ...]


class TextVectorEnv(VectorEnv[Batch, Batch, npt.NDArray[Any]]):
    """`num_envs` copies of one world, stepped together.

    Observations and actions are tuples of `num_envs` arrays (or strings), since they differ in
    length; rewards are `(num_envs,)` float64, ends are `(num_envs,)` bool. A copy whose episode
    ended is reset by the next `step`, whose action for it is ignored (Gymnasium's next-step mode).

    Args:
        num_envs: number of copies, at least 1.
        **kwargs: what `TextEnv` takes.

    Raises:
        OptionError: if `num_envs` is less than 1.
    """

    metadata: dict[str, Any] = {
        "render_modes": ["ansi", "rgb_array"],
        "render_fps": 4,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(self, num_envs: int = 1, **kwargs: Any) -> None:
        if num_envs < 1:
            raise OptionError(f"num_envs must be at least 1, got {num_envs}")
        self.envs = [TextEnv(**kwargs) for _ in range(num_envs)]
        self.num_envs = num_envs
        first = self.envs[0]
        self.metadata = {**self.metadata, "render_modes": first.metadata["render_modes"]}
        self.render_mode = first.render_mode
        self.single_observation_space = first.observation_space
        self.single_action_space = first.action_space
        self.observation_space = batch_space(first.observation_space, num_envs)
        self.action_space = batch_space(first.action_space, num_envs)
        self._ended = np.zeros(num_envs, dtype=np.bool_)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Batch, dict[str, Any]]:
        """Reset every copy.

        Args:
            seed: one seed (copy `i` then gets `seed + i`), one per copy, or `None`.
            options: what `TextEnv.reset` takes, given to every copy.

        Raises:
            OptionError: if there are not as many seeds as copies.
        """
        if seed is None or isinstance(seed, int | np.integer):
            seeds = [None if seed is None else int(seed) + i for i in range(self.num_envs)]
        else:
            seeds = list(seed)
        if len(seeds) != self.num_envs:
            raise OptionError(f"{self.num_envs} envs need as many seeds, got {len(seeds)}")
        self._ended[:] = False
        observations: list[Observation] = []
        infos: dict[str, Any] = {}
        for number, (env, its_seed) in enumerate(zip(self.envs, seeds, strict=True)):
            observation, info = env.reset(seed=its_seed, options=deepcopy(options))
            observations.append(observation)
            infos = self._add_info(infos, info, number)
        return tuple(observations), infos

    def step(
        self, actions: Sequence[Observation]
    ) -> tuple[Batch, npt.NDArray[np.float64], Flags, Flags, dict[str, Any]]:
        """Step every copy with its action.

        Raises:
            OptionError: if there are not as many actions as copies.
        """
        if len(actions) != self.num_envs:
            raise OptionError(f"{self.num_envs} envs need as many actions, got {len(actions)}")
        observations: list[Observation] = []
        rewards = np.zeros(self.num_envs)
        terminated = np.zeros(self.num_envs, dtype=np.bool_)
        truncated = np.zeros(self.num_envs, dtype=np.bool_)
        infos: dict[str, Any] = {}
        for number, (env, action) in enumerate(zip(self.envs, actions, strict=True)):
            if self._ended[number]:
                observation, info = env.reset()
            else:
                observation, rewards[number], terminated[number], truncated[number], info = (
                    env.step(action)
                )
            observations.append(observation)
            infos = self._add_info(infos, info, number)
        self._ended = terminated | truncated
        return tuple(observations), rewards, terminated, truncated, infos

    def render(self) -> tuple[Any, ...] | None:
        """Return the rendering of every copy, or `None` without a render mode."""
        return None if self.render_mode is None else tuple(env.render() for env in self.envs)

    def close_extras(self, **kwargs: Any) -> None:
        """Close every copy."""
        for env in self.envs:
            env.close()
