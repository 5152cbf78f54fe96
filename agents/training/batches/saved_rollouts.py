"""What an earlier run's rollouts teach, in tokens: demonstrations and preferences."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tokengym.agents.rollouts import RolloutRecord, best_of_groups, preferred
from tokengym.agents.tinker.scripted_rollout import TurnTokens
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.opponents import codec_of
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.world import World
from tokengym.envs.tokens.codec import Codec, Message


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
    def of_run(cls, folder: Path, world: World, role: str, codec: Codec) -> "SavedRollouts":
        """Read the rollouts of a run.

        Args:
            folder: the run's.
            world: the world at its level.
            role: whose rollouts.
            codec: by which they must have been read and written.

        Raises:
            OptionError: if the folder holds no run, or one of another codec.
        """
        run = RunFolder.open(folder)
        written = codec_of(run.config)
        if written != codec.name:
            raise OptionError(
                f"learning from rollouts needs them in this model's tokens: the run in {folder} "
                f"reads and writes by {written}, this job by {codec.name}"
            )
        place = (world.spec.id, world.level, role)
        records = [
            record
            for record in run.rollouts.read()
            if record.origin.kind == "train" and (record.world, record.level, record.role) == place
        ]
        described = (
            f"the run in {folder} kept {len(records)} training rollouts of the {role} at level "
            f"{world.level!r} of {world.spec.id}"
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
            raise OptionError(
                f"{self.described}, and none well-formed with a return of at least {least}"
            )
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
            better, worse = (recorded_turns(one, self.codec)[pair.reply] for one in rollouts)
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


def numbers_of_step(count: int, size: int, step: int, seed: int) -> list[int]:
    """Return which of `count` examples a step of `size` takes.

    All are taken once, in an order of the seed's, before any is taken again.
    """
    places = [divmod(n, count) for n in range(step * size, (step + 1) * size)]
    orders = {
        epoch: generator("recorded", seed, epoch).permutation(count) for epoch in dict(places)
    }
    return [int(orders[epoch][place]) for epoch, place in places]
