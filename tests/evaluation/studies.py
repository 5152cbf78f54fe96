"""Studies of the ties of a world that is made in a test."""

from collections.abc import Mapping, Sequence

from tokengym.agents.evaluation.plan import EvaluationPlace, EvaluationPlan
from tokengym.agents.evaluation.played_ties import tie_study
from tokengym.agents.evaluation.ties import TieStudy
from tokengym.agents.evaluation.worlds import EvaluatedWorld
from tokengym.agents.execution.executors import IN_PROCESS, Executor
from tokengym.agents.rollouts import RolloutOrigin
from tokengym.envs.core.play import PlayedEpisode, Policy, play
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World


def study_script(
    world: World,
    tasks: Sequence[Task],
    policies: Mapping[str, Policy],
    name: str,
    sizes: Sequence[int],
    executor: Executor = IN_PROCESS,
) -> TieStudy:
    """Study a policy of a world on these Tasks; `null` plays the other roles."""
    role, *others = world.spec.roles
    opponents = dict.fromkeys(others, "null")
    place = EvaluationPlace(world.spec.id, world.level, role, opponents, {}, "test", len(tasks))
    scripts = dict.fromkeys(others, policies["null"])
    origin = RolloutOrigin("evaluation", opponents=opponents, seed=0)
    played = EvaluatedWorld(place, world, tasks, scripts, policies, origin, executor)
    return tie_study(played, EvaluationPlan((place,), (name,), max(sizes)), sizes)


def play_group(
    world: World, task: Task, policies: Mapping[str, Policy] | Policy, size: int, seed: int = 0
) -> list[PlayedEpisode]:
    """Play `size` rollouts of one Task; policies draw by `seed`, rollout, Task and role alone."""
    return [play(world, task, policies, seed=(seed, member)) for member in range(size)]
