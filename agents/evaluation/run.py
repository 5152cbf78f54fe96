"""Running an evaluation in its folder: play what is missing, compute and write the results."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tokengym.agents.evaluation.config import EvaluationConfig
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.play_missing import PolicyRollouts, Progress
from tokengym.agents.evaluation.policies import resolve_policy
from tokengym.agents.evaluation.results import PolicyResult, Results, policy_result, returns_of
from tokengym.agents.evaluation.worlds import EvaluatedWorld
from tokengym.envs.core.errors import OptionError


def run_evaluation(
    config: EvaluationConfig,
    folder: EvaluationFolder,
    concurrency: int = 16,
    progress: Progress = lambda what, done, total: None,
) -> Results:
    """Play the missing rollouts, then write and return the results.

    All names are resolved before anything is played.

    Args:
        config: what is asked.
        folder: of the evaluation; rollouts in it are not played again.
        concurrency: most requests to an endpoint at once.
        progress: shows how it goes.

    Raises:
        UnknownWorldError, OptionError, ModelError: if the folder holds another evaluation, or a
            world, a policy, a role or an opponent is unknown or cannot be had.
        EndpointError: if an endpoint fails for good. What was played is kept.
    """
    if folder.exists and folder.config() != config:
        raise OptionError(
            f"{folder.folder} holds another evaluation; name another folder with --out, or give "
            "the same arguments again"
        )
    worlds = [EvaluatedWorld.resolve(place, config) for place in config.worlds]
    policies = [resolve_policy(name, config, worlds, concurrency) for name in config.policies]
    if not folder.exists:
        folder.write(config, worlds, None)
    for policy in policies:
        policy.play(worlds, PolicyRollouts(policy.name, config, folder, progress))
    results = results_of(config, folder, worlds)
    folder.write(config, worlds, results)
    return results


def results_of(
    config: EvaluationConfig, folder: EvaluationFolder, worlds: Sequence[EvaluatedWorld]
) -> Results:
    """Compute the results from the saved rollouts."""
    results: list[PolicyResult] = []
    returns: dict[int, npt.NDArray[np.float64]] = {}
    for world in worlds:
        for policy in config.policies:
            records = list(folder.rollouts.read(folder.segment(world.place, policy, config)))
            returns[len(results)] = returns_of(records, config.rollouts)
            results.append(policy_result(records, world, config))
    return Results.of(results, returns)
