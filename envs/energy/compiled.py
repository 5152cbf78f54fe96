"""Compiled Tasks: the plant of a Task, its texts, and what an episode on it is scored against."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.task import Task
from tokengym.envs.energy.credit import Values
from tokengym.envs.energy.house import House
from tokengym.envs.energy.microgrid import Microgrid
from tokengym.envs.energy.plant import Commands
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

    plant: Microgrid | House
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


def plant_from(instance: Mapping[str, Any]) -> Microgrid | House:
    """Build the plant that an instance describes.

    Raises:
        TaskError: if its series differ in length or a parameter is no number.
        KeyError, TypeError: if a field is missing or unknown.
    """
    kind = House if "cop" in instance else Microgrid
    fields = {name: _frozen(value) for name, value in instance.items() if name != "source"}
    lengths = {name: len(fields[name]) for name in kind.SERIES}
    if len(set(lengths.values())) != 1:
        raise TaskError(f"damaged plant: its series must have equal lengths, got {lengths}")
    plant = kind(**fields)
    for parameter in dataclasses.fields(kind):
        value = getattr(plant, parameter.name)
        if parameter.type in (int, float) and not isinstance(value, int | float):
            raise TaskError(f"damaged plant: {parameter.name} must be a number, got {value!r}")
    return plant


def _frozen(value: Any) -> Any:
    """Turn lists, nested ones too, into tuples."""
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
