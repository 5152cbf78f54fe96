"""What the Gymnasium and PettingZoo environments share."""

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Space

from tokengym.envs.adapters.spaces import Tokens, UnicodeText
from tokengym.envs.adapters.text_episode import TextEpisode
from tokengym.envs.core.errors import EpisodeStateError, OptionError, RoleError, require_one_of
from tokengym.envs.core.play import Policy
from tokengym.envs.core.seeding import SPLITS
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.registry import make_world, policy, scripted_opponent, spec
from tokengym.envs.rendering import can_draw, has_picture, picture, require_picture
from tokengym.envs.tokens.codec import Codec, TokenArray, resolve
from tokengym.envs.tokens.episode import Episode

Observation = TokenArray | str
Mode = Literal["tokens", "text"]

_ACTIONS = {"tokens": "an array of token ids", "text": "a string"}
_DRAWN_TASKS = 2**31


class EnvConfig:
    """A world, its observation mode, its opponents, and where its Tasks come from.

    Args:
        world: id of the world.
        level: one of the world's levels; the first one if `None`.
        mode: `tokens` or `text`.
        codec: `byte`, or a codec object.
        split: where Tasks are drawn from.
        max_tokens: budget of one role's conversation in tokens (characters in mode `text`).
        opponents: a scripted policy, or a baseline's name, for roles that are not to be played.
        options: options of the world.

    Attributes:
        world: the world, made.
        codec: the codec, made.
        opponents: policies by role.
        played: the roles that have no opponent, in the world's order; at least one.

    Raises:
        UnknownWorldError: if there is no such world.
        OptionError: if an argument is not one of those listed.
        RoleError: if an opponent's role is not the world's, or no role is left to play.
    """

    def __init__(
        self,
        world: str,
        level: str | None,
        mode: Mode,
        codec: Codec | str,
        split: str,
        max_tokens: int,
        opponents: Mapping[str, Policy | str] | None,
        options: Mapping[str, Any],
    ) -> None:
        require_one_of("mode", mode, list(_ACTIONS))
        require_one_of("split", split, SPLITS)
        if max_tokens < 1:
            raise OptionError(f"max_tokens must be at least 1, got {max_tokens}")
        self.world = make_world(world, level, **options)
        self.mode = mode
        self.codec = resolve(codec)
        self.split = split
        self.max_tokens = max_tokens
        self.opponents = {role: policy(world, who) for role, who in (opponents or {}).items()}
        roles = self.world.spec.roles
        if not set(self.opponents) < set(roles):
            raise RoleError(
                f"opponents must be some of {list(roles)} but not all, got {[*self.opponents]}"
            )
        self.played = [role for role in roles if role not in self.opponents]

    def observation_space(self) -> Space[Any]:
        """Room for a conversation.

        A budget ends the episode before an observation outgrows it, but the last reply, which the
        final observation repeats, may itself be as long as the budget.
        """
        return self._space(2 * self.max_tokens)

    def action_space(self) -> Space[Any]:
        """Room for a reply; any content is legal."""
        return self._space(self.max_tokens)

    def _space(self, tokens: int) -> Space[Any]:
        if self.mode == "tokens":
            return Tokens(self.codec.vocab_size, tokens)
        return UnicodeText(self.max_tokens)

    def warn_of_overflow(self, episode: Episode | TextEpisode) -> None:
        """Say that the first observation did not fit, if so: the episode has ended with it."""
        if episode.overflow:
            unit = "tokens" if self.mode == "tokens" else "characters"
            warnings.warn(
                f"{self.world.spec.id}: the first observation has {episode.overflow:,} {unit}, more"
                f" than max_tokens={self.max_tokens:,}; it is not shown, and the episode is "
                "truncated by its first step",
                stacklevel=3,
            )

    def choose_task(self, rng: np.random.Generator, options: Mapping[str, Any]) -> Task:
        """Return the Task to play: `task` of `options`, or `index` of `split`, drawn if not given.

        Raises:
            OptionError: if an option is not of its type.
        """
        task = options.get("task")
        if task is not None:
            if not isinstance(task, Task):
                raise OptionError(f"option 'task' must be a Task, got {type(task).__name__}")
            return task
        split, index = options.get("split", self.split), options.get("index")
        if index is None:
            index = task_index(self.world, split, rng)
        return self.world.task(split, index)

    def start(self, task: Task) -> Episode | TextEpisode:
        """Start an episode of `task`."""
        kind = TextEpisode if self.mode == "text" else partial(Episode, codec=self.codec)
        return kind(self.world, task, roles=self.played, max_tokens=self.max_tokens)

    def reply(self, episode: Episode | TextEpisode, action: Observation) -> Turn:
        """Play an action: token ids in mode `tokens`, a string in mode `text`.

        Returns:
            the Turn that answers it.

        Raises:
            OptionError: if the action is not of the mode.
            TokenError: if the tokens are not of the action space.
        """
        if isinstance(episode, TextEpisode) and isinstance(action, str):
            return episode.say(action)
        if isinstance(episode, Episode) and not isinstance(action, str):
            return episode.act(action)
        raise OptionError(
            f"in mode {self.mode!r} an action is {_ACTIONS[self.mode]}, got "
            f'{type(action).__name__}; the modes are given by mode="tokens" and mode="text"'
        )

    def reply_opponent(
        self, episode: Episode | TextEpisode, rng: np.random.Generator
    ) -> tuple[str, Turn]:
        """Let the opponent whose turn it is reply; return its reply and the next Turn."""
        text = self.opponents[episode.turn.role](self.world, episode.turn, rng)
        return text, episode.say(text)


