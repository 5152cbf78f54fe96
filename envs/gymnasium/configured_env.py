"""Base of the Gymnasium and PettingZoo environments."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Space

from tokengym.envs.core.episode import TextEpisode
from tokengym.envs.core.errors import EpisodeStateError, OptionError, RoleError, require_one_of
from tokengym.envs.core.grammar import ended_lines
from tokengym.envs.core.play import Policy
from tokengym.envs.core.rendering import can_draw, picture, require_picture
from tokengym.envs.core.seeding import SPLITS
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import Turn
from tokengym.envs.gymnasium.spaces import Tokens, UnicodeText
from tokengym.envs.registry import make_world, policy
from tokengym.envs.tokens.codec import Codec, TokenArray, resolve
from tokengym.envs.tokens.episode import Episode

Observation = TokenArray | str
Mode = Literal["tokens", "text"]

_ACTIONS = {"tokens": "an array of token ids", "text": "a string"}


class ConfiguredEnv(ABC):
    """Base of the environments of other libraries, with at most one episode under way.

    Attributes:
        metadata: among others the render modes; of a class those of worlds with pictures.
        world: the world, made.
        mode: `tokens` or `text`.
        codec: the codec, made.
        split: where Tasks are drawn from.
        token_budget: budget of one role's conversation.
        render_mode: one of the render modes, or `None`.
    """

    metadata: dict[str, Any]

    def __init__(
        self,
        world: str,
        level: str | None = None,
        mode: Mode = "text",
        codec: Codec | str = "byte",
        split: str = "train",
        token_budget: int = 32768,
        opponents: Mapping[str, Policy | str] | None = None,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        require_one_of("mode", mode, list(_ACTIONS))
        require_one_of("split", split, SPLITS)
        if token_budget < 1:
            raise OptionError(f"token_budget must be at least 1, got {token_budget}")
        self.world, self.codec = make_world(world, level, **options), resolve(codec)
        self.mode, self.split, self.token_budget = mode, split, token_budget
        self._make_episode: Callable[..., TextEpisode] = (
            TextEpisode if mode == "text" else partial(Episode, codec=self.codec)
        )
        self.render_mode = render_mode
        roles, name = self.world.spec.roles, self.world.spec.id
        named = self._named(world, opponents or {})
        self._opponents = {role: policy(world, who) for role, who in named.items()}
        if not set(self._opponents) < set(roles):
            raise RoleError(
                f"opponents must be some of {list(roles)} but not all, got {[*self._opponents]}"
            )
        self._played = [role for role in roles if role not in self._opponents]
        drawn = can_draw(self.world.spec)
        modes = [one for one in self.metadata["render_modes"] if drawn or one != "rgb_array"]
        if render_mode == "rgb_array" and self.world.spec.render:
            require_picture(self.world.spec)
        require_one_of(f"{name}: render_mode", render_mode, [None, *modes])
        self.metadata = {**self.metadata, "render_modes": modes}
        self._episode: TextEpisode | None = None
        self._ready()

    @abstractmethod
    def _ready(self) -> None:
        """Set up what the library asks of its environments."""

    def _named(
        self, world: str, opponents: Mapping[str, Policy | str]
    ) -> Mapping[str, Policy | str]:
        """Return who plays against the roles that are left: those that were named."""
        return opponents

    def _spaces(self) -> tuple[Space[Any], Space[Any]]:
        """Return the spaces of observations and of actions; any content of a reply is legal.

        A budget ends the episode before an observation outgrows it, but the last reply, which the
        final observation repeats, may itself be as long as the budget.
        """
        if self.mode == "text":
            return UnicodeText(self.token_budget), UnicodeText(self.token_budget)
        size, most = self.codec.vocab_size, self.token_budget
        return Tokens(size, 2 * most), Tokens(size, most)

    def _begin(self, rng: np.random.Generator, options: Mapping[str, Any]) -> TextEpisode:
        """Start an episode and let opponents reply until a played role is next or it is over.

        Warns if the first text does not fit the budget: the episode has then ended with it.
        """
        task, opponents = self._choose_task(rng, options), self._opponents
        episode = self._episode = self._make_episode(
            self.world, task, opponents=opponents, token_budget=self.token_budget
        )
        if opponents:
            episode.advance()
        if episode.overflow:
            unit = "tokens" if self.mode == "tokens" else "characters"
            warnings.warn(
                f"{self.world.spec.id}: the first observation has {episode.overflow:,} {unit}, more"
                f" than token_budget={self.token_budget:,}; it is not shown, and the episode is "
                "truncated by its first step",
                stacklevel=3,
            )
        return episode

    def _choose_task(self, rng: np.random.Generator, options: Mapping[str, Any]) -> Task:
        """Return `task` of the options, or the one at `index` of `split`, drawn if not given."""
        task = options.get("task")
        if task is not None:
            if not isinstance(task, Task):
                raise OptionError(f"option 'task' must be a Task, got {type(task).__name__}")
            return task
        split, index = options.get("split", self.split), options.get("index")
        if index is None:
            index = self.world.draw_index(split, rng)
        return self.world.task(split, index)

    def _play(self, episode: TextEpisode, action: Observation | None) -> None:
        """Play an action: token ids in mode `tokens`, a string in mode `text`; then opponents.

        Raises:
            OptionError: if the action is not of the mode.
            TokenError: if the tokens are not of the action space.
        """
        if isinstance(action, str) and self.mode == "text":
            episode.say(action)
        elif isinstance(episode, Episode) and not isinstance(action, str | None):
            episode.act(action)
        else:
            raise OptionError(
                f"in mode {self.mode!r} an action is {_ACTIONS[self.mode]}, got "
                f'{type(action).__name__}; the modes are given by mode="tokens" and mode="text"'
            )
        if self._opponents:
            episode.advance()

    @property
    def _under_way(self) -> TextEpisode:
        """The episode that was begun last.

        Raises:
            EpisodeStateError: before `reset`.
        """
        if self._episode is None:
            raise EpisodeStateError("no episode is under way; call reset()")
        return self._episode

    @property
    def turn(self) -> Turn:
        """The Turn that is to be answered, or the last one.

        Raises:
            EpisodeStateError: before `reset`.
        """
        return self._under_way.turn

    @staticmethod
    def _info(episode: TextEpisode, text: str, terms: Mapping[str, float]) -> dict[str, Any]:
        """Return the `info` of a role: the text that it reads, terms of its reward, and so on."""
        turn = episode.turn
        metrics = turn.metrics
        info: dict[str, Any] = {
            "text": text,
            "terms": terms,
            "metrics": {**metrics},
            "task": episode.task.fingerprint,
            "cost": metrics.get("cost", 0.0),
        }
        if turn.stop_reason is not None:
            info["stop_reason"] = turn.stop_reason.value
        return info

    def _draw_picture(self) -> npt.NDArray[np.uint8]:
        """Return the picture of the episode so far.

        Raises:
            EpisodeStateError: before the first episode.
        """
        if self._episode is None:
            raise EpisodeStateError("there is no episode to show; call reset()")
        replies = [each.reply for each in self._episode.exchanges if each.reply is not None]
        # The last line of a reply that was cut off can read like a whole one.
        said = [reply.text if reply.complete else ended_lines(reply.text) for reply in replies]
        return picture(self.world, self._episode.task, said, finish=self._episode.done)
