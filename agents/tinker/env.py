"""TinkerEnv: one role of one episode as an `Env` of tinker-cookbook."""

from collections.abc import Awaitable, Callable, Mapping

import numpy as np
import tinker
from tinker_cookbook.completers import StopCondition
from tinker_cookbook.rl.rollout_limits import RolloutLimits
from tinker_cookbook.rl.types import (
    STOP_METRIC_PREFIX,
    Action,
    ActionExtra,
    Env,
    InitialObservationOverflow,
    Logs,
    Metrics,
    StepResult,
)
from tinker_cookbook.rl.types import StopReason as TinkerStop

from tokengym.agents.tinker.codec import as_codec
from tokengym.agents.tinker.prompt import Prompt
from tokengym.envs.core.errors import EpisodeStateError, OptionError, RoleError
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import StopReason, Turn
from tokengym.envs.core.world import World
from tokengym.envs.tokens.codec import Codec, Reply
from tokengym.envs.tokens.episode import Episode

Agent = Callable[[World, Turn, np.random.Generator], str | Awaitable[str]]
"""Who speaks for a role that is not trained: a baseline of the world, or anything awaitable."""

_NOTHING_FITS = 2
"""Room below which no useful reply fits; the cookbook's own runner draws the line there too."""
_STOPS: Mapping[StopReason, TinkerStop] = {
    StopReason.COMPLETED: TinkerStop.COMPLETED,
    StopReason.MALFORMED: TinkerStop.PARSE_ERROR,
    StopReason.FAILURE: TinkerStop.TOOL_STOPPED,
    StopReason.TURN_LIMIT: TinkerStop.MAX_TURNS,
    StopReason.TOKEN_BUDGET: TinkerStop.CONTEXT_OVERFLOW,
}


