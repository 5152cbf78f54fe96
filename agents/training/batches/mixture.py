"""Several worlds in one run: every batch mixes their groups, in fixed shares."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tinker_cookbook.rl.types import EnvGroupBuilder, RLDataset

from tokengym.agents.tinker.groups import TaskGroupBuilder
from tokengym.envs.core.seeding import generator


@dataclass(frozen=True)
class WorldMixture(RLDataset):
    """Batches of groups of several worlds; a group is of one world.

    A group's world is drawn, its number names its Task: no Task repeats, and more steps leave the
    earlier ones as they are.

    Attributes:
        sources: of each world one group for each group of the run.
        shares: of the worlds among the groups; they sum to 1.
        groups_per_batch: groups of a batch.
        seed: of the order in which worlds come.
    """

    sources: Sequence[RLDataset]
    shares: Sequence[float]
    groups_per_batch: int
    seed: int

    def __len__(self) -> int:
        """Return the number of batches."""
        return len(self.sources[0]) // self.groups_per_batch

    def get_batch(self, index: int) -> Sequence[EnvGroupBuilder]:
        """Return the groups of step `index`."""
        count, first = self.groups_per_batch, index * self.groups_per_batch
        rng = generator("mixture", self.seed, index)
        drawn = rng.choice(len(self.sources), size=count, p=self.shares).tolist()
        groups = [self.sources[n].get_batch(first + at)[0] for at, n in enumerate(drawn)]
        return [
            replace(group, groups_in_batch=count, number=first + at)
            for at, group in enumerate(groups)
            if isinstance(group, TaskGroupBuilder)
        ]
