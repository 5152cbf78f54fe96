"""Compiled Tasks: the plant of a Task, its texts, and what an episode on it is scored against."""

from dataclasses import dataclass

from tokengym.envs.core.task import Task
from tokengym.envs.energy.credit import Values
from tokengym.envs.energy.outcome import Commands
from tokengym.envs.energy.plants import Plant, plant_from
from tokengym.envs.energy.prompt import conditions, opening


@dataclass(frozen=True, slots=True)
class CompiledTask:
    """A Task as episodes play and score it.

    Attributes:
        plant: the plant with all that will happen to it.
        opening: the text of the first Turn, without the conditions of its step.
        conditions: by step, the texts before and after the state.
        optimum: money of the cheapest safe plan.
        reference: money of the safe hold.
        plan: commands of the cheapest safe plan by step.
        values: the cost-to-go, if steps are credited.
    """

    plant: Plant
    opening: str
    conditions: tuple[tuple[str, str], ...]
    optimum: float
    reference: float
    plan: tuple[Commands, ...]
    values: Values | None


def compile_task(task: Task, credit: bool) -> CompiledTask:
    """Compile a Task; `credit` adds the cost-to-go.

    Raises:
        TaskError, LookupError, TypeError, ValueError: if the Task is damaged.
        OptionError: if the plant has no convex cost-to-go for `credit`.
    """
    plant = plant_from(task.instance)
    return CompiledTask(
        plant=plant,
        opening=opening(plant),
        conditions=conditions(plant),
        optimum=float(task.answer["optimum"]),
        reference=float(task.answer["reference"]),
        plan=tuple(tuple(command) for command in task.answer["plan"]),
        values=Values(plant) if credit else None,
    )
