"""Sessions and the training runs and samplers they own. In memory, on the event loop."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tokengym.agents.service.errors import (
    BadRequestError,
    GoneError,
    UnknownResourceError,
)

if TYPE_CHECKING:
    from tokengym.agents.service.engine import Engine

# The SDK sends a heartbeat every ten seconds; a laptop may sleep for a while.
SILENCE_S = 3600.0


@dataclass
class Session:
    """A client's session and what it owns."""

    id: str
    user_metadata: dict[str, Any] | None
    display_name: str | None
    runs: list[str] = field(default_factory=list)
    samplers: list[str] = field(default_factory=list)
    last_seen: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class SamplerRecord:
    """A sampling session: which weights of which engine it draws from."""

    id: str
    engine: Engine
    weights: str
    model_path: str | None = None


@dataclass(frozen=True)
class RunRecord:
    """A training run that is held by an engine."""

    id: str
    engine: Engine
    rank: int


class Registry:
    """Everything that has an id and lives no longer than the service."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}
        self._finished: dict[str, str] = {}
        self.runs: dict[str, RunRecord] = {}
        self.samplers: dict[str, SamplerRecord] = {}

    def open_session(self, metadata: dict[str, Any] | None, name: str | None) -> Session:
        """A new session."""
        session = Session(str(uuid.uuid4()), metadata, name)
        self._sessions[session.id] = session
        return session

    def session(self, session_id: str) -> Session:
        """The session of that id, now seen alive.

        Raises:
            GoneError: if it has finished.
            UnknownResourceError: if it never was, or belongs to an earlier run of the service.
        """
        if session_id in self._finished:
            raise GoneError(f"session {session_id!r} has finished: {self._finished[session_id]}")
        if session_id not in self._sessions:
            raise UnknownResourceError(
                f"session {session_id!r} is unknown; the service may have been started anew"
            )
        session = self._sessions[session_id]
        session.last_seen = time.monotonic()
        return session

    def sessions(self) -> list[Session]:
        """All open sessions, newest first."""
        return list(reversed(self._sessions.values()))

    def close_session(self, session_id: str, reason: str) -> Session | None:
        """Take a session and what it owns out of the registry; what it owned is returned."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._finished[session_id] = reason
            while len(self._finished) > 4096:
                del self._finished[next(iter(self._finished))]
        return session

    def silent_sessions(self) -> list[str]:
        """Sessions whose client has not been heard of for long."""
        limit = time.monotonic() - SILENCE_S
        return [session.id for session in self._sessions.values() if session.last_seen < limit]

    def add_run(self, session_id: str, record: RunRecord) -> None:
        """A session has a new training run."""
        self.runs[record.id] = record
        self.session(session_id).runs.append(record.id)

    def add_sampler(self, session_id: str, record: SamplerRecord) -> None:
        """A session has a new sampler."""
        self.samplers[record.id] = record
        self.session(session_id).samplers.append(record.id)

    def run(self, run_id: str) -> RunRecord:
        """A training run that can be trained on.

        Raises:
            UnknownResourceError: if it is not held.
        """
        if run_id not in self.runs:
            raise UnknownResourceError(
                f"training run {run_id!r} is not held: its session ended or the service was "
                "started anew; resume from a checkpoint"
            )
        return self.runs[run_id]

    def sampler(self, sampler_id: str | None) -> SamplerRecord:
        """A sampler that can be drawn from.

        Raises:
            UnknownResourceError: if it is not held.
        """
        if not sampler_id:
            raise BadRequestError("sampling_session_id must be given, got none")
        if sampler_id not in self.samplers:
            raise UnknownResourceError(
                f"sampler {sampler_id!r} is not held: its session ended or the service was "
                "started anew; create a sampling client again"
            )
        return self.samplers[sampler_id]
