"""Running an evaluation in its folder: play what is missing, compute and write the results."""

import asyncio
import importlib.util
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tokengym.agents.evaluation.config import EvaluationConfig, WorldLevel
from tokengym.agents.evaluation.endpoint import (
    PREFIX,
    EndpointName,
    EndpointPlayer,
    connect,
    require_endpoint,
)
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.players import Player, ScriptedPlayer
from tokengym.agents.evaluation.results import PolicyResult, Results, policy_result, returns_of
from tokengym.agents.evaluation.rollouts import play_all_of
from tokengym.agents.evaluation.yardstick import yardstick_on
from tokengym.agents.event_loop import run_async
from tokengym.agents.rollouts import Origin
from tokengym.agents.training.setting_groups import TOY_MODEL
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.rollout import Policy
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines, make_world, spec
from tokengym.rewards.skill import Yardstick

ENDPOINT_TOKENS = 1024
"""Most tokens of an endpoint's reply, unless asked otherwise."""

Progress = Callable[[str, int, int], None]
"""Is given what is played, how many rollouts are on record, and how many there will be."""


@dataclass(frozen=True)
class _Setting:
    """A world with everything that all its policies share."""

    world: World
    tasks: Sequence[Task]
    role: str
    scripts: Mapping[str, Policy]
    yardstick: Yardstick


def run_evaluation(
    config: EvaluationConfig,
    folder: EvaluationFolder,
    concurrency: int = 16,
    progress: Progress = lambda what, done, total: None,
) -> Results:
    """Play the missing rollouts, then write and return the results.

    Args:
        config: what is asked.
        folder: of the evaluation; rollouts in it are not played again.
        concurrency: most requests to an endpoint at once.
        progress: shows how it goes.

    Raises:
        OptionError: if the folder holds another evaluation, or a policy is unknown.
        EndpointError: if an endpoint fails for good. What was played is kept.
    """
    if folder.exists and folder.config() != config:
        raise OptionError(
            f"{folder.folder} holds another evaluation; name another folder with --out, or give "
            "the same arguments again"
        )
    for policy in config.policies:
        _check(policy, config)
    settings = {world: _setting(world, config) for world in config.worlds}
    tasks = {world: setting.tasks for world, setting in settings.items()}
    yardsticks = {world: setting.yardstick for world, setting in settings.items()}
    if not folder.exists:
        folder.write(config, tasks, yardsticks, None)
    for policy in config.policies:
        _play(policy, config, settings, folder, concurrency, progress)
    results = results_of(config, folder, tasks, yardsticks)
    folder.write(config, tasks, yardsticks, results)
    return results


def results_of(
    config: EvaluationConfig,
    folder: EvaluationFolder,
    tasks: Mapping[WorldLevel, Sequence[Task]],
    yardsticks: Mapping[WorldLevel, Yardstick],
) -> Results:
    """Compute the results from the saved rollouts."""
    found: list[PolicyResult] = []
    returns: dict[int, npt.NDArray[np.float64]] = {}
    for world in config.worlds:
        for policy in config.policies:
            records = list(folder.rollouts.read(folder.segment(world, policy, config)))
            returns[len(found)] = returns_of(records, config.rollouts)
            found.append(
                policy_result(
                    records,
                    config.rollouts,
                    spec(world.world),
                    tasks[world],
                    yardsticks[world],
                    success_margin=config.success_margin,
                    prices=config.prices,
                )
            )
    return Results.of(found, returns)


def _setting(world: WorldLevel, config: EvaluationConfig) -> _Setting:
    row = spec(world.world)
    made = make_world(world.world, world.level, **config.options_in(row))
    role, scripts = config.role_in(row), config.scripts_in(row)
    tasks = made.first_tasks(config.split, config.tasks)
    if len(tasks) < 2:
        raise OptionError(
            f"{world.name} has {len(tasks)} Tasks in {config.split!r}; an interval needs two"
        )
    return _Setting(made, tasks, role, scripts, yardstick_on(made, tasks, role, scripts))


