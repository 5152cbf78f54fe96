"""OpenEnv's Task API over a world: the splits and Tasks that `reset` takes."""

from collections.abc import Mapping
from typing import Any

from tokengym.envs.adapters.config import task_count
from tokengym.envs.core.seeding import SPLITS
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World

_LISTED = 100
"""Most Tasks that one answer lists: where Tasks are drawn there is no end of them."""


def place(task: Task) -> dict[str, Any]:
    """Return where a Task is found."""
    return {"world": task.world, "level": task.level, "split": task.split, "index": task.index}


class WorldTasks:
    """OpenEnv's `TaskProvider` over a world; base of an OpenEnv environment."""

    _world: World

    def list_splits(self) -> list[str]:
        """The splits, which share no problem."""
        return list(SPLITS)

    def num_tasks(self, split: str) -> int:
        """Number of Tasks of a split; 2³¹ where they are drawn and never run out."""
        return task_count(self._world, split)

    def list_tasks(self, split: str) -> list[Mapping[str, Any]]:
        """The first Tasks of a split, 100 at most."""
        return self.get_task_range(split)

    def get_task_range(
        self, split: str, start: int | None = None, stop: int | None = None
    ) -> list[Mapping[str, Any]]:
        """Where each Task of a range is found, at most 100: what `reset` takes."""
        found = range(self.num_tasks(split))[start:stop][:_LISTED]
        return [{"split": split, "index": index} for index in found]

    def get_task(self, split: str, index: int) -> Mapping[str, Any]:
        """One Task: where it is found, and as `id` the fingerprint that observations show."""
        if not 0 <= index < self.num_tasks(split):
            raise IndexError(f"{split!r} has no Task {index}")
        task = self._world.task(split, index)
        return {"id": task.fingerprint, **place(task)}
