"""A world with one role to play as a `gymnasium.Env`, in tokens or text."""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from tokengym.envs.core.episode import TextEpisode
from tokengym.envs.core.errors import EpisodeStateError, OptionError
from tokengym.envs.core.play import Policy
from tokengym.envs.gymnasium.configured_env import ConfiguredEnv, Observation
from tokengym.envs.registry import opponents_of_one

_RESET_OPTIONS = frozenset(("task", "split", "index"))


class TextEnv(ConfiguredEnv, gymnasium.Env[Observation, Observation]):
    """One world as a Gymnasium environment.

    Description:
        A policy reads a text and answers with a text. In mode `tokens` an observation is the whole
        conversation so far as token ids, and it is append-only: the next observation begins with
        the present one and the action, token for token. In mode `text` it is only what is new.
    Observation space:
        `Tokens(codec.vocab_size, token_budget)` or `UnicodeText`.
    Action space:
        `Tokens(codec.vocab_size, token_budget)` or `UnicodeText`. Any content is a legal reply.
    Reward:
        a multiple of 2⁻¹⁶ within the world's declared range. Where it depends on an outcome, it is
        that of the outcome drawn, on the train split too; `label="expected"` pays exact
        probabilities, as training does.
    Starting state:
        a Task of `split`, drawn by the environment's generator, or the one in
        `reset(options={"task": task})` or `reset(options={"split": ..., "index": ...})`.
    Episode end:
        `terminated` by the world's rules; `truncated` when the conversation outgrows its
        `token_budget`. If the first text already does, `reset` warns of both lengths and shows
        nothing, and the first step, whatever the action, truncates the episode.
    Info:
        `text` (what is new), `terms` (named parts of the reward), `metrics`, `task` (fingerprint),
        `cost` (0 where a world has no safety cost), at the end also `stop_reason`.

    Args:
        world: id of the world.
        level: one of the world's levels; the first one if `None`.
        mode: `text` for strings, or `tokens` for arrays of token ids.
        codec: `byte`, or a codec object.
        split: where `reset` draws Tasks from.
        token_budget: budget of the conversation in tokens (characters in mode `text`).
        opponents: in a world of several roles, a scripted policy, or a baseline's name, by role.
            Of the roles not named the first is played here; the others are played by the world's
            usual opponent, see `WorldSpec.opponents`.
        render_mode: `ansi` for the conversation as text; `rgb_array` for the picture of the episode
            so far, in worlds that have one, uint8 of shape (height, width, 3); or `None`.
        **options: options of the world.

    Raises:
        UnknownWorldError: if there is no such world.
        OptionError: if an argument is not one of those listed.
        RoleError: if an opponent's role is not the world's, or no role is left to play.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}

    def _named(
        self, world: str, opponents: Mapping[str, Policy | str]
    ) -> Mapping[str, Policy | str]:
        return opponents_of_one(world, opponents)

    def _ready(self) -> None:
        (self.role,) = self._played
        self._unpaid = False
        self.observation_space, self.action_space = self._spaces()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode; see the class for `options`.

        Raises:
            OptionError: if an option is unknown.
            TaskError: if a given Task belongs to another world.
        """
        super().reset(seed=seed)
        if options and not _RESET_OPTIONS.issuperset(options):
            unknown = sorted(set(options) - _RESET_OPTIONS)
            raise OptionError(f"reset takes the options {sorted(_RESET_OPTIONS)}, got {unknown}")
        episode = self._begin(self.np_random, options or {})
        turn = episode.turn
        # If the opening prompt exceeds the budget, the first step returns the final reward.
        self._unpaid = turn.done
        return self._observe(episode), self._info(episode, turn.text, {})

    def step(self, action: Observation) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play one reply.

        Args:
            action: token ids in mode `tokens`, a string in mode `text`.

        Raises:
            EpisodeStateError: before `reset` or after the end.
            TokenError: if the tokens are not of the action space.
        """
        episode = self._under_way
        if not episode.turn.done:
            self._play(episode, action)
        elif self._unpaid:
            self._unpaid = False
        else:
            raise EpisodeStateError("no episode is under way; call reset()")
        turn = episode.turn
        reward, terms = episode.collect(self.role)
        info = self._info(episode, turn.text, terms)
        return self._observe(episode), reward, turn.terminated, turn.truncated, info

    def render(self) -> str | npt.NDArray[np.uint8] | None:
        """Return the conversation or the picture of the episode so far, by `render_mode`.

        Raises:
            EpisodeStateError: if a picture is asked for before `reset`.
        """
        if self.render_mode == "rgb_array":
            return self._draw_picture()
        if self.render_mode != "ansi":
            return None
        episode, lines = self._under_way, list[str]()
        for asked, reply, _, _ in episode.exchanges:
            if reply is not None and asked.role == self.role:
                lines += [asked.text, f"> {reply.text}"]
        return "\n".join([*lines, episode.turn.text])

    def _observe(self, episode: TextEpisode) -> Observation:
        observation: Observation = episode.observation_of(self.role)
        # Users keep and change what they are given; the transcript keeps growing.
        return observation if isinstance(observation, str) else observation.copy()
