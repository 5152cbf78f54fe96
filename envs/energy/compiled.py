"""Compiled Tasks: the plant of a Task, its texts, and the reference values of its score."""

from dataclasses import dataclass

from tokengym.envs.core.task import Task
from tokengym.envs.energy.credit import CostToGo
from tokengym.envs.energy.plants import Plant, plant_from
from tokengym.envs.energy.prompt import EnergyPrompt
from tokengym.envs.energy.site import OffGridSite
from tokengym.envs.energy.step_result import Commands
from tokengym.rewards.control import FLOOR, affine_score
from tokengym.rewards.form import FORM_SHARE


@dataclass(frozen=True, slots=True)
class CompiledEnergyTask:
    """A Task as episodes play and score it.

    Attributes:
        plant: the plant with all that will happen to it.
        prompt: its texts.
        optimum: money of the cheapest safe plan.
        scale: money per unit of the score, fixed by what the first Turn shows.
        plan: commands of the cheapest safe plan by step.
        values: the cost-to-go, if steps are credited.
    """

    plant: Plant
    prompt: EnergyPrompt
    optimum: float
    scale: float
    plan: tuple[Commands, ...]
    values: CostToGo | None

    def cost_of_form(self, well_formed: float, form: float) -> float:
        """Return the cost of a malformed reply, or of one cut off, in an optimal episode, in money.

        Args:
            well_formed: 1 if it was cut off after a command, else 0.
            form: what the reply earns of a well-formed one's form, in [0, 0.9].
        """
        kept = (1.0 - FORM_SHARE) * well_formed + FORM_SHARE * form
        lost = (1.0 - kept) / self.plant.steps
        # By how much a unit of the score raises the value of a safe episode.
        slope = (1.0 - FLOOR) * (affine_score(1.0) - affine_score(0.0))
        return lost * self.scale / slope


def compile_task(task: Task, prompt: str, credit: bool) -> CompiledEnergyTask:
    """Compile a Task; `credit` adds the cost-to-go.

    Raises:
        TaskError, LookupError, TypeError, ValueError: if the Task is damaged.
        OptionError: if the plant has no convex cost-to-go for `credit`.
    """
    plant = plant_from(task.instance)
    return CompiledEnergyTask(
        plant=plant,
        prompt=EnergyPrompt(plant, prompt),
        optimum=float(task.answer["optimum"]),
        scale=float(task.answer["scale"]),
        plan=tuple(tuple(command) for command in task.answer["plan"]),
        values=None if isinstance(plant, OffGridSite) or not credit else CostToGo(plant),
    )
