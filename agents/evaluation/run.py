"""Running an evaluation in its folder: play what is missing, compute and write the results."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

from tokengym.agents.evaluation.config import EvaluationConfig
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.plan import EvaluationPlan
from tokengym.agents.evaluation.play_missing import PolicyRollouts
from tokengym.agents.evaluation.policies import resolve_policy
from tokengym.agents.evaluation.results import (
    PolicyResult,
    PolicyReturns,
    Results,
    compared,
    policy_result,
)
from tokengym.agents.evaluation.rollout_table import RolloutTable
from tokengym.agents.evaluation.worlds import EvaluatedWorld
from tokengym.agents.execution.executors import IN_PROCESS, Executor
from tokengym.agents.execution.folder_lock import locked
from tokengym.agents.reports.progress import StageProgress, unseen
from tokengym.agents.rollouts.same_answers import require_same_answers
from tokengym.envs.core.errors import OptionError


@dataclass(frozen=True)
class Evaluation:
    """An evaluation, its names resolved, in the folder that keeps it.

    Attributes:
        plan: what is played and counted.
        folder: keeps it.
        worlds: the settings of the plan.
    """

    plan: EvaluationPlan
    folder: EvaluationFolder
    worlds: Sequence[EvaluatedWorld]

    @classmethod
    def resolve(
        cls, plan: EvaluationPlan, folder: EvaluationFolder, executor: Executor = IN_PROCESS
    ) -> "Evaluation":
        """Make the worlds of a plan, for a folder that fits it or is empty.

        Raises:
            UnknownWorldError, OptionError: if a world or an option is unknown, or the folder holds
                another evaluation.
        """
        if folder.exists and not folder.fits(plan):
            raise OptionError(
                f"{folder.folder} holds rollouts of another evaluation; name another folder with "
                "--out, or give the same arguments again"
            )
        worlds = [EvaluatedWorld.resolve(place, plan.seed, executor) for place in plan.places]
        return cls(plan, folder, worlds)

    def refuse_changed_answers(self) -> None:
        """Refuse saved rollouts that were paid by other answers than their Tasks have now.

        Raises:
            OptionError: see `tokengym.agents.rollouts.same_answers`.
        """
        for world, policy in product(self.worlds, self.plan.policies):
            saved = self.folder.records(self.plan, world.place, policy)
            mend = "--again plays these Tasks again, or name another folder with --out"
            require_same_answers(saved, str(self.folder.folder), mend, world.world)

    def begin(self) -> None:
        """Write the plan, unless the folder holds it already."""
        if not (self.folder.exists and self.folder.saved().plan == self.plan):
            self.folder.write(self.plan, self.worlds)

    def write_results(self) -> Results:
        """Compute the results from the saved rollouts, and write them."""
        results = self.results()
        self.folder.write(self.plan, self.worlds, results)
        return results

    def results(self) -> Results:
        """Compute the results from the saved rollouts."""
        plan, rows, played = self.plan, list[PolicyResult](), list[PolicyReturns]()
        for title, world in zip(plan.titles, self.worlds, strict=True):
            for policy in plan.policies:
                records = self.folder.records(plan, world.place, policy)
                played_in = world.first(plan.first_tasks.get(policy))
                kept = (record for record in records if record.origin.group < len(played_in.tasks))
                table = RolloutTable.read(kept, world.world.spec.violation)
                rows.append(policy_result(table, played_in, title, policy, plan))
                played.append(
                    PolicyReturns(title, world.place, policy, table.returns(plan.rollouts))
                )
        return Results(tuple(rows), tuple(compared(combinations(played, 2))))


def run_evaluation(
    config: EvaluationConfig,
    folder: EvaluationFolder,
    progress: StageProgress = unseen,
    executor: Executor = IN_PROCESS,
) -> Results:
    """Play the missing rollouts, then write and return the results.

    All names are resolved before anything is played.

    Args:
        config: what is asked.
        folder: of the evaluation; rollouts in it are not played again. An evaluation that fits
            them goes on from there: more Tasks, rollouts or policies, or other prices.
        progress: shows how it goes.
        executor: draws Tasks, and plays scripts, in shards.

    Raises:
        UnknownWorldError, OptionError, ModelError: if the folder holds another evaluation, or a
            world, a policy, a role or an opponent is unknown or cannot be had, answers in it have
            changed, or another process plays it.
        EndpointError: if an endpoint fails for good. Finished rollouts are kept.
    """
    evaluation = Evaluation.resolve(config.plan, folder, executor)
    if not config.again:
        evaluation.refuse_changed_answers()
    plan, worlds = evaluation.plan, evaluation.worlds
    policies = [resolve_policy(name, plan, worlds, config) for name in plan.policies]
    # Two at once would seal one segment twice, and read what the other moves away.
    with locked(folder.folder / "evaluation.lock", "played"):
        evaluation.begin()
        for policy in policies:
            of = policy.name, plan, folder.rollouts, progress
            policy.play(worlds, PolicyRollouts(*of, config.max_failures, executor))
        return evaluation.write_results()
