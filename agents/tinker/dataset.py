"""TaskDataset and its builder: Tasks in batches of groups, as datasets of tinker-cookbook."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache
from typing import Any

import chz
from tinker_cookbook.rl.types import RLDataset, RLDatasetBuilder

from tokengym.agents.tinker.codec import as_codec, codec_name, recommended_renderer
from tokengym.agents.tinker.groups import TaskGroupBuilder
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World
from tokengym.envs.registry import make_world, spec

TASKS_A_SEED = 1_000_000
"""Distance between the first Tasks of two seeds in a row."""


def number_in_epochs(position: int, count: int, seed: int) -> int:
    """Return which of `count` examples comes at a position of an order without end.

    All come once, in an order of the seed's and the epoch's own, before any comes again.
    """
    epoch, place = divmod(position, count)
    return _order_of_epoch(count, seed, epoch)[place]


@lru_cache(maxsize=16)
def _order_of_epoch(count: int, seed: int, epoch: int) -> list[int]:
    order: list[int] = generator("recorded", seed, epoch).permutation(count).tolist()
    return order


class TaskRange(Sequence[Task]):
    """Tasks of a split in the order of training, each drawn on demand: that may run a solver.

    Tasks that a world makes up come in the order of their indices. A split of a user's own data is
    finite: every epoch goes through all of it in another order, see `number_in_epochs`.

    Args:
        world: draws the Tasks.
        split: `train`, `validation` or `test`.
        count: number of Tasks.
        first: index of the first Task in the split. Of a user's own data, whole multiples of
            `TASKS_A_SEED` are the seed of the order, and the rest is the place in it.
    """

    def __init__(self, world: World, split: str, count: int, first: int = 0) -> None:
        self._world = world
        self._split = split
        self._count = count
        self._first = first

    def __len__(self) -> int:
        """Return the number of Tasks."""
        return self._count

    def __getitem__(self, index: Any) -> Any:
        """Draw one Task, or several."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._count))]
        position = self._first + range(self._count)[index]
        if size := self._world.size(self._split):
            seed, start = divmod(self._first, TASKS_A_SEED)
            position = number_in_epochs(position - self._first + start, size, seed)
        return self._world.task(self._split, position)


