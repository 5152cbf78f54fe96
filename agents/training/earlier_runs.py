"""Inputs from other runs or the service: weights that play, rollouts that teach.

Weights of another run are used where they are: at the hosted service by their path, from a run on
this machine by a copy of the one checkpoint in this run's own service folder.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import tinker

from tokengym.agents.models import resolve_model
from tokengym.agents.rollouts import RolloutRecord
from tokengym.agents.rollouts.same_answers import require_same_answers
from tokengym.agents.rollouts.selection import best_of_groups, preferred
from tokengym.agents.service import CHECKPOINT_SCHEME
from tokengym.agents.tinker.codec import codec_name, renderer_for
from tokengym.agents.tinker.coordinator import Opponent
from tokengym.agents.tinker.language_model import LanguageModelOpponent
from tokengym.agents.tinker.scripted_rollout import TurnTokens
from tokengym.agents.toy_model import TOY_MODEL
from tokengym.agents.training.config import DemonstrationSettings, JobConfig, PreferenceSettings
from tokengym.agents.training.connection import Connection
from tokengym.agents.training.folder.run import RunFolder
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.world import World
from tokengym.envs.tokens.codec import Codec, Message

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

    @classmethod
    def of_run(cls, run: RunFolder) -> Self:
        """Return the model that a run trains.

        Raises:
            OptionError: if it has saved no weights yet.
        """
        config, codec = run.config, codec_of(run)
        run.saved_weights()
        if config.max_tokens is None:
            raise OptionError(f"{run.folder} does not record max_tokens")
        return cls(codec, config.max_tokens, config.temperature, str(run.folder))

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
        run = RunFolder(Path(self.name))
        path = run.saved_weights(state=state)
        if connection.service is not None and run.weights_folder.is_dir():
            return run.copy_weights(path, connection.service.state_dir)
        return path

    async def connect(
        self, connection: Connection, client: tinker.ServiceClient
    ) -> LanguageModelOpponent:
        """Return an opponent that plays with these weights.

        Args:
            connection: the job's service.
            client: of that service.
        """
        sampler = await sampler_of(client, connection.model, self.path(connection))
        return self.opponent(sampler)

    def opponent(self, sampler: tinker.SamplingClient) -> LanguageModelOpponent:
        """Return an opponent that a sampler of these weights plays."""
        return LanguageModelOpponent(
            sampler,
            self.codec,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            name=self.name,
        )


def opponent_labels(opponents: Mapping[str, Any]) -> dict[str, str]:
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
    run = RunFolder(Path(who))
    if not run.exists:
        raise OptionError(f"{rule} a run folder or a {CHECKPOINT_SCHEME} path, got {who!r}")
    return SavedModel.of_run(run)


def codec_of(run: RunFolder) -> str:
    """Return the name of the codec that a run's policy reads and writes by.

    Raises:
        ModelError: if the run's own service served a model that is no longer on this machine.
    """
    config = run.config
    tokenizer = config.model
    if config.model == TOY_MODEL or run.weights_folder.is_dir():
        trusted = config.trust_remote_code
        tokenizer = str(resolve_model(config.model, trust_remote_code=trusted))
    renderer = renderer_for(config.model, config.renderer)
    return codec_name(renderer, tokenizer, system=config.system or "")


def trained_opponent(run: Path | str, client: tinker.ServiceClient) -> LanguageModelOpponent:
    """Return an opponent that plays with the last weights of a run.

    Args:
        run: the run folder.
        client: of the service that has these weights.

    Raises:
        OptionError: if the folder holds no run, or one without saved weights.
    """
    opened = RunFolder.open(Path(run))
    model = SavedModel.of_run(opened)
    sampler = client.create_sampling_client(model_path=opened.weights.sampler).result()
    return model.opponent(sampler)


class TokenPair(NamedTuple):
    """Two replies to one conversation, in tokens.

    Attributes:
        prompt: the conversation up to the replies.
        chosen: the reply of the rollout that earned more.
        rejected: the other's.
    """

    prompt: Sequence[int]
    chosen: Sequence[int]
    rejected: Sequence[int]


class SavedRollouts(NamedTuple):
    """The training rollouts that a run kept of one role, in the order of its steps.

    Rollouts of evaluations are left out: their Tasks are held out.

    Attributes:
        described: how many there are, and of what, for people.
        records: the rollouts.
        codec: by which they were read and written.
    """

    described: str
    records: Sequence[RolloutRecord]
    codec: Codec

    @classmethod
    def of_run(cls, run: RunFolder, world: World, role: str, codec: Codec) -> Self:
        """Read the rollouts of a run.

        Args:
            run: the run.
            world: the world at its level.
            role: whose rollouts.
            codec: by which they must have been read and written.

        Raises:
            OptionError: if they are of another codec, or answers have changed since.
        """
        written, where = codec_of(run), f"the run in {run.folder}"
        if written != codec.name:
            raise OptionError(
                f"learning from rollouts needs them in this model's tokens: {where} reads and "
                f"writes by {written}, this job by {codec.name}"
            )
        place = (world.spec.id, world.level, role)
        records = [
            record
            for record in run.rollouts.read()
            if record.origin.kind == "train" and (record.world, record.level, record.role) == place
        ]
        again = "give those of the run, or play these Tasks again with tokengym train"
        require_same_answers(records, where, again, world)
        described = (
            f"{where} kept {len(records)} training rollouts of the {role} at level {world.level!r} "
            f"of {world.spec.id}"
        )
        return cls(described, records, codec)

    def best(self, least: float | None) -> list[list[TurnTokens]]:
        """Return the best rollout of each group, if all its replies are well-formed.

        Args:
            least: smallest return of a rollout; any if `None`.

        Raises:
            OptionError: if there is none.
        """
        best = best_of_groups(self.records, float("-inf") if least is None else least)
        turns = [recorded_turns(record, self.codec) for record in best]
        if not turns:
            wanted = "" if least is None else f" with a return of at least {least}"
            raise OptionError(f"{self.described}, and none well-formed{wanted}")
        return turns

    def preferences(self, margin: float) -> list[TokenPair]:
        """Return the pairs that the rollouts make.

        Args:
            margin: smallest difference of the returns of a pair.

        Raises:
            OptionError: if there is none.
        """
        pairs = []
        for pair in preferred(self.records, margin):
            rollouts = (pair.better, pair.worse)
            better, worse = (recorded_turns(record, self.codec)[pair.reply] for record in rollouts)
            pairs.append(TokenPair(better.observation, better.reply, worse.reply))
        if not pairs:
            raise OptionError(
                f"{self.described}, and no two of a group differ in return by {margin} or more"
            )
        return pairs


def recorded_turns(record: RolloutRecord, codec: Codec) -> list[TurnTokens]:
    """Return a rollout's turns as its role read and sampled them."""
    turns: list[TurnTokens] = []
    conversation: list[Message] = []
    for turn in record.own_turns:
        conversation.append(Message(turn.read, own=False))
        if turns and codec.append_only:
            before = turns[-1]
            new = codec.extend(before.reply, turn.read)
            observation = [*before.observation, *before.reply, *new]
        else:
            observation = list(codec.render(conversation))
        turns.append(TurnTokens(observation, list(turn.tokens)))
        conversation.append(Message(turn.said or "", own=True))
    return turns