class TinkerEnv(Env):
    """One episode of one Task, seen by the role that is trained. Single-use.

    `step` only appends: the next observation is the last one, the action as sampled, and the new
    tokens (with a codec that cannot be appended to, the conversation is rendered again).

    Budgets end an episode, never with an exception: where the next observation and a reply would no
    longer fit, what is left is played as empty replies and paid at once, and the episode stops
    with `context_overflow`. A first observation that does not fit is reported as
    `InitialObservationOverflow` with `max_tokens`. A reply that the sampler cut off (`stop_reason`
    `length`) is malformed to the world; if the world ends on it, the reason is `max_tokens`.

    Reward: what the role earned since its last reply. Metrics: those of the world; `malformed`, 1
    or 0; `term/NAME` for each named part of the reward; at the end `stop/REASON`. Logs: the first
    text, the reply and the text that answers it.

    Args:
        world: a world of its own; the env drives it.
        task: what to play.
        codec: a codec or its name, see `codec_named`.
        role: who is trained; the world's first role if `None`.
        agents: who speaks for the other roles. Their randomness depends on the Task and the role
            alone, so that it is the same for all members of a group.
        max_trajectory_tokens: budget of observations and replies together.
        max_turn_tokens: longest reply; kept free in the trajectory budget, and told to the
            cookbook's runner through `rollout_limits`.

    Raises:
        RoleError: if the role is unknown or a role has nobody to speak for it.
        OptionError: if the codec's name is unknown or a budget leaves no room for a reply.
    """

    def __init__(
        self,
        world: World,
        task: Task,
        codec: Codec | str = "byte",
        *,
        role: str | None = None,
        agents: Mapping[str, Agent] | None = None,
        max_trajectory_tokens: int | None = None,
        max_turn_tokens: int | None = None,
    ) -> None:
        roles = world.spec.roles
        self.role = roles[0] if role is None else role
        self._agents = dict(agents or {})
        self._draws = {name: generator(task.fingerprint, name) for name in self._agents}
        wanted = set(roles) - {self.role}
        if self.role not in roles or set(self._agents) != wanted:
            raise RoleError(
                f"{world.spec.id} has the roles {list(roles)}: with role={self.role!r} agents must "
                f"speak for {sorted(wanted)}, got {sorted(self._agents)}"
            )
        reply = _NOTHING_FITS if max_turn_tokens is None else max_turn_tokens
        if reply < 1 or (max_trajectory_tokens is not None and max_trajectory_tokens <= reply):
            raise OptionError(
                f"a reply must fit in the budgets, got max_trajectory_tokens="
                f"{max_trajectory_tokens} and max_turn_tokens={max_turn_tokens}"
            )
        self.world = world
        self.task = task
        self.codec = as_codec(codec)
        self.rollout_limits = RolloutLimits(
            max_trajectory_tokens=max_trajectory_tokens, max_turn_tokens=max_turn_tokens
        )
        self._max_observation = (
            None if max_trajectory_tokens is None else max_trajectory_tokens - reply
        )
        self._stop: StopCondition = self.codec.stop
        self._episode: Episode | None = None
        self._prompt = Prompt()
        self._shown = 0
        self._earned = 0.0
        self._terms: dict[str, float] = {}

    async def initial_observation(
        self,
    ) -> tuple[tinker.ModelInput, StopCondition] | InitialObservationOverflow:
        """Open the episode.

        Returns:
            the first observation and the stop condition, or what the episode came to if it was
            over before the role could speak.

        Raises:
            EpisodeStateError: on a second call.
        """
        if self._episode is not None:
            raise EpisodeStateError("a TinkerEnv plays one episode; make another one")
        self._episode = episode = Episode(
            self.world,
            self.task,
            self.codec,
            roles=(self.role,),
            max_tokens=self._max_observation,
        )
        self._book(episode.turn)
        await self._let_others_speak(episode)
        if not episode.done:
            return self._observe(episode), self._stop
        metrics: Metrics = {**episode.turn.metrics, **self._terms}
        metrics[f"{STOP_METRIC_PREFIX}{TinkerStop.MAX_TOKENS}"] = 1.0
        logs: Logs = {"answer": episode.turn.text}
        return InitialObservationOverflow(reward=self._earned, metrics=metrics, logs=logs)

    async def step(self, action: Action, *, extra: ActionExtra | None = None) -> StepResult:
        """Play a reply.

        Args:
            action: token ids as sampled, the stop sequence included; any tokens are data.
            extra: may say why sampling stopped.

        Returns:
            the reward, the next observation (empty at the end), metrics and logs.

        Raises:
            EpisodeStateError: before `initial_observation` or after the end.
        """
        episode = self._episode
        if episode is None:
            raise EpisodeStateError("call initial_observation() before step()")
        why = None if extra is None else extra.get("stop_reason")
        logs: Logs = {"read": episode.turn.text}
        episode.play(list(action), why)
        reply, answer = episode.reply, episode.answer
        self._book(episode.turn)
        if self._agents:
            await self._let_others_speak(episode)
        turn = episode.turn
        metrics: Metrics = {**turn.metrics, **answer.metrics, **self._terms}
        metrics["malformed"] = _malformed(reply, answer)
        logs["reply"] = reply.text
        logs["answer"] = turn.text
        reward = self._earned
        self._earned = 0.0
        self._terms = {}
        if not turn.done:
            return StepResult(reward, False, self._observe(episode), self._stop, metrics, logs)
        reason = _STOPS[turn.stop_reason or StopReason.COMPLETED]
        if why == "length" and turn.stop_reason is StopReason.MALFORMED:
            reason = TinkerStop.MAX_TOKENS
        metrics[f"{STOP_METRIC_PREFIX}{reason}"] = 1.0
        return StepResult(reward, True, tinker.ModelInput.empty(), self._stop, metrics, logs)

    def _book(self, turn: Turn) -> None:
        self._earned += turn.rewards.get(self.role, 0.0)
        for name, value in turn.terms.get(self.role, {}).items():
            key = f"term/{name}"
            self._terms[key] = self._terms.get(key, 0.0) + value

    async def _let_others_speak(self, episode: Episode) -> None:
        while not episode.done and episode.role != self.role:
            speaks = self._agents[episode.role]
            said = speaks(self.world, episode.turn, self._draws[episode.role])
            self._book(episode.say(said if isinstance(said, str) else await said))

    def _observe(self, episode: Episode) -> tinker.ModelInput:
        if not episode.append_only:
            self._prompt.clear()
            self._shown = 0
        new = episode.tokens_of(self.role, self._shown)
        self._prompt.append(new)
        self._shown += len(new)
        return self._prompt.model_input()


def _malformed(reply: Reply, answer: Turn) -> float:
    """Return 1 if the world refused the reply, by its own word where it gives one, else 0."""
    if "well_formed" in answer.metrics:
        return 1.0 - answer.metrics["well_formed"]
    return float(not reply.complete or answer.stop_reason is StopReason.MALFORMED)
