"""`tokengym ties`: how often groups tie, by size, and which size is enough.

Groups are played by a policy, or were recorded by any trainer.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tokengym.agents.analysis.tie_groups import write_table
from tokengym.agents.certify.sources import is_recorded, open_source
from tokengym.agents.certify.sources.records import reward_groups
from tokengym.agents.cli.extras import require_extra
from tokengym.agents.cli.options import EngineName, Workers, Yes, confirm_cost
from tokengym.agents.cli.shown import show
from tokengym.agents.command_options import said_of, takes
from tokengym.agents.executors import Executor, find_executor
from tokengym.agents.settings import option, settings_of
from tokengym.agents.training.folder.run import RunFolder, is_run
from tokengym.agents.training.presets import preset
from tokengym.agents.training.setting_groups import PolicySettings, ServiceSettings, WorldOptions
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.table_files import require_table
from tokengym.envs.registry import baselines_at, make_world, spec
from tokengym.rewards.ties import TOLERANCE

if TYPE_CHECKING:
    from tokengym.agents.analysis.tie_groups import RewardGroup
    from tokengym.agents.analysis.ties import TieStudy
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
    """What is studied, and what is written.

    Attributes: see their help.
    """

    level: str | None = option(None, "level of the world")
    group_size: str = option("4,8,16", "sizes")
    policy: str = option("", "a baseline (noisy if none), model, or a run: its newest weights")
    tasks: int = option(100, "groups, each of one test Task", least=1)
    correct: float | None = option(
        None, "reward threshold of a correct rollout (default: midpoint of the range)"
    )
    tolerance: float = option(TOLERANCE, "distance within which rewards count as equal", least=0)
    model_path: str | None = option(None, "tinker://... weights of that model to sample from")
    seed: int = option(0, "seed of scripts and intervals")
    json_file: Path | None = option(
        None, "write the result to this file, which tokengym view shows", flag="--json"
    )
    table: Path | None = option(None, "write a row of each group to this .parquet or .csv file")


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
    workers: Workers = None,
    engine: EngineName = "processes",
    yes: Yes = False,
) -> None:
    """Study ties by group size, before training a model or paying for tokens.

    With a run folder in place of a world: how ties and returns went in that run. With recorded
    rollouts: ties of their groups, and a prediction for sizes that are larger.
    """
    require_extra("tinker", "a study of ties")
    asked, run = said_of(_Asked, said), RunFolder(Path(world))
    sampling = {name: said[name] for name in _SAMPLING if name in said}
    if asked.model_path:
        sampling["model_path"] = asked.model_path
    if (run.exists or is_recorded(world)) and (
        asked.level or asked.policy or asked.options or sampling
    ):
        raise OptionError(f"{world} is on record: no option of a world or a policy goes with it")
    if asked.table is not None:
        require_table(asked.table)
    if run.exists:
        from tokengym.agents.analysis.run_ties import run_ties

        if asked.table is not None:
            raise OptionError(f"--table takes groups; those of a run are in {run.rollouts.folder}")
        ties_of_run = run_ties(run)
        data, report = ties_of_run.to_dict(), ties_of_run.report()
    else:
        from tokengym.agents.analysis.ties_report import ties_report

        executor = find_executor(workers, engine)
        study, groups = _study(world, asked, sampling, executor, ask=not yes)
        data, report = study.to_dict(), ties_report(study)
        if asked.table is not None:
            write_table(asked.table, groups, asked.tolerance)
    show(*report.tables, *report.lines, title=report.title)
    if asked.json_file is not None:
        written = data | {"report": report.to_dict()}
        asked.json_file.write_text(json.dumps(written, indent=1, allow_nan=False) + "\n")


def _study(
    world: str, asked: _Asked, sampling: dict[str, Any], executor: Executor, *, ask: bool
) -> "tuple[TieStudy, list[RewardGroup]]":
    """Return the study of recorded or new rollouts, and their groups."""
    from tokengym.agents.analysis.evaluate import draw_tasks
    from tokengym.agents.analysis.played_ties import tie_study
    from tokengym.agents.analysis.ties import TieReading, study_of

    sizes = _sizes(asked.group_size)
    reading = TieReading(asked.correct, asked.tolerance, asked.seed)
    if is_recorded(world):
        rollouts = open_source(world, {}).rollouts
        groups = reward_groups(rollouts)
        if lost := len(rollouts) - sum(len(group.rewards) for group in groups):
            typer.echo(f"left out: {lost} rewards that are no finite number")
        tied = [group for group in groups if len(group.rewards) > 1]
        rewards, tasks = [one.rewards for one in tied], [one.task for one in tied]
        return study_of(world, "recorded", rewards, sizes, reading, tasks=tasks), groups
    policy = asked.policy or (MODEL if sampling else "noisy")
    if policy == MODEL or is_run(policy):
        from tokengym.agents.analysis.sampled_ties import sampled_study

        run = None if policy == MODEL else RunFolder(Path(policy))
        job, weights = _sampled_job(world, asked, run, sampling)
        held_out = job.world.first_tasks("test", asked.tasks)
        confirm_cost(job, held_out, max(sizes), ask=ask)
        study = sampled_study(job, held_out, sizes, reading, run=run, weights=weights)
    else:
        if sampling:
            name = next(iter(sampling)).replace("_", "-")
            raise OptionError(f"--{name} needs a model, got {policy!r}")
        made = make_world(world, asked.level, **asked.options)
        held_out, rules = draw_tasks(made, "test", asked.tasks, executor), baselines_at(made)
        study = tie_study(made, held_out, rules, policy, sizes, reading, executor)
    return study, study.reward_groups


def _sampled_job(
    world: str, asked: _Asked, run: RunFolder | None, sampling: dict[str, Any]
) -> "tuple[Job, str | None]":
    """Return what to sample: a job and the weights."""
    from tokengym.agents.training.job import Job

    world_spec, weights = spec(world), sampling.pop("model_path", None)
    if run is None:
        # The world's own options, as with scripted policies; other roles play as in training.
        config = preset(world_spec.id, asked.level, **sampling)
        prompt = {name: value for name, value in config.options.items() if name == "prompt"}
        options = {**prompt, **asked.options}
        return Job.resolve(replace(config, options=options)), weights
    if weights is not None:
        raise OptionError(f"--model-path names weights, and so does the run {run.folder}: give one")
    of_run = run.config
    if of_run.world != world_spec.id:
        raise OptionError(f"{run.folder} is a run on {of_run.world}, not on {world_spec.id}")
    if asked.level is not None:
        sampling["level"] = asked.level
    if asked.options:
        sampling["options"] = {**of_run.options, **asked.options}
    return Job.resolve(replace(of_run, **sampling)), run.saved_weights()