@dataclass(frozen=True, kw_only=True)
class EarlierRuns:
    """All that a job takes from other runs, or from the service.

    Attributes:
        opponents: by trained role, who plays each other role where that role alone is played: a
            baseline's name, or the weights that speak.
        start: the weights to begin with, or `None`.
        rollouts: those of a run that it imitates, or prefers some of; `None` for no run's.
    """

    opponents: Mapping[str, Mapping[str, str | SavedModel]]
    start: SavedModel | None
    rollouts: SavedRollouts | None

    @classmethod
    def of(
        cls,
        config: JobConfig,
        world: World,
        codec: Codec,
        scripts: Mapping[str, str],
        baselines: Collection[str],
    ) -> "EarlierRuns":
        """Resolve what a configuration names.

        Args:
            config: of the job, with nothing left to fill in.
            world: the job's.
            codec: the job's.
            scripts: by role, the baseline that plays it unless another is named.
            baselines: names of the world's.

        Raises:
            OptionError: if one is unknown, or the rollouts cannot be learned from here.
        """
        assert config.max_tokens is not None
        own = SavedModel(codec.name, config.max_tokens, config.temperature, MODEL)
        known: dict[str, str | SavedModel] = {MODEL: own, **{name: name for name in baselines}}
        named = {**scripts, **world.spec.opponents, **config.opponents}
        players = {
            role: known.get(who) or saved_model(who, own, f"{role} must be a baseline, {MODEL!r},")
            for role, who in named.items()
        }
        return EarlierRuns(
            opponents={
                role: {other: who for other, who in players.items() if other != role}
                for role in config.trained_roles
            },
            start=saved_model(config.start, own, "--start must be") if config.start else None,
            rollouts=_saved_rollouts(config, world, codec, baselines),
        )


def _saved_rollouts(
    config: JobConfig, world: World, codec: Codec, baselines: Collection[str]
) -> SavedRollouts | None:
    (role, *others), imitated = config.trained_roles, None
    if isinstance(config, PreferenceSettings):
        run = RunFolder.open(Path(config.preferences))
    else:
        imitated = config.group(DemonstrationSettings).demonstrations
        if imitated is None or imitated in baselines:
            return None
        run = RunFolder(Path(imitated))
    if not run.exists:
        raise OptionError(
            f"--demonstrations must be a run folder or one of {sorted(baselines)}, got {imitated!r}"
        )
    if others:
        raise OptionError(
            f"--demonstrations {imitated} are of one role, and --self-play trains all"
        )
    return SavedRollouts.of_run(run, world, role, codec)
