"""Which training rollouts are saved: a share of each step's groups, within a limit in bytes."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tokengym.agents.rollouts.log import RolloutLog, train_segment
from tokengym.agents.rollouts.record import RolloutOrigin, RolloutRecord

_FEWEST_GROUPS = 2
"""Groups of a step that are kept as long as there is room: replies to one Task may agree."""


@dataclass(frozen=True)
class TrainRollouts:
    """Saves the rollouts of a run's training steps.

    All groups of a step are kept, or the stated share; fewer where the bytes that are left would
    not last to the run's end, and none where there are none left.

    Attributes:
        folder: of the rollouts.
        share: share of each step's groups to keep, in [0, 1].
        most_bytes: bound of all training segments together.
        steps: steps of the run.
        origin: what all its rollouts have in common.
    """

    folder: str
    share: float
    most_bytes: int
    steps: int
    origin: RolloutOrigin

    def origins(self, step: int, groups: int) -> list[RolloutOrigin]:
        """Return the origins of those of a step's groups that are kept: the first ones.

        Args:
            step: the step.
            groups: how many groups it has.
        """
        count = self._kept_groups(step, groups)
        return [
            replace(self.origin, step=step, group=group, kept=count / groups)
            for group in range(count)
        ]

    def _kept_groups(self, step: int, groups: int) -> int:
        earlier = [one for one in self._log.segments() if one.step is not None and one.step < step]
        share = self.share
        if earlier:
            left = self.most_bytes - sum(one.size for one in earlier)
            whole = earlier[-1].size / _share_in(earlier[-1].path)
            share = min(share, left / max(self.steps - step, 1) / whole)
            if left < whole / groups:
                return 0
        return min(groups, max(_FEWEST_GROUPS, int(share * groups + 0.5))) if self.share else 0

    def write(self, step: int, records: Sequence[RolloutRecord]) -> None:
        """Append records of a step while there is room for them."""
        used = sum(one.size for one in self._log.segments() if one.step is not None)
        self._log.append(train_segment(step), records, room=self.most_bytes - used)

    def seal(self, step: int) -> None:
        """Put the rollouts of a completed step in order."""
        self._log.seal(train_segment(step))

    def discard_from(self, step: int) -> None:
        """Delete the rollouts of steps that will be repeated."""
        self._log.discard(lambda one: one.step is not None and one.step >= step)

    @property
    def _log(self) -> RolloutLog:
        return RolloutLog(Path(self.folder))


def _share_in(path: Path) -> float:
    """Return the share of a step's groups that its segment holds."""
    with path.open("rb") as file:
        return float(json.loads(file.readline())["kept"])
