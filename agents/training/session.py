"""What every loop begins and ends with: a session of a service, and policies in their folders."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tinker
from tinker_cookbook import checkpoint_utils
from tinker_cookbook.rl.train import Config
from tinker_cookbook.utils.git_rev import recipe_user_metadata

from tokengym.agents.training.records import forget_deleted_checkpoints

_CLOSING_SECONDS = 5.0


@contextlib.asynccontextmanager
async def session(base_url: str | None, **labels: Any) -> AsyncIterator[tinker.ServiceClient]:
    """Open a session, and end it afterwards: as a success, or as errored.

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
    await service.close("success")


def training_session(config: Config) -> AbstractAsyncContextManager[tinker.ServiceClient]:
    """Open the session of a run, named as the cookbook's loop would name it."""
    return session(
        config.base_url,
        user_metadata=recipe_user_metadata(config.recipe_name),
        display_name=config.session_name or config.wandb_name or Path(config.log_path).name,
    )


@dataclass(frozen=True)
class Learner:
    """A policy under training.

    Attributes:
        client: trains it.
        checkpoints: saves it in its folder.
        start: the step to go on with; steps before it are done.
    """

    client: tinker.TrainingClient
    checkpoints: checkpoint_utils.CheckpointManager
    start: int

    async def finish(self, steps: range) -> None:
        """Save the policy for good after `steps`, if there were any."""
        if steps:
            await self.checkpoints.save_final_async(loop_state={"batch": steps.stop})
        else:
            await self.checkpoints.finalize_async()


async def learner(
    service: tinker.ServiceClient, config: Config, folder: Path, store: Any = None
) -> Learner:
    """Return the policy of a folder: as it was at its last checkpoint, as it is to start, or new.

    Args:
        service: where it is trained.
        config: model, rank, what to start from, how often to save.
        folder: where its checkpoints are recorded.
        store: the cookbook's store of the run, if its checkpoints are to be told to it.
    """
    forget_deleted_checkpoints(folder)
    resumed = checkpoint_utils.get_last_checkpoint(str(folder))
    client = await _training_client(service, config, resumed)
    checkpoints = checkpoint_utils.CheckpointManager(
        training_client=client,
        service_client=service,
        log_path=str(folder),
        save_every=config.save_every,
        ttl_seconds=config.ttl_seconds,
        rolling_save_every=config.rolling_save_every,
        rolling_ttl_seconds=config.rolling_ttl_seconds,
        store=store,
    )
    return Learner(client, checkpoints, resumed.batch or 0 if resumed else 0)


async def _training_client(
    service: tinker.ServiceClient,
    config: Config,
    resumed: checkpoint_utils.CheckpointRecord | None,
) -> tinker.TrainingClient:
    metadata: dict[str, str] = {}
    checkpoint_utils.add_renderer_name_to_user_metadata(metadata, config.renderer_name)
    if resumed is not None and resumed.state_path is not None:
        return await service.create_training_client_from_state_with_optimizer_async(
            resumed.state_path, user_metadata=metadata
        )
    if config.load_checkpoint_path:
        return await service.create_training_client_from_state_async(
            config.load_checkpoint_path, user_metadata=metadata
        )
    return await service.create_lora_training_client_async(
        config.model_name, rank=config.lora_rank, user_metadata=metadata
    )
