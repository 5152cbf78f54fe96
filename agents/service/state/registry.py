"""Sessions and the training runs and samplers they own, in memory; event loop only."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tokengym.agents.service.engine.adapters import LoraSpec
from tokengym.agents.service.engine.compute_thread import client_of
from tokengym.agents.service.errors import BadRequestError, GoneError, UnknownResourceError
from tokengym.agents.service.served_model import ServedModel

# The SDK sends a heartbeat every ten seconds. Who is silent for a few gives way to others; who is
# silent for so long that even a laptop has not slept is ended.
QUIET_S, SILENCE_S = 30.0, 86_400.0


@dataclass
class ClientSession:
    """A client's session and what it owns."""

    id: str
    user_metadata: dict[str, Any] | None
    display_name: str | None
    runs: list[str] = field(default_factory=list)
    samplers: list[str] = field(default_factory=list)
    last_seen: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class SamplerRecord:
    """A sampling session: the model it samples from and the key of the weights."""

    id: str
    model: ServedModel
    weights: str


@dataclass(frozen=True)
class RunRecord:
    """A training run held by a model.

    Attributes:
        id: of the run.
        model: that holds it.
        spec: of its adapter.
        creation: request id of the result of its creation.
        requests: ids of the results of its requests, by their numbers.
    """

    id: str
    model: ServedModel
    spec: LoraSpec
    creation: str
    requests: dict[int, str] = field(default_factory=dict)


class Registry:
    """All sessions, training runs and samplers of this process, by id.

    Args:
        new_id: makes the id of a session.
    """

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self.sessions: dict[str, ClientSession] = {}
        self._finished: dict[str, str] = {}
        self.runs: dict[str, RunRecord] = {}
        self.samplers: dict[str, SamplerRecord] = {}

    def open_session(self, metadata: dict[str, Any] | None, name: str | None) -> ClientSession:
        """Open a new session."""
        session = ClientSession(self._new_id(), metadata, name)
        self.sessions[session.id] = session
        return session

    def session(self, session_id: str) -> ClientSession:
        """Return a session.

        Raises:
            GoneError: if it has finished.
            UnknownResourceError: if it never existed or belongs to an earlier service process.
        """
        if session_id in self._finished:
            raise GoneError(f"session {session_id!r} has finished: {self._finished[session_id]}")
        if session_id not in self.sessions:
            raise UnknownResourceError(
                f"session {session_id!r} is unknown; the service may have been restarted"
            )
        return self.sessions[session_id]

    def note_alive(self, owned_id: str) -> None:
        """Note that the client of a session, or of what one owns, is alive."""
        if (session := self.sessions.get(client_of(owned_id))) is not None:
            session.last_seen = time.monotonic()

    def is_silent(self, owned_id: str, seconds: float = QUIET_S) -> bool:
        """Return whether the client of a session, or of what one owns, has been silent for long."""
        session = self.sessions.get(client_of(owned_id))
        return session is None or session.last_seen < time.monotonic() - seconds

    def close_session(self, session_id: str, reason: str) -> ClientSession | None:
        """Remove a session; returns it, so that the caller can free what it owned.

        Raises:
            UnknownResourceError: if it never existed or belongs to an earlier service process.
        """
        if session_id in self._finished:
            return None
        session = self.session(session_id)
        del self.sessions[session_id]
        self._finished[session_id] = reason
        while len(self._finished) > 4096:
            del self._finished[next(iter(self._finished))]
        return session

    def silent_sessions(self) -> list[str]:
        """Return the ids of sessions whose heartbeat has stopped, the longest silent first."""
        held = sorted(self.sessions.values(), key=lambda session: session.last_seen)
        return [session.id for session in held if self.is_silent(session.id)]

    def add_run(self, session_id: str, record: RunRecord) -> None:
        """Add a training run to a session."""
        self.runs[record.id] = record
        self.session(session_id).runs.append(record.id)

    def add_sampler(self, session_id: str, record: SamplerRecord) -> None:
        """Add a sampler to a session."""
        self.samplers[record.id] = record
        self.session(session_id).samplers.append(record.id)

    def run(self, run_id: str) -> RunRecord:
        """Return a training run.

        Raises:
            UnknownResourceError: if it is not held.
        """
        if run_id not in self.runs:
            raise UnknownResourceError(
                f"training run {run_id!r} is not held: its session ended or the service was "
                "restarted; resume from a checkpoint"
            )
        self.note_alive(run_id)
        return self.runs[run_id]

    def sampler(self, sampler_id: str | None) -> SamplerRecord:
        """Return a sampler.

        Raises:
            UnknownResourceError: if it is not held.
        """
        if not sampler_id:
            raise BadRequestError("sampling_session_id must be given, got none")
        if sampler_id not in self.samplers:
            raise UnknownResourceError(
                f"sampler {sampler_id!r} is not held: its session ended or the service was "
                "restarted; create a sampling client again"
            )
        self.note_alive(sampler_id)
        return self.samplers[sampler_id]
