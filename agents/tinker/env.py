"""One role of one episode as an `Env` of tinker-cookbook."""

from collections.abc import Mapping

import tinker
from tinker_cookbook.completers import StopCondition
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

from tokengym.agents.tinker.coordinator import PATIENCE, Coordinator, Opponent
from tokengym.agents.tinker.prompt import Prompt
from tokengym.envs.core.errors import EpisodeStateError
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import StopReason, Turn
from tokengym.envs.core.world import World
from tokengym.envs.tokens.codec import Codec, Reply
from tokengym.envs.tokens.episode import Episode

_STOPS: Mapping[StopReason, TinkerStop] = {
    StopReason.COMPLETED: TinkerStop.COMPLETED,
    StopReason.MALFORMED: TinkerStop.PARSE_ERROR,
    StopReason.FAILURE: TinkerStop.TOOL_STOPPED,
    StopReason.TURN_LIMIT: TinkerStop.MAX_TURNS,
    StopReason.TOKEN_BUDGET: TinkerStop.CONTEXT_OVERFLOW,
    StopReason.ABANDONED: TinkerStop.ROLLOUT_TIMEOUT,
}


class Member(Env):
    """One role of a coordinated episode. Single-use.

    `step` only appends: the next observation is the last one, the action as sampled, and the new
    tokens (with a codec that cannot be appended to, the conversation is rendered again). Both calls
    return when the role is to speak again or the episode is over.

    Budgets end an episode, never with an exception: where the next observation and a reply would no
    longer fit, what is left is played as empty replies and paid at once, and the episode stops
    with `context_overflow`. A first observation that does not fit is reported as
    `InitialObservationOverflow` with `max_tokens`. A reply that the sampler cut off (`stop_reason`
    `length`) is malformed to the world; if the world ends on it, the reason is `max_tokens`. Where
    another role did not speak the reason is `rollout_timeout`, see `Coordinator`.

    Reward: what the role earned since its last reply. Metrics: those of the world; `malformed`, 1
    or 0; `term/NAME` for each named part of the reward; at the end `stop/REASON` and, where there
    are several members, `abandoned`, 1 or 0. Logs: the first text, the reply and the text that
    answers it.

    Args:
        coordinator: of the episode.
        role: one of its roles.
    """

    def __init__(self, coordinator: Coordinator, role: str) -> None:
        self.coordinator = coordinator
        self.role = role
        self.world = coordinator.world
        self.task = coordinator.task
        self.codec = coordinator.codec
        self.rollout_limits = coordinator.rollout_limits
        self._stop: StopCondition = self.codec.stop
        self._prompt = Prompt()
        self._shown = 0
        self._read = ""
        self._over = False

    async def initial_observation(
        self,
    ) -> tuple[tinker.ModelInput, StopCondition] | InitialObservationOverflow:
        """Open the episode, or join it.

        Returns:
            the first observation and the stop condition, or what the episode came to if it was
            over before the role could speak.

        Raises:
            EpisodeStateError: on a second call.
        """
        await self.coordinator.join(self.role)
        episode = self.coordinator.episode
        turn = episode.turn
        if not turn.done:
            return self._observe(episode), self._stop
        self._over = True
        earned, terms = self.coordinator.collect(self.role)
        metrics: Metrics = {**turn.metrics, **terms, **self._abandoned()}
        why = turn.stop_reason or StopReason.COMPLETED
        reason = TinkerStop.MAX_TOKENS if why is StopReason.TOKEN_BUDGET else _STOPS[why]
        metrics[f"{STOP_METRIC_PREFIX}{reason}"] = 1.0
        logs: Logs = {"answer": turn.text}
        return InitialObservationOverflow(reward=earned, metrics=metrics, logs=logs)

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
        if self._over:
            raise EpisodeStateError(f"{self.world.spec.id}: the episode is over; start a new one")
        why = None if extra is None else extra.get("stop_reason")
        logs: Logs = {"read": self._read}
        move = await self.coordinator.play(self.role, list(action), why)
        episode = self.coordinator.episode
        turn = episode.turn
        earned, terms = self.coordinator.collect(self.role)
        metrics: Metrics = dict(turn.metrics)
        if move is not None:
            reply, answer = move
            if answer is not turn:
                metrics.update(answer.metrics)
            metrics["malformed"] = _malformed(reply, answer)
            logs["reply"] = reply.text
        metrics.update(terms)
        logs["answer"] = turn.text
        if not turn.done:
            return StepResult(earned, False, self._observe(episode), self._stop, metrics, logs)
        self._over = True
        reason = _STOPS[turn.stop_reason or StopReason.COMPLETED]
        if why == "length" and turn.stop_reason is StopReason.MALFORMED:
            reason = TinkerStop.MAX_TOKENS
        metrics.update(self._abandoned())
        metrics[f"{STOP_METRIC_PREFIX}{reason}"] = 1.0
        return StepResult(earned, True, tinker.ModelInput.empty(), self._stop, metrics, logs)

    def _observe(self, episode: Episode) -> tinker.ModelInput:
        self._read = episode.turn.text
        if not self.codec.append_only:
            self._prompt.clear()
            self._shown = 0
        new = episode.tokens_of(self.role, self._shown)
        self._prompt.append(new)
        self._shown += len(new)
        return self._prompt.model_input()

    def _abandoned(self) -> Metrics:
        alone = len(self.coordinator.roles) == 1
        return {} if alone else {"abandoned": float(self.coordinator.abandoned)}


class TinkerEnv(Member):
    """One episode of one Task, seen by the one role that is trained.

    Args:
        world: a world of its own; the env drives it.
        task: what to play.
        codec: a codec or its name, see `codec_named`.
        role: who is trained; the world's first role if `None`.
        opponents: who speaks for the other roles. Their randomness depends on the Task and the role
            alone, so that it is the same for all members of a group.
        max_trajectory_tokens: budget of observations and replies together.
        max_turn_tokens: longest reply; kept free in the trajectory budget, and told to the
            cookbook's runner through `rollout_limits`.
        patience: seconds the reply of an agent may take.

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
        opponents: Mapping[str, Opponent] | None = None,
        max_trajectory_tokens: int | None = None,
        max_turn_tokens: int | None = None,
        patience: float = PATIENCE,
    ) -> None:
        role = world.spec.roles[0] if role is None else role
        coordinator = Coordinator(
            world,
            task,
            codec,
            roles=(role,),
            opponents=opponents,
            max_trajectory_tokens=max_trajectory_tokens,
            max_turn_tokens=max_turn_tokens,
            patience=patience,
        )
        super().__init__(coordinator, role)


def _malformed(reply: Reply, answer: Turn) -> float:
    """Return 1 if the world refused the reply, by its own word where it gives one, else 0."""
    well_formed = answer.metrics.get("well_formed")
    if well_formed is not None:
        return 1.0 - well_formed
    return float(not reply.complete or answer.stop_reason is StopReason.MALFORMED)
