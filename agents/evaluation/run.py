"""Running an evaluation in its folder: play what is missing, compute and write the results."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from tokengym.agents.evaluation.chat_client import PATIENCE, Patience
from tokengym.agents.evaluation.config import EvaluationConfig
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.play_missing import PolicyRollouts, Progress
from tokengym.agents.evaluation.policies import resolve_policy
from tokengym.agents.evaluation.results import (
    PolicyResult,
    Results,
    WorldResult,
    policy_result,
)
from tokengym.agents.evaluation.rollout_table import Returns, RolloutTable
from tokengym.agents.evaluation.worlds import EvaluatedWorld
from tokengym.agents.executors import IN_PROCESS, Executor
from tokengym.agents.rollouts.same_answers import require_same_answers
from tokengym.envs.core.errors import OptionError


def run_evaluation(
    config: EvaluationConfig,
    folder: EvaluationFolder,
    concurrency: int = 16,
    progress: Progress = lambda what, done, total: None,
    patience: Patience = PATIENCE,
    executor: Executor = IN_PROCESS,
    again: bool = False,
) -> Results:
    """Play the missing rollouts, then write and return the results.

    All names are resolved before anything is played.

    Args:
        config: what is asked.
        folder: of the evaluation; rollouts in it are not played again. An evaluation that fits
            them goes on from there: more Tasks, rollouts or policies, or other prices.
        concurrency: most requests to an endpoint at once.
        progress: shows how it goes.
        patience: how long endpoints may take, and how often they may fail.
        executor: draws Tasks, and plays scripts and endpoints, in shards; models are sampled by a
            service, for this process.
        again: whether to play Tasks again whose answers have changed.

    Raises:
        UnknownWorldError, OptionError, ModelError: if the folder holds another evaluation, or a
            world, a policy, a role or an opponent is unknown or cannot be had, or answers in it
            have changed.
        EndpointError: if an endpoint fails for good. What was played is kept.
    """
    folder.rollouts.gather()
    goes_on = folder.exists and folder.config() == config
    if folder.exists and not folder.fits(config):
        raise OptionError(
            f"{folder.folder} holds rollouts of another evaluation; name another folder with "
            "--out, or give the same arguments again"
        )
    worlds = [EvaluatedWorld.resolve(place, config, executor) for place in config.worlds]
    for world, name in () if again else product(worlds, config.policies):
        saved = folder.rollouts.read(folder.segment(world.place, name, config))
        mend = "--again plays these Tasks again, or name another folder with --out"
        require_same_answers(saved, str(folder.folder), mend, world.world)
    each = replace(patience, rate=patience.rate and patience.rate / executor.workers)
    policies = [resolve_policy(name, config, worlds, concurrency, each) for name in config.policies]
    if not goes_on:
        folder.write(config, worlds, None)
    for policy in policies:
        rollouts = PolicyRollouts(policy.name, config, folder, progress, patience, executor)
        policy.play(worlds, rollouts)
    results = results_of(config, folder, worlds)
    folder.write(config, worlds, results)
    return results


def results_of(
    config: EvaluationConfig, folder: EvaluationFolder, worlds: Sequence[EvaluatedWorld]
) -> Results:
    """Compute the results from the saved rollouts."""
    results: list[PolicyResult] = []
    returns: list[Returns] = []
    for world in worlds:
        for policy in config.policies:
            records = folder.rollouts.read(folder.segment(world.place, policy, config))
            kept = (record for record in records if record.origin.group < len(world.tasks))
            table = RolloutTable.read(kept, world.world.spec.violation)
            returns.append(table.returns(config.rollouts))
            results.append(policy_result(table, world, config))
    return Results.of([WorldResult.of(world) for world in worlds], results, returns)
