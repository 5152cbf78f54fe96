"""Rollouts: one role's episodes of a world, as any trainer or evaluator plays them.

Names are looked up once, every rollout has its own world, opponents reply by themselves, and
whatever a sampler calls the end of a reply is understood.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from tokengym.envs.core.episode import TextEpisode, role_stream
from tokengym.envs.core.errors import OptionError, RoleError
from tokengym.envs.core.play import Policy
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import StopReason, Turn
from tokengym.envs.core.world import World
from tokengym.envs.registry import make_world, opponents_of_one, policy
from tokengym.envs.tokens.codec import Codec
from tokengym.envs.tokens.episode import Episode
from tokengym.envs.train_split import score_in_training, training_world

Playable: TypeAlias = "Rollouts | World | str | Mapping[str, Any]"
"""World argument of adapters: anything that `Rollouts.of` accepts."""

_CUT_OFF = {
    *("abort", "aborted", "cancelled", "content_filter", "error", "incomplete", "length"),
    *("max_length", "max_output_tokens", "max_tokens", "model_context_window_exceeded"),
    *("model_length", "pause_turn", "safety", "timeout", "truncated"),
}


def is_complete(finish_reason: str | None) -> bool:
    """Return whether a reply ended by itself, by the reason that a sampler or an API states.

    Args:
        finish_reason: such as `stop` or `length` (OpenAI, vLLM, Tinker), `end_turn` or `max_tokens`
            (Anthropic), `STOP` or `MAX_TOKENS` (Google), `model_length` (Inspect); `None` if it is
            not known. Only the known names of a reply that was cut off count as one.
    """
    return str(finish_reason).lower() not in _CUT_OFF


class Rollouts:
    """Starts rollouts of one world in which one role is played and opponents play the others.

    It may be shared by threads and event loops: each rollout has its own world.

    Args:
        world: the world, or its id or short name, also with a level: `energy:small`.
        level: one of the world's levels; the first one if `None`. Of a name alone, like options.
        role: the role to play; the world's first that is no opponent's if `None`.
        opponents: by role a scripted policy, or a baseline's name; for roles not named the world's
            usual opponent, see `WorldSpec.opponents`.
        codec: for rollouts in tokens; `None` for rollouts in text.
        token_budget: budget of a rollout's tokens, see `Episode`.
        **options: options of the world. Those that it declares for training, such as the exact
            probabilities for a label, hold on the split `train` unless they are named here:
            `label="outcome"` trains on outcomes. Other splits are scored by outcomes.

    Attributes:
        world: the world that Tasks are drawn from: `rollouts.world.task("train", 7)`.
        role: the role to play.
        opponents: policies of the other roles.

    Raises:
        UnknownWorldError: if there is no such world.
        OptionError: if the level, an option or a baseline's name is unknown.
        RoleError: if a role is not the world's, or `role` is an opponent's.
    """

    def __init__(
        self,
        world: World | str,
        level: str | None = None,
        *,
        role: str | None = None,
        opponents: Mapping[str, Policy | str] | None = None,
        codec: Codec | str | None = None,
        token_budget: int | None = None,
        **options: Any,
    ) -> None:
        self.world = world if isinstance(world, World) else make_world(world, level, **options)
        self._training = training_world(self.world)
        self.codec = codec
        self.token_budget = token_budget
        spec = self.world.spec
        named = dict(opponents or {})
        unknown = sorted({*named, *([] if role is None else [role])} - set(spec.roles))
        left = [other for other in spec.roles if other not in named]
        if unknown or not left or role in named:
            raise RoleError(
                f"{spec.id} has the roles {list(spec.roles)}: one is played and the "
                f"others are opponents, got role={role!r} and opponents {sorted(named)}"
            )
        self.role = left[0] if role is None else role
        others = opponents_of_one(spec, named, self.role)
        self.opponents = {other: policy(spec, who) for other, who in others.items()}

    @classmethod
    def of(cls, given: Playable, **more: Any) -> "Rollouts":
        """Return rollouts however the configuration of a trainer or an evaluator gives them.

        Args:
            given: rollouts; a world or its name, such as `energy:small`; or arguments of this
                class: `{"world": "energy", "level": "small", "prompt": "terse"}`.
            **more: further arguments of this class; rollouts, which are made, take none.

        Raises:
            OptionError: if it is none of these, or made rollouts are given arguments.
        """
        if isinstance(given, Rollouts):
            if more:
                raise OptionError(f"rollouts that are made take no {sorted(more)}")
            return given
        if isinstance(given, World | str):
            given = {"world": given}
        if not isinstance(given, Mapping) or "world" not in given:
            raise OptionError(
                f"rollouts are a name such as 'energy:small', or a mapping, got {given!r}"
            )
        return cls(**{**given, **more})

    def start(self, task: Task) -> "Rollout":
        """Start a rollout of `task`, with its own world; on `train` scored as training is.

        Raises:
            TaskError: if the Task is not the world's.
        """
        return Rollout(self, *score_in_training(self.world, self._training, task))

    def start_at(self, split: str, index: int) -> "Rollout":
        """Start a rollout of the Task at a split and index, as rows of a data set name it.

        Raises:
            OptionError: if the split is unknown.
            TaskError: if it has no such Task.
        """
        return self.start(self.world.task(split, index))


class Rollout:
    """One episode, played in one role; made by `Rollouts.start`.

    Args:
        rollouts: says the role, the opponents and the codec.
        world: scores it; it is forked.
        task: what to play.

    Attributes:
        task: the Task.
        role: the role that is played.
        episode: the episode; its tokens are those of the role, if there is a codec.
        rewards: what each reply of the role earned, and what was left when `stop` was called. Their
            sum is the role's return.
        terms: the named parts of the last of them.
        well_formed: for each reply whether it was well-formed.
    """

    def __init__(self, rollouts: Rollouts, world: World, task: Task) -> None:
        self.task = task
        self.role = rollouts.role
        self.rewards: list[float] = []
        self.terms: dict[str, float] = {}
        self.well_formed: list[bool] = []
        world, opponents = world.fork(), rollouts.opponents
        self.episode: TextEpisode = (
            TextEpisode(world, task, opponents=opponents)
            if rollouts.codec is None
            else Episode(
                world, task, rollouts.codec, opponents=opponents, token_budget=rollouts.token_budget
            )
        )
        self.episode.advance()

    @property
    def turn(self) -> Turn:
        """The Turn to answer, or the last one."""
        return self.episode.turn

    @property
    def text(self) -> str:
        """The text that is new to the role; at the end, the world's final text."""
        return self.episode.turn.text

    @property
    def done(self) -> bool:
        """Whether the episode is over."""
        return self.episode.done

    @property
    def total(self) -> float:
        """The role's return so far."""
        return sum(self.rewards)

    @property
    def share_well_formed(self) -> float:
        """Share of well-formed replies so far; 0 before the first."""
        return sum(self.well_formed) / max(len(self.well_formed), 1)

    @property
    def tokens(self) -> list[int]:
        """The tokens that the role has read and written so far, append-only if the codec is.

        Raises:
            RoleError: if the rollout is in text.
        """
        return self._in_tokens.tokens_of(self.role)

    def say(self, text: str, finish_reason: str | None = None) -> Turn:
        """Play a reply in text.

        Args:
            text: the reply.
            finish_reason: see `is_complete`; of a reply cut off only lines that had ended count.

        Returns:
            the Turn that is the role's next to answer, or the last one.

        Raises:
            EpisodeStateError: after the end.
        """
        self.episode.say(text, complete=is_complete(finish_reason))
        return self._replied()

    def act(self, tokens: Sequence[int], finish_reason: str | None = None) -> Turn:
        """Play a reply in tokens as sampled; see `say`.

        Raises:
            EpisodeStateError: after the end.
            TokenError: if the tokens are not of the codec.
            RoleError: if the rollout is in text.
        """
        cut = not is_complete(finish_reason)
        reason = "length" if cut else None if finish_reason is None else "stop"
        self._in_tokens.act(tokens, reason)
        return self._replied()

    def play(self, policy: Policy, *key: object) -> float:
        """Play the rest with a scripted policy, which draws from `role_stream`; returns the return.

        Args:
            policy: the policy.
            *key: tells several rollouts of a Task apart.
        """
        rng = role_stream(self.task, self.role, *key)
        while not self.done:
            self.say(policy(self.episode.world, self.turn, rng))
        return self.total

    def stop(self, reason: StopReason = StopReason.ABANDONED) -> Turn:
        """End the rollout, if it is not over: the rest is played as empty replies and rewarded."""
        if not self.done:
            self.episode.stop(reason)
            self.rewards.append(self.episode.collect(self.role)[0])
            self.well_formed.append(False)
        return self.turn

    @property
    def _in_tokens(self) -> Episode:
        if not isinstance(self.episode, Episode):
            raise RoleError(f"the rollout is in text: no tokens are read by {self.role!r}")
        return self.episode

    def _replied(self) -> Turn:
        """Let opponents reply to the role's reply; return the Turn that is the role's to answer."""
        self.well_formed.append(self.episode.answer.metrics["well_formed"] > 0.0)
        self.episode.advance()
        reward, self.terms = self.episode.collect(self.role)
        self.rewards.append(reward)
        return self.turn
