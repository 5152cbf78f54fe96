"""`tokengym ties`: how often groups tie, by size.

Groups are played by a policy, or were recorded by any trainer.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tokengym.agents.certify.sources import is_recorded, open_source
from tokengym.agents.certify.sources.records import reward_groups
from tokengym.agents.cli.options import Workers, Yes, confirm_cost
from tokengym.agents.cli.shown import show
from tokengym.agents.evaluation.plan import EvaluationPlace, EvaluationPlan
from tokengym.agents.evaluation.worlds import EvaluatedWorld
from tokengym.agents.execution.executors import Executor, find_executor
from tokengym.agents.settings import option, plain, settings_of
from tokengym.agents.settings.commands import said_of, takes
from tokengym.agents.toy_model import TOY_MODEL
from tokengym.agents.training.config import PolicySettings, ServiceSettings, WorldOptions
from tokengym.agents.training.folder.run import RunFolder
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.registry import scripted_opponent, spec
from tokengym.installed import require_extra
from tokengym.rewards.ties import TOLERANCE

if TYPE_CHECKING:
    from tokengym.agents.evaluation.ties import TieStudy
    from tokengym.agents.training.job import Job

MODEL = "model"
"""The policy that is a model and not a script or a run."""


def _sizes(text: str) -> list[int]:
    try:
        return [int(size) for size in text.split(",")]
    except ValueError:
        raise OptionError(f"--group-size takes sizes such as 4,8,16; got {text!r}") from None


@dataclass(frozen=True)
class _Asked(WorldOptions):
    """Groups and files.

    Attributes: see their help.
    """

    level: str | None = option(None, "level of the world")
    group_size: str = option("4,8,16", "group sizes to compare")
    policy: str = option("", "a baseline (noisy if none), model, or a run for its newest weights")
    tasks: int = option(100, "groups, each of one test Task", least=2)
    correct: float | None = option(
        None, "reward threshold of a correct rollout (default: midpoint of the range)"
    )
    tolerance: float = option(TOLERANCE, "distance within which rewards count as equal", least=0)
    model_path: str | None = option(None, "tinker://... weights of that model to sample from")
    seed: int = option(0, "seed of scripts and intervals")
    json_file: Path | None = option(
        None, "write the result to this file, which tokengym view shows", flag="--json"
    )


_SAMPLING = ("model", "base_url", "temperature", "max_tokens", "renderer")


@takes(PolicySettings, ServiceSettings, _Asked, only=(*_SAMPLING, *settings_of(_Asked)))
def ties(
    world: Annotated[
        str,
        typer.Argument(
            help="id or short name, such as energy, a run folder to read, or recorded rollouts of "
            "any trainer: a file or folder as `tokengym certify` takes it"
        ),
    ],
    *,
    said: dict[str, Any],
    workers: Workers = 1,
    yes: Yes = False,
) -> None:
    """Study ties by group size, before training a model or paying for tokens.

    With a run folder instead of a world: how ties and returns went in that run. With recorded
    rollouts: ties of their groups, and a prediction for sizes that are larger.
    """
    require_extra("tinker", "a study of ties")
    asked, run = said_of(_Asked, said), RunFolder(Path(world))
    sampling = {name: said[name] for name in _SAMPLING if name in said}
    if asked.model_path:
        sampling["model_path"] = asked.model_path  # of a model
    if (run.exists or is_recorded(world)) and (
        asked.level or asked.policy or asked.options or sampling
    ):
        raise OptionError(f"{world} is recorded: options of a world or a policy do not apply to it")
    if run.exists:
        from tokengym.agents.evaluation.run_ties import run_ties

        ties_of_run = run_ties(run)
        data, report = plain(ties_of_run), ties_of_run.report()
    else:
        from tokengym.agents.evaluation.ties_report import ties_report

        executor = find_executor(workers)
        study = _study(world, asked, sampling, executor, ask=not yes)
        data, report = study.to_dict(), ties_report(study)
    show(*report.tables, *report.lines, title=report.title)
    if asked.json_file is not None:
        written = data | {"report": report.to_dict()}
        asked.json_file.write_text(json.dumps(written, indent=1, allow_nan=False) + "\n")


def _study(
    world: str, asked: _Asked, sampling: dict[str, Any], executor: Executor, *, ask: bool
) -> "TieStudy":
    """Return the study of recorded or new rollouts."""
    from tokengym.agents.evaluation.played_ties import tie_study
    from tokengym.agents.evaluation.ties import TieReading, study_of
    from tokengym.agents.reports.progress import progress_bars

    sizes = _sizes(asked.group_size)
    reading = TieReading(asked.correct, asked.tolerance, asked.seed)
    if is_recorded(world):
        rollouts = open_source(world, {}).rollouts
        groups = reward_groups(rollouts)
        if lost := len(rollouts) - sum(len(group.rewards) for group in groups):
            typer.echo(f"left out: {lost} rewards that are no finite number")
        tied = [group for group in groups if len(group.rewards) > 1]
        rewards, tasks = [one.rewards for one in tied], [one.task for one in tied]
        return study_of(world, "recorded", rewards, sizes, reading, tasks=tasks)
    world_spec, run = spec(world), RunFolder(Path(asked.policy))
    name = asked.policy or (MODEL if sampling else "noisy")
    known = name != MODEL and not run.exists
    if known and sampling:
        option = next(iter(sampling)).replace("_", "-")
        raise OptionError(f"--{option} needs a model, got {name!r}")
    if run.exists and asked.model_path:
        raise OptionError(f"--model-path names weights, and so does the run {run.folder}: give one")
    if run.exists and run.config.world != world_spec.id:
        raise OptionError(f"{run.folder} is a run on {run.config.world}, not on {world_spec.id}")
    model = sampling.get("model", TOY_MODEL)
    plan = EvaluationPlan(
        (_place(world_spec, asked, run, sampling, scripted=known),),
        (asked.model_path or model if name == MODEL else name,),
        max(sizes),
        asked.seed,
        model=model,
        base_url=sampling.get("base_url"),
        renderer=sampling.get("renderer", ""),
    )

    def confirm(jobs: "Sequence[Job]") -> None:
        for job in jobs:
            confirm_cost(job, place.tasks, max(sizes), ask=ask)

    place = EvaluatedWorld.resolve(plan.places[0], plan.seed, executor)
    with progress_bars() as progress:
        return tie_study(place, plan, sizes, reading, confirm, progress)


def _place(
    world_spec: WorldSpec,
    asked: _Asked,
    run: RunFolder,
    sampling: dict[str, Any],
    *,
    scripted: bool,
) -> EvaluationPlace:
    """Return what is played: by a script against others that do nothing, by a model as trained."""
    role, level, options = world_spec.roles[0], world_spec.levels[0], dict(asked.options)
    opponents = dict.fromkeys(world_spec.roles, "null")
    if not scripted:
        opponents = {other: scripted_opponent(world_spec, other) for other in world_spec.roles}
        opponents |= world_spec.opponents
    if run.exists:
        config = run.config
        role, level = config.trained_roles[0], config.level
        opponents, options = opponents | dict(config.opponents), {**config.options, **options}
    del opponents[role]
    level = asked.level or level
    world_spec.require_level(level)
    sampled = sampling.get("temperature"), sampling.get("max_tokens")
    return EvaluationPlace(
        world_spec.id, level, role, opponents, options, "test", asked.tasks, *sampled
    )
