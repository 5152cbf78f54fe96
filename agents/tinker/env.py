"""One role of one episode as an `Env` of tinker-cookbook."""

from collections.abc import Mapping, Sequence

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

from tokengym.agents.rollouts.record import is_malformed
from tokengym.agents.rollouts.repetition import copies, repeats_itself
from tokengym.agents.tinker.coordinator import Coordinator, Opponent
from tokengym.agents.tinker.fair_turns import take_turn
from tokengym.agents.tinker.prompt import TokenPrompt
from tokengym.envs.core.errors import EpisodeStateError, RoleError
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import StopReason
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines, opponents_of_one
from tokengym.envs.tokens.codec import Codec
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
    return when it is the role's turn again or the episode is over.

    A budget never raises an exception: where the next observation and a reply would no longer fit,
    the rest is played as empty replies and paid at once, and the episode stops with
    `context_overflow`. A first observation that does not fit is reported as
    `InitialObservationOverflow` with `max_tokens`. Of a reply that the sampler cut off
    (`stop_reason` `length`) the world reads the lines that had ended; if it finds no answer in them
    and ends, the reason is `max_tokens`. If another role did not reply the reason is
    `rollout_timeout`, see `Coordinator`.

    Reward: what the role earned since its last reply. Metrics: those of the world; `malformed`,
    `cut_off` (by the sampler), `repeating` (itself, until it was cut off) and `copied` (the reply
    ends with a line of the role's first text), 1 or 0; `term/NAME` for each named part of the
    reward; at the end `stop/REASON` and, with several members, `abandoned`, 1 or 0. Logs: the text
    that was read, the reply, and the world's answer.

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
        self._prompt = TokenPrompt()
        self._read = ""
        self._first_text = ""
        self._over = False

    async def initial_observation(
        self,
    ) -> tuple[tinker.ModelInput, StopCondition] | InitialObservationOverflow:
        """Open the episode, or join it.

        Returns:
            the first observation and the stop condition, or the result if the episode was over
            before the role's first turn.

        Raises:
            EpisodeStateError: on a second call.
        """
        await take_turn()
        await self.coordinator.join(self.role)
        episode = self.coordinator.episode
        turn = episode.turn
        if not turn.done:
            return self._observe(episode), self._stop
        self._over = True
        reward, terms = self.coordinator.collect(self.role)
        metrics: Metrics = {**turn.metrics, **terms, **self._abandoned()}
        ended = turn.stop_reason or StopReason.COMPLETED
        reason = TinkerStop.MAX_TOKENS if ended is StopReason.TOKEN_BUDGET else _STOPS[ended]
        metrics[f"{STOP_METRIC_PREFIX}{reason}"] = 1.0
        logs: Logs = {"answer": turn.text}
        return InitialObservationOverflow(reward=reward, metrics=metrics, logs=logs)

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
        sampling_stop = None if extra is None else extra.get("stop_reason")
        await take_turn()
        logs: Logs = {"read": self._read}
        exchange = await self.coordinator.play(self.role, list(action), sampling_stop)
        episode = self.coordinator.episode
        turn = episode.turn
        reward, terms = self.coordinator.collect(self.role)
        metrics: Metrics = dict(turn.metrics)
        if exchange is not None:
            reply, answer = exchange
            if answer is not turn:
                metrics.update(answer.metrics)
            metrics["malformed"] = float(is_malformed(reply, answer))
            metrics["cut_off"] = float(not reply.complete)
            metrics["repeating"] = float(not reply.complete and repeats_itself(reply.text))
            metrics["copied"] = float(copies(reply.text, self._first_text))
            logs["reply"] = reply.text
        metrics.update(terms)
        logs["answer"] = turn.text
        if not turn.done:
            return StepResult(reward, False, self._observe(episode), self._stop, metrics, logs)
        self._over = True
        reason = _STOPS[turn.stop_reason or StopReason.COMPLETED]
        if sampling_stop == "length" and turn.stop_reason is StopReason.MALFORMED:
            reason = TinkerStop.MAX_TOKENS
        metrics.update(self._abandoned())
        metrics[f"{STOP_METRIC_PREFIX}{reason}"] = 1.0
        return StepResult(reward, True, tinker.ModelInput.empty(), self._stop, metrics, logs)

    def _observe(self, episode: Episode) -> tinker.ModelInput:
        self._read = episode.turn.text
        self._first_text = self._first_text or self._read
        if not self.codec.append_only:
            self._prompt.clear()
        self._prompt.append(episode.pieces_of(self.role)[-1])
        return self._prompt.model_input()

    def _abandoned(self) -> Metrics:
        several = len(self.coordinator.roles) > 1
        return {"abandoned": float(self.coordinator.abandoned)} if several else {}


class TinkerEnv(Member):
    """One episode of one Task, played in the one role that is trained.

    Args:
        world: a world that nothing else uses; the env drives it.
        task: what to play.
        codec: a codec or its name, see `codec_named`.
        role: the trained role; the world's first if `None`.
        opponents: who plays the other roles, by name if one of the world's baselines; its usual
            opponents play those left. Their randomness depends on the Task and the role alone, so
            that it is the same for all members of a group.
        max_trajectory_tokens: budget of observations and replies together.
        max_turn_tokens: longest reply; kept free in the trajectory budget, and passed to the
            cookbook's runner in `rollout_limits`.

    Raises:
        RoleError: if a role is unknown, no one plays it, or no baseline has the given name.
        OptionError: if the codec's name is unknown or a budget leaves no room for a reply.
    """

    def __init__(
        self,
        world: World,
        task: Task,
        codec: Codec | str = "byte",
        *,
        role: str | None = None,
        opponents: Mapping[str, str | Opponent] | None = None,
        max_trajectory_tokens: int | None = None,
        max_turn_tokens: int | None = None,
    ) -> None:
        role = world.spec.roles[0] if role is None else role
        coordinator = Coordinator(
            world,
            task,
            codec,
            roles=(role,),
            opponents=opponents_of(world.spec, opponents, (role,)),
            max_trajectory_tokens=max_trajectory_tokens,
            max_turn_tokens=max_turn_tokens,
        )
        super().__init__(coordinator, role)


def opponents_of(
    spec: WorldSpec, named: Mapping[str, str | Opponent] | None, roles: Sequence[str]
) -> dict[str, Opponent]:
    """Return who plays the roles that are not trained.

    Args:
        spec: of the world.
        named: by role an opponent or a baseline's name. Where one role is trained the world's usual
            opponents play those that are left.
        roles: the trained roles.

    Raises:
        RoleError: if no baseline has a given name.
    """
    players: Mapping[str, str | Opponent] = named or {}
    if len(roles) == 1:
        players = opponents_of_one(spec, named, roles[0])
    policies: Mapping[str, Opponent] = baselines(spec) if spec.baselines else {}
    found: dict[str, Opponent] = {}
    for role, who in players.items():
        if not isinstance(who, str):
            found[role] = who
        elif who in policies:
            found[role] = policies[who]
        else:
            raise RoleError(f"{spec.id} has the baselines {sorted(policies)}, got {who!r}")
    return found
