"""Who plays beside the trained policy: named in a job's settings, made for its service.

Weights of another run are used where they are: at the hosted service by their path, from a run on
this machine by a copy of the one checkpoint in this run's own service folder.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import tinker
from tinker_cookbook.checkpoint_utils import load_checkpoints_file

from tokengym.agents.service import CHECKPOINT_SCHEME, UnknownResourceError, copy_checkpoint
from tokengym.agents.tinker.coordinator import Opponent
from tokengym.agents.tinker.language_model import LanguageModelOpponent
from tokengym.agents.toy_model import MODEL_DIR
from tokengym.agents.training.config import (
    SETTINGS_FILE,
    STARTING_POLICY,
    TrainSettings,
)
from tokengym.agents.training.connection import Connection
from tokengym.envs.core.errors import OptionError
from tokengym.envs.registry import baselines

MODEL = "model"
"""Stands for the job's own model, untrained."""
SERVICE_FOLDER = "service"


class Saved(NamedTuple):
    """The last weights a run saved, as `tinker://` paths.

    Attributes:
        sampler: to sample from; `None` if there are none yet.
        state: to train on from; `None` if there are none yet.
    """

    sampler: str | None
    state: str | None


def saved_weights(run: Path) -> Saved:
    """Return what a run folder says it saved last."""
    records = load_checkpoints_file(str(run))
    samplers = [record.sampler_path for record in records if record.sampler_path]
    both = [record for record in records if record.sampler_path and record.state_path]
    return Saved(samplers[-1] if samplers else None, both[-1].state_path if both else None)


def check_players(settings: TrainSettings) -> None:
    """Refuse names nobody goes by, before anything is started.

    Raises:
        OptionError: naming them.
    """
    for role, who in settings.opponents.items():
        if who not in (*baselines(settings.world), MODEL):
            _require_weights(who, f"{role} must be a baseline, {MODEL!r},")
    if settings.start is not None:
        _require_weights(settings.start, "start must be")


async def players(
    settings: TrainSettings,
    named: Mapping[str, str],
    connection: Connection,
    client: tinker.ServiceClient,
) -> dict[str, str | Opponent]:
    """Return the opponents that go by the given names.

    Args:
        settings: the job.
        named: who speaks for which role, as in `settings.opponents`.
        connection: the job's service.
        client: of that service.

    Raises:
        OptionError: if a name is nobody's, or a run has saved no weights.
    """
    known = baselines(settings.world)
    made: dict[str, str | Opponent] = {}
    for role, who in named.items():
        made[role] = who if who in known else await _model(who, settings, connection, client)
    return made


def weights_at(who: str, connection: Connection, *, state: bool) -> str:
    """Return the path by which the job's service knows somebody's weights.

    Args:
        who: a run folder or a `tinker://` path.
        connection: the job's service; one of our own gets a copy of a local run's weights.
        state: whether to train on from them rather than to sample.

    Raises:
        OptionError: if the run has saved none, or lost them.
    """
    if who.startswith(CHECKPOINT_SCHEME):
        return who
    run = Path(who)
    saved = saved_weights(run)
    path = saved.state if state else saved.sampler
    if path is None:
        raise OptionError(f"{run} has saved no weights yet")
    kept = next(
        (p / SERVICE_FOLDER for p in (run, run.parent) if (p / SERVICE_FOLDER).is_dir()), None
    )
    if connection.service is not None and kept is not None:
        try:
            copy_checkpoint(path, kept, connection.service.state_dir)
        except UnknownResourceError as error:
            raise OptionError(f"{run} has lost its weights: {error}") from error
    return path


def trained_agent(run: Path, client: tinker.ServiceClient) -> LanguageModelOpponent:
    """Return an agent that speaks with the last weights of a run.

    Args:
        run: the run folder.
        client: of the service that has these weights.

    Raises:
        OptionError: if the folder holds no run, or one without saved weights.
    """
    theirs = TrainSettings.load(run / SETTINGS_FILE)
    path = saved_weights(run).sampler
    if path is None:
        raise OptionError(f"{run} has saved no weights yet")
    return _agent(theirs, client.create_sampling_client(model_path=path).result(), str(run))


async def _model(
    who: str, settings: TrainSettings, connection: Connection, client: tinker.ServiceClient
) -> LanguageModelOpponent:
    if who == MODEL:
        sampler = await client.create_sampling_client(base_model=connection.model)
        return _agent(settings, sampler, who)
    _require_weights(who, "an agent must be")
    own = Path(who) / SETTINGS_FILE
    theirs = TrainSettings.load(own) if own.is_file() else settings
    path = weights_at(who, connection, state=False)
    return _agent(theirs, await client.create_sampling_client(model_path=path), who)


def _agent(
    settings: TrainSettings, sampler: tinker.SamplingClient, name: str
) -> LanguageModelOpponent:
    """Return an agent that speaks as a job's policy does."""
    own = settings.model == STARTING_POLICY
    return LanguageModelOpponent(
        sampler,
        f"{settings.renderer}@{MODEL_DIR.resolve() if own else settings.model}",
        max_tokens=settings.max_tokens,
        temperature=settings.temperature,
        name=name,
    )


def _require_weights(who: str, rule: str) -> None:
    if not who.startswith(CHECKPOINT_SCHEME) and not (Path(who) / SETTINGS_FILE).is_file():
        raise OptionError(f"{rule} a run folder or a {CHECKPOINT_SCHEME} path, got {who!r}")
