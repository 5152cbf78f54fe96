"""Who plays the untrained roles: scripted policies by name, or a model's weights.

Weights of another run are used where they are: at the hosted service by their path, from a run on
this machine by a copy of the one checkpoint in this run's own service folder.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import tinker

from tokengym.agents.service import CHECKPOINT_SCHEME, UnknownResourceError, copy_checkpoint
from tokengym.agents.tinker.codec import codec_name
from tokengym.agents.tinker.coordinator import Opponent
from tokengym.agents.tinker.language_model import LanguageModelOpponent
from tokengym.agents.toy_model import MODEL_DIR
from tokengym.agents.training.config import TrainConfig
from tokengym.agents.training.connection import Connection
from tokengym.agents.training.folder.run import RunFolder, is_run
from tokengym.agents.training.renderer import renderer_of
from tokengym.agents.training.setting_groups import TOY_MODEL
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.play import Policy

MODEL = "model"
"""Stands for the job's own model, untrained."""

Opponents = Mapping[str, str | Opponent]
"""Who plays which role: a baseline's name or an opponent."""


@dataclass(frozen=True)
class SavedModel:
    """A model that can play: its weights and how it is sampled.

    Attributes:
        codec: name of its codec.
        max_tokens: most tokens of a reply.
        temperature: of sampling.
        name: what logs call it: `model`, a run folder or a `tinker://` path.
    """

    codec: str
    max_tokens: int
    temperature: float
    name: str

    def path(self, connection: Connection, *, state: bool = False) -> str | None:
        """Return the path of the weights on the job's service; `None` for the base model.

        Args:
            connection: the job's service; one of our own gets a copy of a local run's weights.
            state: whether to train on from them rather than to sample.

        Raises:
            OptionError: if the run has saved none, or lost them.
        """
        if self.name == MODEL:
            return None
        if self.name.startswith(CHECKPOINT_SCHEME):
            return self.name
        run = Path(self.name)
        weights = RunFolder(run).weights
        path = weights.state if state else weights.sampler
        if path is None:
            raise OptionError(f"{run} has saved no weights yet")
        kept = RunFolder(run).weights_folder
        if connection.service is not None and kept.is_dir():
            try:
                path = copy_checkpoint(path, kept, connection.service.state_dir)
            except UnknownResourceError as error:
                raise OptionError(f"{run} has lost its weights: {error}") from error
        return path

    async def connect(
        self, connection: Connection, client: tinker.ServiceClient
    ) -> LanguageModelOpponent:
        """Return an opponent that plays with these weights.

        Args:
            connection: the job's service.
            client: of that service.
        """
        path = self.path(connection)
        sampler = await sampler_of(client, connection.model, path)
        return LanguageModelOpponent(
            sampler,
            self.codec,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            name=self.name,
        )


def opponent_labels(opponents: Opponents) -> dict[str, str]:
    """Return the name of each role's player in logs."""
    return {
        role: who if isinstance(who, str) else str(getattr(who, "name", who))
        for role, who in opponents.items()
    }


async def sampler_of(
    client: tinker.ServiceClient, model: str, path: str | None
) -> tinker.SamplingClient:
    """Return a sampler of saved weights, or of the base model if `path` is `None`."""
    sampler: tinker.SamplingClient = await client.create_sampling_client(
        model_path=path, base_model=model if path is None else None
    )
    return sampler


def resolve_opponent(
    role: str, who: str, known: Mapping[str, Policy], own: SavedModel
) -> str | SavedModel:
    """Return who plays a role: a baseline's name, or a model.

    Args:
        role: the role.
        who: who was named for it.
        known: the world's baselines by name.
        own: the job's own model, untrained.

    Raises:
        OptionError: if `who` is unknown.
    """
    if who in known:
        return who
    return own if who == MODEL else saved_model(who, own, f"{role} must be a baseline, {MODEL!r},")


def resolve_teacher(who: str, student: SavedModel) -> SavedModel:
    """Return the teacher that is named.

    Raises:
        OptionError: if it is unknown, or reads and writes other tokens than the student.
    """
    teacher = saved_model(who, student, "--teacher must be")
    if teacher.codec != student.codec:
        raise OptionError(
            f"a teacher needs the student's tokens: {who} reads and writes by {teacher.codec}, the "
            f"student by {student.codec}"
        )
    return teacher


def saved_model(who: str, own: SavedModel, rule: str) -> SavedModel:
    """Return the model of a run folder or a `tinker://` path.

    Args:
        who: a run folder or a path; a path's model is sampled like `own`.
        own: the job's own model.
        rule: how an error begins.

    Raises:
        OptionError: if `who` is neither.
    """
    if who.startswith(CHECKPOINT_SCHEME):
        if len(who.removeprefix(CHECKPOINT_SCHEME).split("/")) != 3:
            raise OptionError(f"{rule} a path like tinker://run/sampler_weights/name, got {who!r}")
        return SavedModel(own.codec, own.max_tokens, own.temperature, who)
    if not is_run(who):
        raise OptionError(f"{rule} a run folder or a {CHECKPOINT_SCHEME} path, got {who!r}")
    if RunFolder(Path(who)).weights.sampler is None:
        raise OptionError(f"{who} has saved no weights yet")
    config = RunFolder(Path(who)).config
    return SavedModel(
        codec_of(config), config.max_tokens or own.max_tokens, config.temperature, who
    )


def codec_of(config: TrainConfig) -> str:
    """Return the name of the codec that a run's policy reads and writes by."""
    model = str(MODEL_DIR.resolve()) if config.model == TOY_MODEL else config.model
    return codec_name(renderer_of(config), model, system=config.system)


def trained_opponent(run: Path | str, client: tinker.ServiceClient) -> LanguageModelOpponent:
    """Return an opponent that plays with the last weights of a run.

    Args:
        run: the run folder.
        client: of the service that has these weights.

    Raises:
        OptionError: if the folder holds no run, or one without saved weights.
    """
    found = RunFolder.open(Path(run))
    path = found.weights.sampler
    if path is None:
        raise OptionError(f"{run} has saved no weights yet")
    config = found.config
    if config.max_tokens is None:
        raise OptionError(f"{run} does not record max_tokens")
    return LanguageModelOpponent(
        client.create_sampling_client(model_path=path).result(),
        codec_of(config),
        max_tokens=config.max_tokens,
        temperature=config.temperature,
        name=str(run),
    )
