"""Gymnasium environments whose actions are text, or a choice that text can name."""

from typing import Any

import gymnasium
from gymnasium.spaces import Discrete, Text

from tokengym.agents.certify.source import Facts, Source, SourceEpisode, SourceStep, TaskPlace
from tokengym.agents.certify.sources import MANY_TURNS, last_integer, package
from tokengym.agents.certify.sources.python import load
from tokengym.envs.core.errors import OptionError


class GymnasiumText(Source):
    """An environment; a Task is the seed of its reset.

    Where actions are a choice, the last integer of a reply is taken, and the first action for a
    reply without a valid one: to end the episode might pay more than to play. Observations that are
    no text are shown as `render` draws them in text, or as Python writes them.

    Args:
        name: id, such as `FrozenLake-v1`.
        reference: `FILE.py:NAME` of a function from the environment, reset, to right replies.
        best: the return that is claimed for them; `None` without a claim.
        **options: of `gymnasium.make`.

    Raises:
        OptionError: if actions are neither text nor a choice.
    """

    def __init__(
        self, name: str, reference: str = "", best: float | None = None, **options: Any
    ) -> None:
        self._name, self._options, self._best = name, options, best
        self._solve = load(reference) if reference else None
        space = self._make().action_space
        if not isinstance(space, Discrete | Text):
            raise OptionError(f"{name} takes actions of {space}, not text or a choice")
        module = name.rpartition(":")[0] or "gymnasium"
        self.facts = Facts(package=package(module), turns=MANY_TURNS)

    def start(self, place: TaskPlace) -> SourceEpisode:
        """Reset a new environment."""
        env = self._make()
        space = env.action_space
        observation, _ = env.reset(seed=place.index)

        def reply(text: str) -> SourceStep:
            action: Any = text
            if isinstance(space, Discrete):
                named = last_integer(text)
                action = named if named is not None and space.contains(named) else int(space.start)
            seen, reward, terminated, truncated, _ = env.step(action)
            return SourceStep(reward, terminated or truncated, _shown(env, seen))

        asked = f"\nReply with an action of {space}." if isinstance(space, Discrete) else ""
        told = tuple(self._solve(env.unwrapped) if self._solve else ())
        return SourceEpisode(_shown(env, observation) + asked, reply, told, self._best)

    def _make(self) -> "gymnasium.Env[Any, Any]":
        options = self._options
        made: gymnasium.Env[Any, Any] = gymnasium.make(self._name, **options)
        if "ansi" in made.metadata.get("render_modes", ()) and "render_mode" not in options:
            made = gymnasium.make(self._name, **options, render_mode="ansi")
        return made


def _shown(env: "gymnasium.Env[Any, Any]", observation: Any) -> str:
    if isinstance(observation, str):
        return observation
    drawn = env.render() if env.render_mode == "ansi" else ""
    return f"{drawn}{observation}"
