"""Several worlds in one run: every batch mixes their groups, in shares that follow progress."""

import asyncio
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import chz
from tinker_cookbook.rl.interleaved import InterleavedRLDatasetBuilder
from tinker_cookbook.rl.types import EnvGroupBuilder, RLDataset

from tokengym.agents.scale.level_scale import Ends
from tokengym.agents.tinker.dataset import TaskDatasetBuilder
from tokengym.agents.tinker.groups import TaskGroupBuilder
from tokengym.agents.training.folder.monitor import MIXTURE, StepRow
from tokengym.envs.core.task import Task

PHASE = 5
"""Steps over which shares stay as they are and skill is averaged: one step's rollouts are few."""
_EVEN = 0.5
"""Part of the groups that all worlds share alike, so that none is forgotten and progress in each
keeps being measured."""
_SEEDS = 1_000_000


@dataclass(frozen=True)
class MixedSource:
    """One world of a mixture.

    Attributes:
        tag: its name in metrics.
        builder: of its groups.
        scale: the ends that its skill is measured from.
    """

    tag: str
    builder: TaskDatasetBuilder
    scale: Ends


@dataclass
class WorldMixture(RLDataset):
    """Batches of groups of several worlds, interleaved by the cookbook in blocks of five steps.

    A group is of one world. Without fixed shares a world's share of the next five steps grows with
    its learning progress, the absolute change of its mean skill from five steps to the next five
    (as in Matiisen et al. 2017, arXiv:1707.00183), less the standard error of that change: what
    chance alone explains is no progress. Half of the groups are shared alike. Shares are worked out
    from the logged steps alone, so a resumed run finds them again; the step right before is left
    out, since with `mode="async"` it is still under way.

    Attributes:
        sources: the worlds.
        rows: returns the completed steps.
        groups_per_batch: groups of a batch.
        steps: number of batches.
        relative_shares: fixed ones, or none.
        seed: of the order in which worlds and Tasks come.
    """

    sources: Sequence[MixedSource]
    rows: Callable[[], Sequence[StepRow]]
    groups_per_batch: int
    steps: int
    relative_shares: Sequence[float] = ()
    seed: int = 0
    _phase: tuple[int, RLDataset] | None = None

    def __len__(self) -> int:
        """Return the number of batches."""
        return self.steps

    def get_batch(self, index: int) -> Sequence[EnvGroupBuilder]:
        """Return the groups of step `index`; must not be called from an event loop."""
        start = index - index % PHASE
        if self._phase is None or self._phase[0] != start:
            self._phase = start, asyncio.run(self._interleaved(start))
        groups = self._phase[1].get_batch(index - start)
        first = index * self.groups_per_batch
        return [
            replace(group, groups_in_batch=len(groups), number=first + place)
            for place, group in enumerate(groups)
            if isinstance(group, TaskGroupBuilder)
        ]

    def measure(self, step: int, played: Sequence[tuple[Task, float]]) -> dict[str, float]:
        """Return the metrics of a step.

        Args:
            step: the step.
            played: its Tasks, each with the mean of what its group earned, see `Ends`.

        Returns:
            by world `mixture/TAG/share`, what it was due, and, where it had any groups, their
            `mixture/TAG/skill`.
        """
        metrics = {}
        for source, share in zip(self.sources, self.shares(step), strict=True):
            world, level = source.builder.world, source.builder.level
            returns = [
                value for task, value in played if (task.world, task.level) == (world, level)
            ]
            metrics[f"{MIXTURE}{source.tag}/share"] = share
            if returns:
                skill = source.scale.skill(statistics.fmean(returns))
                metrics[f"{MIXTURE}{source.tag}/skill"] = skill
        return metrics

    def shares(self, step: int) -> tuple[float, ...]:
        """Return the worlds' shares of the groups of a step; they sum to 1."""
        count = len(self.sources)
        even = (1.0 / count,) * count
        if self.relative_shares:
            return tuple(share / sum(self.relative_shares) for share in self.relative_shares)
        last = step - step % PHASE - 1
        rows = {row.step: row.metrics for row in self.rows()}
        recent = [rows.get(earlier, {}) for earlier in range(last - PHASE, last)]
        before = [rows.get(earlier, {}) for earlier in range(last - 2 * PHASE, last - PHASE)]
        names = [f"{MIXTURE}{source.tag}/skill" for source in self.sources]
        progress = [
            _progress(*([row[name] for row in part if name in row] for part in (before, recent)))
            for name in names
        ]
        total = sum(progress)
        if not total:
            return even
        return tuple(_EVEN / count + (1.0 - _EVEN) * part / total for part in progress)

    async def _interleaved(self, start: int) -> RLDataset:
        """Return the batches of the five steps from `start`, of Tasks no other steps have."""
        groups = PHASE * self.groups_per_batch
        builder = InterleavedRLDatasetBuilder(
            sources=[
                chz.replace(
                    source.builder,
                    first_task=source.builder.first_task + start * self.groups_per_batch,
                    n_batches=groups,
                    groups_per_batch=1,
                    prefetch=False,
                )
                for source in self.sources
            ],
            weights=list(self.shares(start)),
            groups_per_batch=self.groups_per_batch,
            total_batches=PHASE,
            seed=self.seed * _SEEDS + start,
        )
        return (await builder())[0]


def _progress(before: Sequence[float], recent: Sequence[float]) -> float:
    """Return how much more a mean has changed than its standard error; 0 if unknown."""
    if min(len(before), len(recent)) < 2:
        return 0.0
    change = abs(statistics.fmean(recent) - statistics.fmean(before))
    error = math.sqrt(sum(statistics.variance(part) / len(part) for part in (before, recent)))
    return max(0.0, change - error)
