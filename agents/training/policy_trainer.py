"""The policy being trained: created, resumed and saved."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import tinker
from tinker_cookbook import checkpoint_utils
from tinker_cookbook.rl.train import Config

from tokengym.agents.training.folder.run import RunFolder

logger = logging.getLogger(__name__)

_CLOSING_SECONDS = 5.0
_MOST_FAILURES = 3
"""Failed rolling saves in a row that end a run."""


@contextlib.asynccontextmanager
async def service_session(
    base_url: str | None, **labels: Any
) -> AsyncIterator[tinker.ServiceClient]:
    """Open a session of a service, and end it afterwards: as a success, or as errored.

    Args:
        base_url: address of the service; `None` for the hosted one's own.
        labels: what else `tinker.ServiceClient` takes, such as `display_name`.
    """
    service = tinker.ServiceClient(base_url=base_url, **labels)
    try:
        yield service
    except BaseException:
        # A courtesy to a hosted service: what failed is what counts, and it may be the service.
        with contextlib.suppress(Exception):
            await asyncio.wait_for(service.close("errored"), _CLOSING_SECONDS)
        raise
    # All work is done and saved. The SDK's telemetry may lose its cancellation, and never end; a
    # service need not have the route.
    try:
        await asyncio.wait_for(service.close("success"), _CLOSING_SECONDS)
    except (TimeoutError, tinker.TinkerError) as error:
        logger.warning("the session could not be closed: %s", str(error) or "no answer in time")


@dataclass
class PolicyTrainer:
    """The policy being trained.

    A checkpoint is complete once it is recorded: only then is the one before deleted.

    Attributes:
        client: trains it.
        run: where its checkpoints are recorded.
        start: the step to continue with; steps before it are done.
        config: how often to save, and the address of the service.
        warn: shows a line.
    """

    client: tinker.TrainingClient
    run: RunFolder
    start: int
    config: Config
    warn: Callable[[str], None] = logger.warning
    _rolling: str | None = None
    _failures: int = 0

    @classmethod
    async def open(
        cls,
        service: tinker.ServiceClient,
        config: Config,
        run: RunFolder,
        seed: int,
        warn: Callable[[str], None] = logger.warning,
    ) -> "PolicyTrainer":
        """Return the policy of a run, from its last checkpoint or from the start.

        Args:
            service: where it is trained.
            config: model, rank, what to start from, how often to save.
            run: where its checkpoints are recorded; its folder is made.
            seed: of a new adapter.
            warn: shows a line.
        """
        run.folder.mkdir(parents=True, exist_ok=True)
        states = run.states()
        start = max(states, default=0)
        run.forget_checkpoints_after(start)
        client = await _client(service, config, states.get(start), seed)
        return cls(client, run, start, config, warn)

    async def sampler(self) -> tinker.SamplingClient:
        """Return a sampler of the current policy."""
        sampler: tinker.SamplingClient = await self.client.save_weights_and_get_sampling_client()
        return sampler

    async def save(self, step: int) -> None:
        """Save the policy after `step` steps, if the configuration says so.

        The next update may only be submitted once this returns: a save that is still to be
        submitted would hold it too.

        Raises:
            Exception: why a save failed; a rolling one may fail twice in a row.
        """
        if self.config.save_every > 0 and step % self.config.save_every == 0:
            await self._save(f"{step:06d}", {"batch": step}, "both", self.config.ttl_seconds)
        elif self.config.rolling_save_every > 0 and step % self.config.rolling_save_every == 0:
            state, ttl = {"batch": step, "rolling": True}, self.config.rolling_ttl_seconds
            try:
                self._rolling = await self._save(f"{step:06d}", state, "state", ttl)
                self._failures = 0
            except Exception as error:
                logger.warning("a rolling checkpoint could not be saved", exc_info=True)
                self._failures += 1
                if self._failures == _MOST_FAILURES:
                    raise
                left = _MOST_FAILURES - self._failures
                self.warn(
                    f"no checkpoint after step {step}, {left} more failures end the run: {error}"
                )

    async def finish(self, done: int) -> None:
        """Save the final policy after `done` steps, unless there were none or it is saved."""
        if done and self.run.final_step != done:
            await self._save("final", {"batch": done}, "both", None)

    async def _save(self, name: str, state: dict[str, Any], kind: Any, ttl: int | None) -> str:
        """Save the policy, then delete the rolling state before; returns the new state."""
        paths: dict[str, str] = await checkpoint_utils.save_checkpoint_async(
            training_client=self.client,
            name=name,
            log_path=str(self.run.folder),
            loop_state=state,
            kind=kind,
            ttl_seconds=ttl,
        )
        gone, self._rolling = self._rolling, None
        if gone is not None:
            rest = tinker.RestClient(base_url=self.config.base_url)
            try:
                await rest.delete_checkpoint_from_tinker_path(gone)
            except Exception:
                logger.warning(
                    "the rolling checkpoint %s could not be deleted", gone, exc_info=True
                )
        return paths["state_path"]


async def _client(
    service: tinker.ServiceClient, config: Config, state: str | None, seed: int
) -> tinker.TrainingClient:
    metadata: dict[str, str] = {}
    checkpoint_utils.add_renderer_name_to_user_metadata(metadata, config.renderer_name)
    if state is not None:
        opened = service.create_training_client_from_state_with_optimizer(
            state, user_metadata=metadata
        )
    elif config.load_checkpoint_path:
        opened = service.create_training_client_from_state(
            config.load_checkpoint_path, user_metadata=metadata
        )
    else:
        opened = service.create_lora_training_client(
            config.model_name, rank=config.lora_rank, seed=seed, user_metadata=metadata
        )
    client: tinker.TrainingClient = await opened
    return client
