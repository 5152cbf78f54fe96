"""A run's rollouts in tokens, for demonstrations and preferences."""

from pathlib import Path

from tokengym.agents.rollouts import RolloutRecord
from tokengym.agents.tinker.scripted_rollout import TurnTokens
from tokengym.agents.training.opponents import codec_of
from tokengym.agents.training.run import Run
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.seeding import generator
from tokengym.envs.tokens.codec import Codec, Message


def training_rollouts(
    folder: Path, world: str, level: str, role: str, codec: Codec
) -> list[RolloutRecord]:
    """Return the training rollouts that a run kept of a role, in the order of its steps.

    Rollouts of evaluations are left out: their Tasks are held out.

    Args:
        folder: the run's.
        world: id of the world.
        level: its level.
        role: whose rollouts.
        codec: by which they must have been read and written.

    Raises:
        OptionError: if the folder holds no run, or one of another codec.
    """
    run = Run.open(folder)
    found = codec_of(run.config)
    if found != codec.name:
        raise OptionError(
            f"learning from rollouts needs them in this model's tokens: the run in {folder} reads "
            f"and writes by {found}, this job by {codec.name}"
        )
    return [
        record
        for record in run.rollouts.read()
        if record.origin.kind == "train"
        and (record.world, record.level, record.role) == (world, level, role)
    ]


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


def numbers_of_step(count: int, size: int, step: int, seed: int) -> list[int]:
    """Return which of `count` examples a step of `size` takes.

    All are taken once, in an order of the seed's, before any is taken again.
    """
    places = [divmod(n, count) for n in range(step * size, (step + 1) * size)]
    orders = {
        epoch: generator("recorded", seed, epoch).permutation(count) for epoch in dict(places)
    }
    return [int(orders[epoch][place]) for epoch, place in places]
