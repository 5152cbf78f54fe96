"""A world as a parallel PettingZoo environment, in which one agent's action counts per step."""

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Space
from pettingzoo import ParallelEnv

from tokengym.envs.core.errors import EpisodeStateError, RoleError
from tokengym.envs.gymnasium.aec_env import TextAECEnv
from tokengym.envs.gymnasium.configured_env import Observation


class TextParallelEnv(ParallelEnv[str, Observation, Observation | None]):  # type: ignore[misc]
    """One world as a parallel PettingZoo environment.

    Worlds are conversations, so only one agent speaks at a step: `infos[agent]["active_agent"]`
    names it, and the actions of the others are ignored. Observations of all agents come back each
    time; those of the silent ones are what they were.

    Args:
        *args: as for `TextAECEnv`.
        **kwargs: as for `TextAECEnv`.
    """

    metadata: dict[str, Any] = {
        **TextAECEnv.metadata,
        "name": "tokengym_parallel",
        "is_parallelizable": True,
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._aec = TextAECEnv(*args, **kwargs)
        self.possible_agents = self._aec.possible_agents
        self.agents: list[str] = []
        self.observation_spaces = self._aec.observation_spaces
        self.action_spaces = self._aec.action_spaces
        self.metadata = {**self.metadata, "render_modes": self._aec.metadata["render_modes"]}
        self.render_mode = self._aec.render_mode
        self.world = self._aec.world

    def observation_space(self, agent: str) -> Space[Any]:
        """The space of `agent`'s observations, always the same object."""
        return self._aec.observation_space(agent)

    def action_space(self, agent: str) -> Space[Any]:
        """The space of `agent`'s replies, always the same object. Any content is legal."""
        return self._aec.action_space(agent)

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """Start an episode; see `TextAECEnv.reset`."""
        self._aec.reset(seed, options)
        self.agents = list(self._aec.agents)
        return self._observations(), self._infos()

    def step(
        self, actions: dict[str, Observation | None]
    ) -> tuple[
        dict[str, Observation],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Play the reply of the agent whose turn it is.

        Args:
            actions: by agent; only that agent's is read.

        Raises:
            EpisodeStateError: before `reset` or after the end.
            RoleError: if that agent's action is missing.
        """
        if not self.agents:
            raise EpisodeStateError("no episode is under way; call reset()")
        speaker = self._aec.agent_selection
        if speaker not in actions:
            raise RoleError(f"it is the turn of {speaker!r}, got actions of {sorted(actions)}")
        if not self._ended():  # by a first text that does not fit
            self._aec.step(actions[speaker])
        results = (
            self._observations(),
            dict(self._aec.rewards),
            dict(self._aec.terminations),
            dict(self._aec.truncations),
            self._infos(),
        )
        if self._ended():
            self.agents = []
        return results

    def render(self) -> str | npt.NDArray[np.uint8] | None:
        """See `TextAECEnv.render`."""
        return self._aec.render()

    def close(self) -> None:
        """Drop the episode in progress."""
        self._aec.close()
        self.agents = []

    def _ended(self) -> bool:
        return any(self._aec.terminations.values()) or any(self._aec.truncations.values())

    def _observations(self) -> dict[str, Observation]:
        return {agent: self._aec.observe(agent) for agent in self.agents}

    def _infos(self) -> dict[str, dict[str, Any]]:
        speaker = self._aec.agent_selection
        return {a: {**self._aec.infos[a], "active_agent": speaker} for a in self.agents}