def _origin(policy: str, config: EvaluationConfig, setting: _Setting) -> Origin:
    """Return what the rollouts of a policy in a world have in common, whoever samples them."""
    row = setting.world.spec
    return Origin(
        "evaluation",
        policy=policy,
        opponents=config.opponents_in(row),
        options=config.options_in(row),
        seed=config.seed,
    )


def _check(policy: str, config: EvaluationConfig) -> None:
    """Refuse an unknown policy before anything is played.

    Raises:
        OptionError: naming who there is.
    """
    if policy.startswith(PREFIX):
        require_endpoint(EndpointName.parse(policy))
        return
    without = [world.name for world in config.worlds if policy not in baselines(world.world)]
    if not without:
        return
    if len(without) < len(config.worlds):
        raise OptionError(f"{policy!r} is a baseline, but not of {without}")
    known = sorted(set.intersection(*(set(baselines(world.world)) for world in config.worlds)))
    rule = (
        f"a policy is one of the baselines {known}, openai:MODEL@URL, or with the extra 'tinker' a "
        f"run folder, a model's name or directory, or a tinker:// path; got {policy!r}"
    )
    if importlib.util.find_spec("tinker") is None:
        raise OptionError(f"{rule}, and the extra is not installed: pip install 'tokengym[tinker]'")
    from tokengym.agents.models.resolve import model_kind

    named = policy == TOY_MODEL or policy.startswith("tinker://")
    if not named and model_kind(policy) is None:
        raise OptionError(rule)


def _play(
    policy: str,
    config: EvaluationConfig,
    settings: Mapping[WorldLevel, _Setting],
    folder: EvaluationFolder,
    concurrency: int,
    progress: Progress,
) -> None:
    """Play one policy in all worlds, skipping saved rollouts."""
    total = {world: len(setting.tasks) * config.rollouts for world, setting in settings.items()}

    async def play(
        world: WorldLevel, player: Player, tasks: Sequence[Task], at_once: asyncio.Semaphore
    ) -> None:
        segment = folder.segment(world, policy, config)
        await play_all_of(
            player,
            tasks,
            config.rollouts,
            folder.rollouts,
            segment,
            at_once,
            lambda done: progress(f"{world.name} {policy}", done, total[world]),
        )
        folder.rollouts.seal(segment)

    if policy.startswith(PREFIX):
        run_async(_endpoint(policy, config, settings, concurrency, play))
    elif all(policy in baselines(world.world) for world in config.worlds):
        run_async(_scripts(policy, config, settings, play))
    else:
        done = [
            len(list(folder.rollouts.read(folder.segment(world, policy, config)))) == total[world]
            for world in config.worlds
        ]
        if all(done):
            return
        from tokengym.agents.evaluation.model_runs import ModelPolicy, play_model

        tasks = {world: setting.tasks for world, setting in settings.items()}
        with tempfile.TemporaryDirectory() as service:
            model = ModelPolicy.resolve(policy, config)
            play_model(model, config, tasks, Path(service) / "service", play)


async def _scripts(
    policy: str,
    config: EvaluationConfig,
    settings: Mapping[WorldLevel, _Setting],
    play: Callable[..., Any],
) -> None:
    for world, setting in settings.items():
        origin = _origin(policy, config, setting)
        played = {**setting.scripts, setting.role: baselines(world.world)[policy]}
        player = ScriptedPlayer(setting.world, setting.role, played, origin)
        await play(world, player, setting.tasks, asyncio.Semaphore(1))


async def _endpoint(
    policy: str,
    config: EvaluationConfig,
    settings: Mapping[WorldLevel, _Setting],
    concurrency: int,
    play: Callable[..., Any],
) -> None:
    name = EndpointName.parse(policy)
    temperature = 1.0 if config.temperature is None else config.temperature
    async with connect(name) as client:
        for world, setting in settings.items():
            origin = replace(
                _origin(policy, config, setting),
                temperature=temperature,
                max_tokens=config.max_tokens or ENDPOINT_TOKENS,
            )
            player = EndpointPlayer(
                client,
                name.model,
                setting.world,
                setting.role,
                setting.scripts,
                origin,
                config.system,
            )
            await play(world, player, setting.tasks, asyncio.Semaphore(concurrency))
