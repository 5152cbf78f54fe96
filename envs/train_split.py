"""How the train split is scored: by the options that a world declares for training.

A drawn outcome is a noisy label. A world that knows the exact probabilities declares them as its
label in training (`WorldSpec.training`), and whatever trains asks here: the command, the cookbook's
builders and, through `Rollouts`, the other trainers. Options that a user names come first.
"""

from collections.abc import Mapping
from typing import Any

from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World
from tokengym.envs.registry import make_world, spec


def training_options(world: str | WorldSpec, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a world in training: those given, and what it declares beside them.

    A user's records (`data`) have outcomes alone, so nothing is declared for them.

    Args:
        world: id or short name of the world, or its declaration.
        options: those given.

    Raises:
        UnknownWorldError: if there is no such world.
    """
    declared = spec(world).training if options.get("data") is None else {}
    return {**declared, **options}


def training_world(world: World) -> World:
    """Return the twin of a world that scores training; itself where nothing else is declared.

    A world that `make_world` did not make stays as it is: what it was asked for is not known.
    """
    given = world.made_with
    options = given if given is None else training_options(world.spec, given)
    return world if options == given else make_world(world.spec, world.level, **options or {})


def score_in_training(world: World, training: World, task: Task) -> tuple[World, Task]:
    """Return the world that plays a Task, and the Task as that world scores it.

    Args:
        world: the world that was asked for.
        training: its `training_world`.
        task: a Task of any split; only those of `train` are scored as training is.
    """
    if task.split != "train" or training is world:
        return world, task
    adopted = training.adopt(task) if world.adopt(task) == task else task
    try:
        training.compile(adopted)
    except TaskError:  # A real paper among synthetic ones has no exact label.
        return world, task
    return training, adopted


def standardising_notice(world: WorldSpec, cause: str) -> str | None:
    """Return why not to standardise what a world pays; `None` where it pays no proper score.

    Args:
        world: declaration of the world that is trained on.
        cause: what divides a group's advantages by their deviation, and what to take instead.
    """
    if world.calibration is None:
        return None
    return (
        f"{world.id} pays a proper score, which is no longer proper where {cause}: trained on "
        "single outcomes, a forecaster becomes certain (arXiv:2508.11800)"
    )
