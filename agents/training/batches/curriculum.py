"""A curriculum: easier levels first, each until the policy's measured skill is enough."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tinker_cookbook.rl.types import EnvGroupBuilder, RLDataset

from tokengym.agents.scale.level_scale import Ends
from tokengym.agents.training.folder.monitor import StepRow
from tokengym.envs.core.task import Task

STAGE, SKILL = "curriculum/stage", "curriculum/skill"
"""Metrics of a step: its place in the curriculum, and the skill of its rollouts."""

_WINDOW = 3
"""Steps over which skill is averaged: one step's rollouts are few."""


@dataclass(frozen=True)
class Stage:
    """One level of a curriculum.

    Attributes:
        level: name of the level.
        dataset: its groups.
        scale: the ends that its skill is measured from.
    """

    level: str
    dataset: RLDataset
    scale: Ends


@dataclass(frozen=True)
class Curriculum(RLDataset):
    """Batches of the first stage that the policy has not passed.

    A stage is passed once the mean skill of three steps in a row reaches the bar; the last one
    never is. The place is worked out from the logged steps alone, so a resumed run finds it again.

    Attributes:
        stages: easiest first.
        rows: returns the completed steps.
        bar: skill that passes a stage.
    """

    stages: Sequence[Stage]
    rows: Callable[[], Sequence[StepRow]]
    bar: float

    def __len__(self) -> int:
        """Return the number of batches."""
        return len(self.stages[-1].dataset)

    def get_batch(self, index: int) -> Sequence[EnvGroupBuilder]:
        """Return the groups of step `index`."""
        return self.stages[self._place(index)].dataset.get_batch(index)

    def measure(self, step: int, played: Sequence[tuple[Task, float]]) -> dict[str, float]:
        """Return the metrics of a step.

        Args:
            step: the step.
            played: its Tasks, each with the mean of what its group earned, see `Ends`.
        """
        place = self._place(step)
        mean_return = statistics.fmean(returned for _, returned in played)
        return {STAGE: float(place), SKILL: self.stages[place].scale.skill(mean_return)}

    def _place(self, step: int) -> int:
        """Return the stage of a step from the logged steps before it."""
        place, window = 0, list[float]()
        for row in self.rows():
            if row.step >= step or row.metrics.get(STAGE) != place:
                continue
            window = [*window, row.metrics[SKILL]][-_WINDOW:]
            passed = len(window) == _WINDOW and statistics.fmean(window) >= self.bar
            if passed and place + 1 < len(self.stages):
                place, window = place + 1, []
        return place
