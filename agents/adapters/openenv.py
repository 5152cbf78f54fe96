"""A world as an OpenEnv server: text in, text out, one world for each connected client."""

import random
from collections.abc import Mapping
from typing import Any

import uvicorn
from fastapi import FastAPI
from openenv.core.env_server import Action, Environment, Observation, State, create_app
from openenv.core.env_server.types import EnvironmentMetadata
from pydantic import Field

from tokengym import __version__
from tokengym.envs.adapters.config import TASK_INDICES, task_index
from tokengym.envs.adapters.rollouts import Rollout, Rollouts
from tokengym.envs.core.errors import EpisodeStateError, OptionError
from tokengym.envs.core.seeding import SPLITS, generator

SESSIONS = 64
"""Clients that are served at once unless told otherwise; each has a world of its own."""
_LISTED = 100


class ReplyAction(Action):
    """A reply. `metadata` may hold `finish_reason`: a reply that was cut off is malformed."""

    text: str = Field(description="the reply, in words")


class TurnObservation(Observation):
    """What the world says; `metadata` holds the terms of the reward and the metrics of the step."""

    text: str = Field(description="what is new; after the last reply, the final feedback")
    task_id: str = Field(description="fingerprint of the Task")
    role: str = Field(description="the role that is played")
    stop_reason: str | None = Field(default=None, description="why the episode ended")


class EpisodeState(State):
    """The Task that is played, and what was earned so far."""

    world: str = ""
    level: str = ""
    split: str = ""
    index: int = 0
    task_id: str = ""
    total_reward: float = 0.0


class WorldEnvironment(Environment[ReplyAction, TurnObservation, EpisodeState]):
    """One client's episodes.

    Args:
        rollouts: the world, shared by all clients; each episode has a world of its own.
        split: where `reset` draws Tasks from unless it is told.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, rollouts: Rollouts, split: str = "train") -> None:
        super().__init__()
        self._rollouts = rollouts
        self._split = split
        self._rollout: Rollout | None = None
        self._episode_id: str | None = None

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        *,
        split: str | None = None,
        index: int | None = None,
        **unknown: Any,
    ) -> TurnObservation:
        """Start an episode of the Task at `index` of `split`, or of one drawn by `seed`.

        Raises:
            OptionError: if the split is unknown, the index out of range, or an argument unknown.
        """
        if unknown:
            raise OptionError(f"reset takes seed, split and index, got {sorted(unknown)}")
        split = self._split if split is None else split
        if index is None:
            seed = random.getrandbits(63) if seed is None else seed
            index = task_index(self._rollouts.world, split, generator("reset", seed))
        self._rollout = self._rollouts.start(self._rollouts.world.task(split, index))
        self._episode_id = episode_id
        return self._observe(self._rollout, None)

    def step(
        self, action: ReplyAction, timeout_s: float | None = None, **ignored: Any
    ) -> TurnObservation:
        """Play a reply.

        Raises:
            EpisodeStateError: before `reset` or after the end.
        """
        if self._rollout is None:
            raise EpisodeStateError("no episode is under way; reset over the same connection")
        self._rollout.say(action.text, action.metadata.get("finish_reason"))
        return self._observe(self._rollout, self._rollout.rewards[-1])

    @property
    def state(self) -> EpisodeState:
        """The Task that is played; empty before `reset`."""
        rollout = self._rollout
        if rollout is None:
            return EpisodeState()
        task = rollout.task
        return EpisodeState(
            episode_id=self._episode_id,
            step_count=len(rollout.rewards),
            world=task.world,
            level=task.level,
            split=task.split,
            index=task.index,
            task_id=task.fingerprint,
            total_reward=rollout.total,
        )

    def get_metadata(self) -> EnvironmentMetadata:
        """Name and summary of the world."""
        spec = self._rollouts.world.spec
        return EnvironmentMetadata(name=spec.id, description=spec.summary, version=__version__)

    def list_splits(self) -> list[str]:
        """The splits, which share no problem."""
        return list(SPLITS)

    def num_tasks(self, split: str) -> int:
        """Number of Tasks of a split; 2³¹ where they are drawn and never run out."""
        size = self._rollouts.world.size(split)
        return TASK_INDICES if size is None else size

    def list_tasks(self, split: str) -> list[Mapping[str, Any]]:
        """The first Tasks of a split, 100 at most."""
        return self.get_task_range(split, 0, _LISTED)

    def get_task_range(
        self, split: str, start: int | None = None, stop: int | None = None
    ) -> list[Mapping[str, Any]]:
        """Where each Task of a range is found: what `reset` takes."""
        found = range(self.num_tasks(split))[start:stop][:_LISTED]
        return [{"split": split, "index": index} for index in found]

    def get_task(self, split: str, index: int) -> Mapping[str, Any]:
        """One Task: what `reset` takes, and the fingerprint that observations show."""
        if not 0 <= index < self.num_tasks(split):
            raise IndexError(f"{split!r} has no Task {index}")
        task = self._rollouts.world.task(split, index)
        where = {"split": split, "index": index, "world": task.world, "level": task.level}
        return {"id": task.fingerprint, **where}

    def close(self) -> None:
        """Drop the episode and its world."""
        self._rollout = None

    def _observe(self, rollout: Rollout, reward: float | None) -> TurnObservation:
        turn = rollout.turn
        details = {"terms": rollout.terms, "metrics": dict(turn.metrics)} if rollout.rewards else {}
        return TurnObservation(
            text=turn.text,
            task_id=rollout.task.fingerprint,
            role=rollout.role,
            done=turn.done,
            reward=reward,
            stop_reason=turn.stop_reason,
            metadata=details,
        )


def build_app(rollouts: Rollouts, *, split: str = "train", sessions: int = SESSIONS) -> FastAPI:
    """Return the server of a world.

    Args:
        rollouts: the world and the role to play.
        split: where `reset` draws Tasks from unless it is told.
        sessions: most clients at once.
    """
    return create_app(
        lambda: WorldEnvironment(rollouts, split),
        ReplyAction,
        TurnObservation,
        env_name=rollouts.world.spec.short_name,
        max_concurrent_envs=sessions,
        state_cls=EpisodeState,
    )


class _Server(uvicorn.Server):
    """Says where it listens once clients may connect."""

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        port = self.servers[0].sockets[0].getsockname()[1]
        print(f"listening at http://{self.config.host}:{port}", flush=True)


def serve(app: FastAPI, host: str, port: int) -> None:
    """Serve until interrupted.

    Args:
        app: of `build_app`.
        host: address to listen on.
        port: port; 0 for any free one.
    """
    # A trainer may keep its clients busy for long: only one that is silent for minutes is gone.
    pings = {"ws_ping_interval": 30.0, "ws_ping_timeout": 180.0}
    _Server(uvicorn.Config(app, host=host, port=port, log_level="warning", **pings)).run()
