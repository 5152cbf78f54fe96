"""A world as an OpenEnv server: text in, text out, one world for each connected client."""

import random
from collections.abc import Mapping
from hmac import compare_digest
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from openenv.core.env_server import Action, Environment, Observation, State, create_app
from openenv.core.env_server.types import EnvironmentMetadata
from pydantic import Field
from pydantic_core import PydanticSerializationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from tokengym import __version__
from tokengym.envs.core.errors import EpisodeStateError, OptionError, TokengymError
from tokengym.envs.core.seeding import SPLITS, generator
from tokengym.envs.rollouts import Playable, Rollout, Rollouts
from tokengym.loopback import foreign_site

_LISTED = 100
"""Most Tasks that one answer lists: where Tasks are drawn there is no end of them."""


class ReplyAction(Action):
    """A reply. `metadata` may hold `finish_reason`: of a reply cut off only ended lines count."""

    text: str = Field(description="the reply, in words")


class TurnObservation(Observation):
    """The world's answer; `metadata` holds the terms of the reward and the metrics of the step."""

    text: str = Field(description="what is new; after the last reply, the final feedback")
    task_id: str = Field(description="fingerprint of the Task")
    role: str = Field(description="the role that is played")
    stop_reason: str | None = Field(default=None, description="why the episode ended")


class WorldEnvironment(Environment[ReplyAction, TurnObservation, State]):
    """One client's episodes, and the Tasks that there are (OpenEnv's `TaskProvider`).

    Args:
        rollouts: the world, or its name: `energy:small`; see `Rollouts.of`. All clients share it;
            each episode has a world of its own.
        split: where `reset` draws Tasks from by default.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, rollouts: Playable, split: str = "train") -> None:
        super().__init__()
        self._rollouts = Rollouts.of(rollouts)
        self._world = self._rollouts.world
        self._split = split
        self._rollout: Rollout | None = None
        self._episode_id: str | None = None

    def list_splits(self) -> list[str]:
        """The splits, which share no problem."""
        return list(SPLITS)

    def num_tasks(self, split: str) -> int:
        """Number of Tasks of a split; 2³¹ where they are drawn and never run out."""
        return self._world.task_count(split)

    def list_tasks(self, split: str) -> list[Mapping[str, Any]]:
        """The first Tasks of a split, 100 at most."""
        return self.get_task_range(split)

    def get_task_range(
        self, split: str, start: int | None = None, stop: int | None = None
    ) -> list[Mapping[str, Any]]:
        """The arguments of `reset` for each Task of a range, at most 100."""
        found = range(self.num_tasks(split))[start:stop][:_LISTED]
        return [{"split": split, "index": index} for index in found]

    def get_task(self, split: str, index: int) -> Mapping[str, Any]:
        """The arguments of `reset` for one Task, and as `id` its fingerprint."""
        if not 0 <= index < self.num_tasks(split):
            raise IndexError(f"{split!r} has no Task {index}")
        return {"id": self._world.task(split, index).fingerprint, "split": split, "index": index}

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
            index = self._world.draw_index(split, generator("reset", seed))
        self._rollout = self._rollouts.start_at(split, index)
        self._episode_id = episode_id
        return self._observe(self._rollout)

    def step(
        self, action: ReplyAction, timeout_s: float | None = None, **ignored: Any
    ) -> TurnObservation:
        """Play a reply.

        Raises:
            EpisodeStateError: if no episode is under way.
        """
        if self._rollout is None:
            raise EpisodeStateError("no episode is under way; reset over the same connection")
        self._rollout.say(action.text, action.metadata.get("finish_reason"))
        return self._observe(self._rollout)

    @property
    def state(self) -> State:
        """The current Task and what was earned so far; empty before `reset`."""
        rollout = self._rollout
        if rollout is None:
            return State()
        return State(
            episode_id=self._episode_id,
            step_count=len(rollout.rewards),
            total_reward=rollout.total,
            task_id=rollout.task.fingerprint,
            split=rollout.task.split,
            index=rollout.task.index,
        )

    def get_metadata(self) -> EnvironmentMetadata:
        """Name and summary of the world."""
        spec = self._world.spec
        return EnvironmentMetadata(name=spec.id, description=spec.summary, version=__version__)

    def close(self) -> None:
        """Drop the episode and its world."""
        self._rollout = None

    def _observe(self, rollout: Rollout) -> TurnObservation:
        turn, rewards = rollout.turn, rollout.rewards
        return TurnObservation(
            text=turn.text,
            task_id=rollout.task.fingerprint,
            role=rollout.role,
            done=turn.done,
            reward=rewards[-1] if rewards else None,
            stop_reason=turn.stop_reason,
            metadata={"terms": rollout.terms, "metrics": dict(turn.metrics)} if rewards else {},
        )


class OwnSite:
    """Refuses requests and WebSockets of pages of another site, and those without the key.

    Args:
        app: the ASGI application behind it.
        listening: the address that the server listens on.
        key: what clients must have; anybody may ask if empty.
    """

    def __init__(self, app: ASGIApp, listening: str, key: str = "") -> None:
        self._app, self._listening, self._key = app, listening, key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 403, or pass the request on."""
        reason = None
        if scope["type"] != "lifespan":
            headers = Headers(scope=scope)
            reason = foreign_site(self._listening, headers.get("host"), headers.get("origin"))
            shown = headers.get("authorization", "").encode()
            if self._key and not compare_digest(shown, b"Bearer " + self._key):
                reason = reason or "this server asks for its key: Authorization: Bearer KEY"
        if reason is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await JSONResponse({"detail": reason}, 403)(scope, receive, send)
        else:  # Before it is accepted, the server answers 403.
            await send({"type": "websocket.close", "code": 1008, "reason": reason})


def _refused(_request: Any, error: Exception) -> JSONResponse:
    """Answer a request that breaks a rule."""
    return JSONResponse({"detail": str(error)}, 400)


def _invalid(_request: Any, error: Any) -> JSONResponse:
    """Answer a body that is not what is asked for; what it held, such as NaN, may be no JSON."""
    wrong = error.detail if isinstance(error, HTTPException) else error.errors()
    if isinstance(wrong, list):
        where = ".".join(map(str, wrong[0]["loc"]))
        wrong = ascii(f"{where}: {wrong[0]['msg']}, got {wrong[0]['input']!r}")[1:-1]
    return JSONResponse({"detail": wrong}, getattr(error, "status_code", 422))


def build_app(
    rollouts: Playable,
    *,
    split: str = "train",
    sessions: int = 64,
    host: str = "127.0.0.1",
    key: str = "",
) -> FastAPI:
    """Return the server of a world.

    Args:
        rollouts: the world and the role to play; see `Rollouts.of`.
        split: where `reset` draws Tasks from by default.
        sessions: most clients at once; each has a world of its own.
        host: the address that it will listen on.
        key: what clients must have; anybody may ask if empty.
    """
    made = Rollouts.of(rollouts)
    app: FastAPI = create_app(
        lambda: WorldEnvironment(made, split),
        ReplyAction,
        TurnObservation,
        env_name=made.world.spec.short_name,
        max_concurrent_envs=sessions,
    )
    app.add_middleware(OwnSite, listening=host, key=key)
    app.add_exception_handler(TokengymError, _refused)
    app.add_exception_handler(PydanticSerializationError, _refused)
    for kind in (RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _invalid)
    return app