class TaskDataset(RLDataset):
    """Batch `i` holds the groups of Tasks `i * n` to `(i + 1) * n - 1`; the last may hold fewer.

    A batch is the same every time.

    Args:
        tasks: the Tasks, in order; may be lazy, as only those of the requested batch are read.
        groups_per_batch: groups in a batch, `n` above, at least 1.
        group: everything about a group but its Task.
        prefetch: draw the Tasks of the next batch in a thread while one is played.

    Raises:
        OptionError: if there is no Task or no group to a batch.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        groups_per_batch: int,
        group: TaskGroupBuilder,
        *,
        prefetch: bool = False,
    ) -> None:
        if groups_per_batch < 1 or not len(tasks):
            raise OptionError(
                f"a dataset needs Tasks and at least one group per batch, got {len(tasks)} Tasks "
                f"and groups_per_batch={groups_per_batch}"
            )
        self._tasks = tasks
        self._groups_per_batch = groups_per_batch
        self._group = group
        self._drawer = ThreadPoolExecutor(1, "draw-tasks") if prefetch else None
        self._ahead: tuple[int, Future[list[Task]]] | None = None

    def __len__(self) -> int:
        """Return the number of batches."""
        return -(-len(self._tasks) // self._groups_per_batch)

    def get_batch(self, index: int) -> Sequence[TaskGroupBuilder]:
        """Return the groups of batch `index`.

        Raises:
            IndexError: if there is no such batch.
        """
        if not 0 <= index < len(self):
            raise IndexError(f"batches are 0 to {len(self) - 1}, got {index}")
        start = index * self._groups_per_batch
        tasks = self._draw(index)
        return [
            replace(self._group, task=task, groups_in_batch=len(tasks), number=start + place)
            for place, task in enumerate(tasks)
        ]

    def _draw(self, index: int) -> list[Task]:
        """Return the Tasks of a batch and start drawing the next ones, which may run a solver."""
        ahead, self._ahead = self._ahead, None
        ready = ahead is not None and ahead[0] == index
        tasks = ahead[1].result() if ahead is not None and ready else self._drawn(index)
        if self._drawer is not None and index + 1 < len(self):
            self._ahead = index + 1, self._drawer.submit(self._drawn, index + 1)
        return tasks

    def _drawn(self, index: int) -> list[Task]:
        start = index * self._groups_per_batch
        return list(self._tasks[start : start + self._groups_per_batch])


@chz.chz
class TaskDatasetBuilder(RLDatasetBuilder):
    """Configuration of a training set and a test set of Tasks.

    The codec is named by `codec`, or by `model_name_for_tokenizer` (a name or a directory) and
    `renderer_name` (the cookbook's recommendation for the model if `None`).
    """

    world: str = chz.field(doc="Id or short name of the world, such as `forecast`.")
    level: str | None = chz.field(default=None, doc="Level; the world's first if `None`.")
    options: dict[str, Any] = chz.field(
        default_factory=dict,
        doc="Keyword options of the world, `data` files included. Those that the world declares "
        "for training hold on the train split unless they are named here.",
    )
    split: str = chz.field(default="train", doc="Split the training Tasks are drawn from.")
    first_task: int = chz.field(
        default=0,
        doc="Index of the first training Task; a million further are other Tasks, or your own data "
        "in another order.",
    )
    n_batches: int = chz.field(default=100, doc="Batches in the training set.")
    groups_per_batch: int = chz.field(default=16, doc="Groups (Tasks) in a batch.")
    group_size: int = chz.field(default=8, doc="Rollouts of one Task in training.")
    test_size: int = chz.field(default=0, doc="Test Tasks, each played once; no test set if 0.")
    codec: str | None = chz.field(default=None, doc="Name of the codec, see `codec_named`.")
    model_name_for_tokenizer: str | None = chz.field(
        default=None, doc="Model whose tokenizer is used: a name or a directory."
    )
    renderer_name: str | None = chz.field(default=None, doc="The cookbook's name of a renderer.")
    keep_thinking: bool = chz.field(
        default=False, doc="Keep thinking in history where the renderer would strip it."
    )
    role: str | None = chz.field(default=None, doc="Trained role; the first if `None`.")
    self_play: bool = chz.field(
        default=False, doc="Train every role without an opponent, all on one policy."
    )
    opponents: dict[str, Any] = chz.field(
        default_factory=dict,
        doc="By role a baseline's name or an `Opponent`; if not given, the world's usual opponent.",
    )
    max_trajectory_tokens: int | None = chz.field(
        default=None, doc="Budget of an episode's observations and replies together."
    )
    max_turn_tokens: int | None = chz.field(default=None, doc="Longest reply.")

    prefetch: bool = chz.field(
        default=False, doc="Draw the Tasks of the next batch in a thread while one is played."
    )

    def codec_name(self) -> str:
        """Return the name of the codec.

        Raises:
            OptionError: if it is named twice or not at all, or the model's renderer is unknown.
        """
        model = self.model_name_for_tokenizer
        if (self.codec is None) == (model is None):
            raise OptionError(
                f"name either a codec or a model for its tokenizer, got codec={self.codec!r} and "
                f"model_name_for_tokenizer={model!r}"
            )
        if self.codec is not None:
            return self.codec
        renderer = self.renderer_name or recommended_renderer(str(model))
        if renderer is None:
            raise OptionError(f"the cookbook lists no {model!r}: name its renderer_name")
        return codec_name(renderer, str(model), keep_thinking=self.keep_thinking)

    async def __call__(self) -> tuple[TaskDataset, TaskDataset | None]:
        """Build the training set and the test set.

        Raises:
            UnknownWorldError: if there is no such world.
            OptionError: if a level, option, split, size or codec is invalid, or `self_play` is
                combined with `role`.
        """
        world = make_world(self.world, self.level, **self.options)
        # Loaded here, so that a wrong name fails before training and not in a worker.
        codec = as_codec(self.codec_name()).name
        count = self.n_batches * self.groups_per_batch
        tasks = TaskRange(world, self.split, count, self.first_task)
        training = TaskDataset(
            tasks,
            self.groups_per_batch,
            self._group(codec, tasks, self.group_size),
            prefetch=self.prefetch,
        )
        if self.test_size == 0:
            return training, None
        held_out = world.first_tasks("test", self.test_size)
        return training, TaskDataset(held_out, self.test_size, self._group(codec, held_out, 1))

    def _group(self, codec: str, tasks: Sequence[Task], size: int) -> TaskGroupBuilder:
        if not tasks:
            raise OptionError("a set needs at least one batch of at least one group, got no Task")
        return TaskGroupBuilder(
            tasks[0],
            codec,
            size,
            options=dict(self.options),
            role=self._trained_roles(),
            opponents=dict(self.opponents),
            max_trajectory_tokens=self.max_trajectory_tokens,
            max_turn_tokens=self.max_turn_tokens,
        )

    def _trained_roles(self) -> str | tuple[str, ...] | None:
        if not self.self_play:
            return self.role
        if self.role is not None:
            raise OptionError(f"self_play trains several roles, got role={self.role!r}")
        return tuple(role for role in spec(self.world).roles if role not in self.opponents)
