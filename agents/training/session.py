"""A Session: a job connected to a service, with all its players."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

import tinker
from tinker_cookbook.completers import TinkerTokenCompleter

from tokengym.agents.training.connection import Connection
from tokengym.agents.training.earlier_runs import Opponents, SavedModel, sampler_of
from tokengym.agents.training.folder.run import Weights
from tokengym.agents.training.job import Job
from tokengym.agents.training.policy_trainer import service_session

# A service of one's own then has room for what they have read and written: no turn is read again.
_EPISODES_AT_ONCE = 24
_HOSTED_EPISODES_AT_ONCE = 256


@dataclass(frozen=True)
class TrainingSession:
    """A job on a reachable service.

    Attributes:
        job: the job.
        connection: to the service.
        client: of the service.
        opponents: by trained role, who plays each other role.
        episodes: bounds the episodes of evaluations that are under way at once.
        weights: the weights to begin with, where they are not the job's own start.
    """

    job: Job
    connection: Connection
    client: tinker.ServiceClient
    opponents: Mapping[str, Opponents]
    episodes: asyncio.Semaphore
    weights: Weights | None = None

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, job: Job, connection: Connection) -> AsyncIterator["TrainingSession"]:
        """Open a client of the service, and make the opponents that are models."""
        async with service_session(connection.base_url) as client:
            opponents = await _connected(job, connection, client)
            hosted = connection.base_url is None
            gate = asyncio.Semaphore(_HOSTED_EPISODES_AT_ONCE if hosted else _EPISODES_AT_ONCE)
            yield cls(job, connection, client, opponents, gate)

    def start(self, *, state: bool) -> str | None:
        """Return the path of the weights the job starts from; `None` for the base model.

        Args:
            state: whether to train on from them rather than to sample.
        """
        if self.weights is not None:
            return self.weights.state if state else self.weights.sampler
        start = self.job.start
        return None if start is None else start.path(self.connection, state=state)

    async def sampler(self, path: str | None) -> tinker.SamplingClient:
        """Return a sampler of saved weights, or of the base model if `path` is `None`."""
        return await sampler_of(self.client, self.connection.model, path)

    async def completer(self, path: str | None) -> TinkerTokenCompleter:
        """Return what samples the job's replies from saved weights, or from the base model."""
        sampler = await self.sampler(path)
        return TinkerTokenCompleter(sampler, self.job.max_tokens, self.job.config.temperature)


async def _connected(
    job: Job, connection: Connection, client: tinker.ServiceClient
) -> dict[str, Opponents]:
    """Return a job's opponents, by trained role, with a client for each that is a model."""
    return {
        role: {
            other: await who.connect(connection, client) if isinstance(who, SavedModel) else who
            for other, who in others.items()
        }
        for role, others in job.opponents.items()
    }
