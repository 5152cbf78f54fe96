"""The service behind the routes: what each request means, in terms of engines and records."""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tokengym.agents.service.adapters import LoraSpec
from tokengym.agents.service.checkpoints import CheckpointPath, CheckpointStore, now
from tokengym.agents.service.engine import Engine
from tokengym.agents.service.errors import (
    BadRequestError,
    GoneError,
    OverloadedError,
)
from tokengym.agents.service.ordering import Ordering
from tokengym.agents.service.promises import Promises
from tokengym.agents.service.registry import Registry, RunRecord, SamplerRecord
from tokengym.agents.service.snapshots import BASE
from tokengym.agents.service.wire import sample_response
from tokengym.agents.service.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tokengym.agents.service.sampler import SampleRequest, SampleResult
    from tokengym.agents.service.settings import Settings

T = TypeVar("T")

log = logging.getLogger(__name__)


class Service:
    """All state of a running service. Its methods are called on the event loop."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.checkpoints = CheckpointStore(settings.state_dir)
        self.engines = [Engine(path, settings, self.checkpoints) for path in settings.models]
        self.worker = Worker()
        self.promises = Promises()
        self.ordering = Ordering(self.promises)
        self.registry = Registry()
        self._samples: dict[str, Future[SampleResult]] = {}
        self._creations: dict[str, str] = {}
        self._queued = 0
        self._started = time.monotonic()

    def start(self) -> None:
        """Start the compute thread."""
        self.worker.start([engine.sampler for engine in self.engines])

    def stop(self) -> None:
        """End the compute thread after the operation under way."""
        self.worker.stop()

    def engine(self, model: str | None) -> Engine:
        """The engine that serves `model`, by the name it is served under or any path to it.

        Raises:
            BadRequestError: if it is not served.
        """
        for engine in self.engines:
            name = engine.backbone.name
            if model and (model == name or Path(model).resolve() == Path(name).resolve()):
                return engine
        names = ", ".join(engine.backbone.name for engine in self.engines)
        raise BadRequestError(f"base_model must be one of those served ({names}), got {model!r}")

    def create_run(
        self, run_id: str, session_id: str, engine: Engine, spec: LoraSpec, metadata: Any
    ) -> str:
        """Begin a training run; the request id of `{"model_id": ...}`."""
        session = self.registry.session(session_id)
        if run_id in self._creations:
            # The SDK sends a request again when its answer was lost.
            return self._creations[run_id]
        self.registry.add_run(session.id, RunRecord(run_id, engine, spec.rank))

        def work() -> dict[str, Any]:
            engine.trainer.create(run_id, spec)
            self._write_run(run_id, engine, spec, metadata)
            return {"model_id": run_id, "type": "create_model"}

        return self._begin(run_id, work)

    def load_run(
        self, run_id: str, session_id: str, path: CheckpointPath, *, optimizer: bool, metadata: Any
    ) -> str:
        """Begin a training run from a checkpoint; the request id of the answer."""
        info = self.checkpoints.info(path)
        engine = self._engine_for(path)
        session = self.registry.session(session_id)
        if run_id in self._creations:
            return self._creations[run_id]
        rank = LoraSpec(**info.lora).rank
        self.registry.add_run(session.id, RunRecord(run_id, engine, rank))

        def work() -> dict[str, Any]:
            spec = engine.load(run_id, path, optimizer=optimizer)
            self._write_run(run_id, engine, spec, metadata)
            return {"path": path.uri, "model_id": run_id, "type": "load_weights"}

        return self._begin(run_id, work)

    def train(self, run_id: str, seq_id: int | None, work: Callable[[Engine], Any]) -> str:
        """Do `work` on a run's engine in its turn; the request id of the result."""
        engine = self.registry.run(run_id).engine
        return self.ordering.admit(run_id, seq_id, lambda: self.call(partial(work, engine)))

    def open_sampler(
        self, session_id: str, seq_id: int, model: str | None, model_path: str | None
    ) -> SamplerRecord:
        """A sampling session over the base model or over saved weights."""
        sampler_id = f"{session_id}:sample:{seq_id}"
        if model_path:
            path = CheckpointPath.parse(model_path)
            record = SamplerRecord(sampler_id, self._engine_for(path), path.uri, path.uri)
        else:
            record = SamplerRecord(sampler_id, self.engine(model), BASE)
        self.registry.add_sampler(session_id, record)
        return record

    def save_unnamed(self, run_id: str, seq_id: int | None, sampler_seq_id: int) -> str:
        """Copy a run's weights for a new sampling session; the request id of its id."""
        session_id = run_id.split(":", 1)[0]
        sampler_id = f"{session_id}:sample:{sampler_seq_id}"

        def work(engine: Engine) -> dict[str, Any]:
            engine.snapshot(run_id, sampler_id)
            return {"sampling_session_id": sampler_id, "type": "save_weights_for_sampler"}

        async def start() -> dict[str, Any]:
            engine = self.registry.run(run_id).engine
            answer = await self.call(partial(work, engine))
            self.registry.add_sampler(session_id, SamplerRecord(sampler_id, engine, sampler_id))
            return answer

        self.registry.run(run_id)
        return self.ordering.admit(run_id, seq_id, lambda: asyncio.ensure_future(start()))

    def sample(self, record: SamplerRecord, request: SampleRequest, last: int | None) -> str:
        """Queue a sampling request; the request id of its encoded result.

        Raises:
            OverloadedError: if too much is queued.
        """
        if self._queued and self._queued + request.count > self.settings.max_queued_samples:
            raise OverloadedError(
                f"at most {self.settings.max_queued_samples} sequences may be queued, "
                f"{self._queued} are"
            )
        future: Future[SampleResult] = Future()
        engine = record.engine
        self._queued += request.count

        def submit() -> None:
            try:
                engine.snapshots.acquire(request.weights)
            except Exception as error:
                with suppress(InvalidStateError):
                    future.set_exception(error)
                return
            future.add_done_callback(
                lambda _: self.worker.tell(partial(engine.snapshots.release, request.weights))
            )
            engine.sampler.submit(request, future)

        async def finish() -> bytes:
            try:
                return sample_response(await asyncio.wrap_future(future), last)
            finally:
                self._queued -= request.count

        request_id = self.promises.add(finish())
        self._samples[request_id] = future
        future.add_done_callback(lambda _: self._samples.pop(request_id, None))
        self.worker.tell(submit)
        return request_id

    def cancel(self, request_id: str) -> None:
        """Stop a sampling request; one that is over or unknown is left alone."""
        future = self._samples.get(request_id)
        if future is not None:
            with suppress(InvalidStateError):
                future.set_exception(GoneError(f"request {request_id!r} was cancelled"))

    def finish_session(self, session_id: str, reason: str) -> None:
        """End a session: its training runs and unnamed snapshots are freed."""
        session = self.registry.close_session(session_id, reason)
        if session is None:
            return
        for run_id in session.runs:
            self.unload(run_id)
        for sampler_id in session.samplers:
            record = self.registry.samplers.pop(sampler_id, None)
            if record is not None and record.weights == sampler_id:
                self.call(partial(record.engine.snapshots.drop, sampler_id))

    def unload(self, run_id: str) -> None:
        """Free a training run; its checkpoints stay."""
        record = self.registry.runs.pop(run_id, None)
        self._creations.pop(run_id, None)
        self.ordering.forget(run_id)
        if record is not None:
            self.call(partial(record.engine.trainer.delete, run_id))

    def call(self, operation: Callable[[], T]) -> asyncio.Future[T]:
        """Run something on the compute thread, after all that was called before."""
        return asyncio.wrap_future(self.worker.call(operation))

    def status(self) -> dict[str, Any]:
        """Counts that show what is held."""
        return {
            "uptime_s": round(time.monotonic() - self._started, 1),
            "sessions": len(self.registry.sessions()),
            "samplers": len(self.registry.samplers),
            "open_requests": len(self.promises),
            "queued_sequences": self._queued,
            "engines": [engine.status() for engine in self.engines],
        }

    def _engine_for(self, path: CheckpointPath) -> Engine:
        info = self.checkpoints.info(path)
        for engine in self.engines:
            if engine.backbone.fingerprint == info.fingerprint:
                return engine
        names = ", ".join(engine.backbone.name for engine in self.engines)
        raise BadRequestError(
            f"checkpoint must belong to a served model ({names}), {path.uri} was made for "
            f"{info.base_model!r} with other weights"
        )

    def _write_run(self, run_id: str, engine: Engine, spec: LoraSpec, metadata: Any) -> None:
        self.checkpoints.write_run(
            run_id,
            {
                "training_run_id": run_id,
                "base_model": engine.backbone.name,
                "lora": spec.as_json(),
                "user_metadata": metadata,
                "created": now().isoformat(),
            },
        )

    def _begin(self, run_id: str, work: Callable[[], Any]) -> str:
        request_id = self.promises.add(self._or_forget(run_id, self.call(work)))
        self._creations[run_id] = request_id
        return request_id

    async def _or_forget(self, run_id: str, work: Awaitable[T]) -> T:
        try:
            return await work
        except BaseException:
            self.registry.runs.pop(run_id, None)
            self._creations.pop(run_id, None)
            raise
