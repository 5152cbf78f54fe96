"""A world as a PettingZoo environment: every role is an agent that acts in its turn."""

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Space
from gymnasium.utils import seeding
from pettingzoo import AECEnv

from tokengym.envs.core.errors import EpisodeStateError
from tokengym.envs.gymnasium.configured_env import ConfiguredEnv, Observation


class TextObservation(str):
    """A text with a dtype, which PettingZoo's `api_test` asks of every observation."""

    __slots__ = ()
    dtype: ClassVar[np.dtype[np.str_]] = np.dtype(str)


class TextAECEnv(ConfiguredEnv, AECEnv[str, Observation, Observation | None]):  # type: ignore[misc]
    """One world as a PettingZoo environment; its roles are the agents.

    PettingZoo's `turn_based_aec_to_parallel` makes a parallel environment of one.

    An agent observes its own conversation: in mode `tokens` all of it as token ids (append-only:
    the next observation begins with the present one and the action), in mode `text` what is new. An
    agent that has not been addressed yet observes nothing: no tokens, or the empty string.

    All agents end together. Rewards are multiples of 2^-16 within the world's declared ranges. They
    depend on the outcome drawn, on the train split too, unless an option such as `label="expected"`
    says otherwise.

    Args:
        world: id of the world.
        level: one of the world's levels; the first one if `None`.
        mode: `text` for strings, or `tokens` for arrays of token ids.
        codec: `byte`, or a codec object.
        split: where `reset` draws Tasks from.
        token_budget: budget of one agent's conversation in tokens (characters in mode `text`).
        opponents: scripted policies, or names of baselines, for roles that are not to be agents.
        render_mode: `human` prints the conversation, `ansi` returns it, `rgb_array` returns the
            picture of the episode so far in worlds that have one, `None` does nothing.
        **options: options of the world.

    Raises:
        UnknownWorldError: if there is no such world.
        OptionError: if an argument is not one of those listed.
        RoleError: if an opponent's role is not the world's, or no role is left to play.
    """

    metadata: dict[str, Any] = {
        "name": "tokengym_aec",
        "render_modes": ["human", "ansi", "rgb_array"],
        "is_parallelizable": True,
    }

    def _ready(self) -> None:
        self.possible_agents = self._played
        self.agents: list[str] = []
        spaces = {agent: self._spaces() for agent in self._played}
        self.observation_spaces = {agent: observed for agent, (observed, _) in spaces.items()}
        self.action_spaces = {agent: acted for agent, (_, acted) in spaces.items()}
        self._generator: np.random.Generator | None = None
        self._printed = 0

    def observation_space(self, agent: str) -> Space[Any]:
        """The space of `agent`'s observations, always the same object."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Space[Any]:
        """The space of `agent`'s replies, always the same object. Any content is legal."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start an episode.

        Args:
            seed: seeds the choice of Tasks; the same seed plays alike.
            options: `task` (a Task to play), or `split` and `index`. Others are ignored, as
                PettingZoo's own tests expect.

        Raises:
            TaskError: if a given Task belongs to another world.
        """
        generator = self._generator
        if seed is not None or generator is None:
            generator, _ = seeding.np_random(seed)
        self._generator = generator
        self.agents = list(self.possible_agents)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self._printed, self._skip_agent_selection = 0, None
        # A budget too small for the opening ends the episode here, and that is paid for as well.
        self._begin(generator, options or {})
        self._update_agents()

    def step(self, action: Observation | None) -> None:
        """Play one reply of the agent selected.

        Args:
            action: token ids in mode `tokens`, a string in mode `text`; `None` after the end.

        Raises:
            EpisodeStateError: before `reset` or after everyone has left.
            OptionError: if the action is not of the mode.
            TokenError: if the tokens are not of the action space.
        """
        if self._episode is None or not self.agents:
            raise EpisodeStateError("no episode is under way; call reset()")
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        self._cumulative_rewards[agent] = 0.0
        self._play(self._episode, action)
        self._update_agents()

    def observe(self, agent: str) -> Observation:
        """Return the conversation of `agent` (tokens) or the last text it has read (text).

        Raises:
            EpisodeStateError: before `reset`.
        """
        observation = self._under_way.observation_of(agent)
        return TextObservation(observation) if isinstance(observation, str) else observation.copy()

    def render(self) -> str | npt.NDArray[np.uint8] | None:
        """Return the conversation or the picture so far, or print what is new, by `render_mode`.

        Raises:
            EpisodeStateError: if a picture is asked for before `reset`.
        """
        if self.render_mode == "rgb_array":
            return self._draw_picture()
        if self.render_mode is None:
            return None
        episode, lines = self._under_way, list[str]()
        for asked, reply, _, _ in episode.exchanges:
            if reply is not None:
                lines += [f"[{asked.role}] {asked.text}", f"{asked.role}> {reply.text}"]
        lines.append(f"[{episode.turn.role}] {episode.turn.text}")
        if self.render_mode == "ansi":
            return "\n".join(lines)
        for line in lines[self._printed :]:
            print(line)
        self._printed = len(lines)
        return None

    def close(self) -> None:
        """Drop the episode in progress."""
        self._episode = None
        self.agents = []

    def _update_agents(self) -> None:
        """Set whose turn it is, what was earned, who has ended, and every agent's info."""
        episode = self._under_way
        turn = episode.turn
        texts = {read.role: read.text for read in episode.turns}
        earned = {agent: episode.collect(agent) for agent in self.agents}
        self.rewards = {agent: reward for agent, (reward, _) in earned.items()}
        self._accumulate_rewards()
        self.terminations = dict.fromkeys(self.agents, turn.terminated)
        self.truncations = dict.fromkeys(self.agents, turn.truncated)
        self.infos = {
            agent: self._info(episode, texts.get(agent, ""), terms)
            for agent, (_, terms) in earned.items()
        }
        self.agent_selection = self.agents[0] if turn.done else turn.role
