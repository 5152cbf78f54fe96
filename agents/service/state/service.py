"""The service behind the routes: carries out each request on the served models."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from tokengym.agents.service.config import ServiceConfig
from tokengym.agents.service.engine.adapters import STATES, LoraSpec, adapter_bytes
from tokengym.agents.service.engine.checkpoints import CheckpointPath, CheckpointStore
from tokengym.agents.service.engine.compute_thread import ComputeThread, Pieces, client_of
from tokengym.agents.service.engine.memory import clients_bytes, spare_bytes, spill_bytes
from tokengym.agents.service.engine.parking import Parking, clear_spill
from tokengym.agents.service.errors import BadRequestError, OverloadedError
from tokengym.agents.service.generation.jobs import SampleRequest, SampleResult
from tokengym.agents.service.generation.sampled_weights import BASE
from tokengym.agents.service.served_model import ServedModel
from tokengym.agents.service.state.futures import FutureStore
from tokengym.agents.service.state.ledger import Ledger
from tokengym.agents.service.state.registry import SILENCE_S, Registry, RunRecord, SamplerRecord
from tokengym.agents.service.state.seeds import SeedSource

T = TypeVar("T")

REMEMBERED = 1024
"""Requests of a training run that are known when they are sent again."""

log = logging.getLogger(__name__)


class Service:
    """All state of a running service. Call its methods on the event loop only."""

    def __init__(self, config: ServiceConfig) -> None:
        self.config = config
        self.checkpoints = CheckpointStore(config.state_dir)
        self.seeds = SeedSource.open(config.seed, config.state_dir)
        self.registry = Registry(self.seeds.session_id)
        self._most_spilled = spill_bytes(config.state_dir)
        self.models = [ServedModel(path, config, self.checkpoints) for path in config.models]
        self.named = dict(zip(config.names, self.models, strict=False))
        self.compute = ComputeThread()
        capacity = clients_bytes(spare_bytes(self.models[0].base_model.device, config.memory))
        self.ledger = Ledger(capacity)
        folder = clear_spill(config.state_dir / "parked")
        self.parking = Parking(folder, lambda: self.ledger.for_runs)
        for model in self.models:
            model.trainer.parking = self.parking
        self.futures = FutureStore(capacity // 4)
        self._samples: dict[str, Future[SampleResult]] = {}

    def start(self) -> None:
        """Start the compute thread."""
        self.compute.start(model.sampler for model in self.models)

    def stop(self) -> None:
        """Stop the compute thread after its current operation."""
        self.compute.stop()

    def model(self, name: str | None) -> ServedModel:
        """Return the model served under `name`, called so, or read from that path.

        Raises:
            BadRequestError: if it is not served.
        """
        if name in self.named:
            return self.named[name]
        with suppress(ValueError):  # no path: it holds a NUL, or what is not Unicode
            place = Path(name).resolve() if name else None
            for model in self.models:
                if Path(model.name).resolve() == place:
                    return model
        raise BadRequestError(
            f"base_model must be one of those served ({self._names}), got {name!r}"
        )

    def create_run(
        self,
        run_id: str,
        session_id: str,
        model: ServedModel,
        spec: LoraSpec,
        metadata: Any,
        saved: CheckpointPath | None = None,
        *,
        optimizer: bool = False,
    ) -> str:
        """Create a training run in a session; returns the request id of the result.

        Args:
            run_id: the run.
            session_id: the session.
            model: that it trains.
            spec: of its adapter.
            metadata: what the client attached.
            saved: the checkpoint it begins with, if any.
            optimizer: whether it takes the optimizer's state from there too.
        """

        def work() -> dict[str, Any]:
            answer = {"model_id": run_id, "type": "create_model"}
            if saved is None:
                model.trainer.create(run_id, spec)
            else:
                model.load(run_id, saved, optimizer=optimizer)
                answer |= {"path": saved.uri, "type": "load_weights"}
            record = {"base_model": model.name, "lora": asdict(spec), "user_metadata": metadata}
            self.checkpoints.write_run(run_id, record)
            return answer

        self.registry.session(session_id)
        self.registry.note_alive(session_id)
        # The SDK sends a request again when its answer was lost.
        if run_id not in self.registry.runs:
            if spec.seed is None:
                spec = replace(spec, seed=self.seeds.adapter())
            size = STATES * adapter_bytes(model.base_model.trained, spec)
            self._check_spilled()
            self.ledger.check(size, f"a training run of rank {spec.rank}")
            self.ledger.runs[run_id] = size
            work_done = self._forget_on_failure(run_id, self.call(session_id, work))
            run = RunRecord(run_id, model, spec, self.futures.add(work_done))
            self.registry.add_run(session_id, run)
        return self.registry.runs[run_id].creation

    async def _forget_on_failure(self, run_id: str, work: Awaitable[T]) -> T:
        try:
            return await work
        except BaseException:
            self.registry.runs.pop(run_id, None)
            self.ledger.runs.pop(run_id, None)
            raise

    def train(
        self,
        run_id: str,
        seq_id: int | None,
        work: Callable[[ServedModel], Any | Pieces[Any]],
        nbytes: int = 0,
    ) -> str:
        """Run `work` on a run's model when its turn comes; returns the request id of the result.

        Args:
            run_id: the run.
            seq_id: its request's number: one sent again gets the first one's result.
            work: see `ComputeThread.call`.
            nbytes: that it holds until it is done.

        Raises:
            OverloadedError: if there is no room for it.
        """
        run = self.registry.run(run_id)
        if seq_id in run.requests:
            return run.requests[seq_id]
        give_back = self.ledger.take(nbytes, "a training request")
        result = self.call(client_of(run_id), partial(work, run.model))
        result.add_done_callback(lambda _: give_back())
        request_id = self.futures.add(result)
        if seq_id:
            run.requests[seq_id] = request_id
            while len(run.requests) > REMEMBERED:
                del run.requests[next(iter(run.requests))]
        return request_id

    def open_sampler(
        self, session_id: str, seq_id: int, name: str | None, model_path: str | None
    ) -> SamplerRecord:
        """Open a sampling session over the base model or over saved weights."""
        model, weights = self.weights_of(model_path) if model_path else (self.model(name), BASE)
        record = SamplerRecord(f"{session_id}:sample:{seq_id}", model, weights)
        self.registry.add_sampler(session_id, record)
        return record

    def save_unnamed(self, run_id: str, seq_id: int | None, sampler_seq_id: int) -> str:
        """Copy a run's weights for a new sampling session; returns the request id of its id."""
        session_id = client_of(run_id)
        sampler_id = f"{session_id}:sample:{sampler_seq_id}"
        self._check_spilled()

        def copy(model: ServedModel) -> dict[str, Any]:
            model.copy_adapter(run_id, sampler_id)
            return {"sampling_session_id": sampler_id, "type": "save_weights_for_sampler"}

        request_id = self.train(run_id, seq_id, copy)
        if sampler_id not in self.registry.samplers:
            model = self.registry.run(run_id).model
            self.registry.add_sampler(session_id, SamplerRecord(sampler_id, model, sampler_id))
        return request_id

    @contextmanager
    def sampling(
        self, model: ServedModel, request: SampleRequest
    ) -> Iterator[Future[SampleResult]]:
        """Sample within the block; what is unfinished at its end is cancelled.

        Raises:
            BadRequestError: if the result may be too large.
            OverloadedError: if there is no room for it for now.
        """
        give_back = self.ledger.take(request.result_bytes, "a sample")
        future: Future[SampleResult] = Future()

        def submit() -> None:
            try:
                self.parking.make_room()
                model.sampler.submit(self._seeded(model, request), future)
            except Exception as error:
                with suppress(InvalidStateError):
                    future.set_exception(error)

        self.compute.post(submit)
        try:
            yield future
        finally:
            give_back()
            future.cancel()

    def sample(
        self, record: SamplerRecord, request: SampleRequest, encode: Callable[[SampleResult], bytes]
    ) -> str:
        """Queue a sampling request; returns the request id of its encoded result.

        Raises:
            BadRequestError: if the result may be too large.
            OverloadedError: if there is no room for it for now.
        """
        request = replace(request, client=client_of(record.id))
        stack = ExitStack()
        future = stack.enter_context(self.sampling(record.model, request))

        async def finish() -> bytes:
            with stack:
                return await asyncio.to_thread(encode, await asyncio.wrap_future(future))

        request_id = self.futures.add(finish())
        self._samples[request_id] = future
        future.add_done_callback(lambda _: self._samples.pop(request_id, None))
        return request_id

    def cancel(self, request_id: str) -> None:
        """Cancel a sampling request; does nothing if it has finished or is unknown."""
        if (future := self._samples.get(request_id)) is not None:
            future.cancel()

    def finish_session(self, session_id: str, reason: str) -> None:
        """End a session and free its training runs and unnamed adapters."""
        session = self.registry.close_session(session_id, reason)
        if session is None:
            return
        for run_id in session.runs:
            self.unload(run_id)
        for sampler_id in session.samplers:
            record = self.registry.samplers.pop(sampler_id, None)
            if record is not None and record.weights == sampler_id:
                self.call(session_id, partial(record.model.sampled_weights.drop, sampler_id))
        for model in self.models:
            self.call(session_id, partial(model.sampler.forget, session_id))

    async def end_silent_sessions(self) -> None:
        """End sessions silent for a day, and other silent ones while there are too many files."""
        for session_id in self.registry.silent_sessions():
            if self._spilled > self._most_spilled or self.registry.is_silent(session_id, SILENCE_S):
                log.info("session %s has been silent and is ended", session_id)
                self.finish_session(session_id, "no heartbeat")
                # Its files are gone before the next one is looked at.
                await self.call(session_id, lambda: None)

    def unload(self, run_id: str) -> None:
        """Free a training run; its checkpoints stay on disk."""
        run = self.registry.runs.pop(run_id, None)
        if run is not None:
            self.ledger.runs.pop(run_id, None)
            self.call(client_of(run_id), partial(run.model.trainer.delete, run_id))

    def call(self, client: str, operation: Callable[[], Any | Pieces[Any]]) -> asyncio.Future[Any]:
        """Call `operation` for a client; see `ComputeThread.call`."""
        return asyncio.wrap_future(self.compute.call(client, operation))

    def status(self) -> dict[str, Any]:
        """Return counts for the status route."""
        return {
            "sessions": len(self.registry.sessions),
            "samplers": len(self.registry.samplers),
            "training_runs": len(self.registry.runs),
            "bytes_of_requests": self.ledger.requests,
            "bytes_of_runs": self.parking.held,
            "bytes_of_files": self._spilled,
        }

    @property
    def _spilled(self) -> int:
        unnamed = sum(model.sampled_weights.written for model in self.models)
        return unnamed + self.parking.written

    def _check_spilled(self) -> None:
        if self._spilled > self._most_spilled:
            raise OverloadedError(
                "files of runs and unnamed weights leave no room for more for now"
            )

    @property
    def _names(self) -> str:
        return ", ".join([*self.named, *(model.name for model in self.models)])

    def model_of(self, path: CheckpointPath) -> ServedModel:
        """Return the model whose base weights a checkpoint was made for.

        Raises:
            BadRequestError: if it is not served.
        """
        info = self.checkpoints.info(path)
        for model in self.models:
            if model.base_model.fingerprint == info.fingerprint:
                return model
        raise BadRequestError(
            f"checkpoint must belong to a served model ({self._names}), {path.uri} was made for "
            f"{info.base_model!r} with other weights"
        )

    def weights_of(self, uri: str) -> tuple[ServedModel, str]:
        """Return the model of a checkpoint and the key of its weights.

        Raises:
            BadRequestError: if it is no path of a checkpoint, or the model is not served.
        """
        path = CheckpointPath.parse(uri)
        return self.model_of(path), path.uri

    def _seeded(self, model: ServedModel, request: SampleRequest) -> SampleRequest:
        """Return a request with a seed; one that the client gave stays."""
        lineage = model.sampled_weights.lineage(request.weights)
        if request.sampling.seed is not None:
            return request
        seed = self.seeds.request(lineage, request)
        return replace(request, sampling=request.sampling.model_copy(update={"seed": seed}))