class ConfiguredEnv:
    """An environment of another library over an `EnvConfig`, with at most one episode under way.

    Attributes:
        metadata: among others the render modes of the world.
        world: the world, made.
        mode: `tokens` or `text`.
        codec: the codec, made.
        split: where Tasks are drawn from.
        max_tokens: budget of one role's conversation.
        render_mode: one of the render modes, or `None`.
    """

    metadata: dict[str, Any]

    def _set_up(self, config: EnvConfig, render_mode: str | None, always: Sequence[str]) -> None:
        """Take over a configuration; `always` are the render modes of worlds without pictures.

        Raises:
            OptionError: if the render mode is unknown, or its package is not installed.
        """
        world = config.world.spec.id
        modes = [*always, "rgb_array"] if can_draw(world) else list(always)
        if render_mode == "rgb_array" and has_picture(world):
            require_picture(world)
        require_one_of(f"{world}: render_mode", render_mode, [None, *modes])
        self.metadata = {**self.metadata, "render_modes": modes}
        self._config = config
        self.world = config.world
        self.mode = config.mode
        self.codec = config.codec
        self.split = config.split
        self.max_tokens = config.max_tokens
        self.render_mode = render_mode
        self._task: Task | None = None
        self._episode: Episode | TextEpisode | None = None
        self._turn: Turn | None = None
        self._transcript: list[str] = []
        self._replies: list[str] = []

    def _draw_picture(self) -> npt.NDArray[np.uint8]:
        """Return the picture of the episode so far.

        Raises:
            EpisodeStateError: before the first episode.
        """
        if self._task is None or self._turn is None:
            raise EpisodeStateError("there is no episode to show; call reset()")
        return picture(self.world, self._task, self._replies, finish=self._turn.done)


def task_count(world: World, split: str) -> int:
    """Return the number of Tasks of `split`; 2³¹ where they are drawn and never run out.

    Raises:
        OptionError: if the split is unknown.
    """
    size = world.size(split)
    return _DRAWN_TASKS if size is None else size


def task_index(world: World, split: str, rng: np.random.Generator) -> int:
    """Draw the index of a Task of `split`.

    Raises:
        OptionError: if the split is unknown.
    """
    # An empty split is refused by `task`, which knows why it is empty.
    return int(rng.integers(max(task_count(world, split), 1)))


def opponents_of_one(
    world: str | WorldSpec, opponents: Mapping[str, Policy | str] | None, played: str | None = None
) -> dict[str, Policy | str]:
    """Return opponents that leave one role to play: `opponents` and, for the others, the defaults.

    Args:
        world: id or short name of the world, or its declaration.
        opponents: by role a policy or a baseline's name.
        played: the role to play; the first that `opponents` does not name if `None`.
    """
    named = dict(opponents or {})
    left = [role for role in spec(world).roles if role not in named]
    others = left[1:] if played is None else [role for role in left if role != played]
    return {**named, **{role: scripted_opponent(world, role) for role in others}}


def info_of(turn: Turn, task: Task, *, text: str, terms: Mapping[str, float]) -> dict[str, Any]:
    """Return the `info` of a Turn, with the text one role reads and the `terms` of its reward."""
    info: dict[str, Any] = {
        "text": text,
        "terms": dict(terms),
        "metrics": dict(turn.metrics),
        "task": task.fingerprint,
        "cost": turn.metrics.get("cost", 0.0),
    }
    if turn.stop_reason is not None:
        info["stop_reason"] = turn.stop_reason.value
    return info
