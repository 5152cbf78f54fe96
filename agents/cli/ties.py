"""`tokengym ties`: how often groups of a policy tie, by size, and which size is enough."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tokengym.agents.cli.extras import require_extra
from tokengym.agents.cli.options import Level, WorldOptions, Yes, confirm_cost
from tokengym.agents.command_options import takes
from tokengym.agents.settings import name_values
from tokengym.agents.training.folder.run import RunFolder, is_run
from tokengym.agents.training.presets import preset
from tokengym.agents.training.setting_groups import PolicySettings, ServiceSettings
from tokengym.envs.core.errors import OptionError
from tokengym.envs.registry import baselines, make_world, spec

if TYPE_CHECKING:
    from tokengym.agents.training.job import Job

MODEL = "model"
"""The policy that is a model and not a script or a run."""


@takes(
    PolicySettings,
    ServiceSettings,
    only=("model", "base_url", "temperature", "max_tokens", "renderer"),
)
def ties(
    world: Annotated[
        str, typer.Argument(help="id or short name, such as energy, or a run folder to read")
    ],
    *,
    said: dict[str, Any],
    level: Level = None,
    group_size: Annotated[str, typer.Option(help="sizes, such as 4,8,16")] = "4,8,16",
    policy: Annotated[
        str | None,
        typer.Option(help="a baseline (noisy if none), model, or a run folder: its newest weights"),
    ] = None,
    tasks: Annotated[int, typer.Option(min=1, help="groups, each of one test Task")] = 100,
    correct: Annotated[
        float | None,
        typer.Option(help="reward threshold of a correct rollout (default: midpoint of the range)"),
    ] = None,
    option: WorldOptions = None,
    model_path: Annotated[
        str | None, typer.Option(help="tinker://... weights of that model to sample from")
    ] = None,
    seed: Annotated[int, typer.Option(help="seed of scripts and intervals")] = 0,
    yes: Yes = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="also write the result to this file")
    ] = None,
    png: Annotated[Path | None, typer.Option("--png", help="draw the result to this file")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="write a page to this file")] = None,
) -> None:
    """Study ties by group size, before training a model or paying for tokens.

    With a run folder in place of a world: how ties and returns went in that run.
    """
    require_extra("tinker", "a study of ties")
    from rich.console import Console

    run = RunFolder(Path(world))
    if run.exists:
        from tokengym.agents.analysis.run_ties import run_ties

        if level or policy or option or said or model_path:
            raise OptionError(f"{world} is a run: only --json, --png and --html go with it")
        ties_of_run = run_ties(run)
        data, report = ties_of_run.to_dict(), ties_of_run.report()
    else:
        from tokengym.agents.analysis.ties import tie_study
        from tokengym.agents.analysis.ties_report import ties_report

        options = name_values(option or [], "--option")
        sizes = _sizes(group_size)
        reading: dict[str, Any] = {"threshold": correct, "seed": seed}
        if policy is None:
            policy = MODEL if said or model_path else "noisy"
        if policy == MODEL or is_run(policy):
            from tokengym.agents.analysis.sampled_ties import sampled_study

            sampled_run = None if policy == MODEL else RunFolder(Path(policy))
            job, weights = _sampled_job(world, level, options, sampled_run, model_path, said)
            held_out = job.world.first_tasks("test", tasks)
            confirm_cost(job, held_out, max(sizes), ask=not yes)
            study = sampled_study(job, held_out, sizes, run=sampled_run, weights=weights, **reading)
        else:
            if said or model_path:
                raise OptionError(
                    f"--{[*said, 'model_path'][0].replace('_', '-')} needs a model, got {policy!r}"
                )
            made = make_world(world, level, **options)
            held_out = made.first_tasks("test", tasks)
            study = tie_study(made, held_out, baselines(made.spec), policy, sizes, **reading)
        data, report = study.to_dict(), ties_report(study)
    console = Console()
    console.print(report.title, style="bold", highlight=False)
    for table in report.tables:
        console.print(table.for_terminal())
    for line in report.lines:
        console.print(line, highlight=False)
    if json_file is not None:
        json_file.write_text(json.dumps(data, indent=1, allow_nan=False) + "\n")
    if png is not None:
        png.write_bytes(report.picture.png)
    if html is not None:
        report.write(html)


def _sizes(text: str) -> list[int]:
    try:
        return [int(size) for size in text.split(",")]
    except ValueError:
        raise OptionError(f"--group-size takes sizes such as 4,8,16; got {text!r}") from None


def _sampled_job(
    world: str,
    level: str | None,
    options: dict[str, Any],
    run: RunFolder | None,
    weights: str | None,
    said: dict[str, Any],
) -> "tuple[Job, str | None]":
    """Return what to sample: a job and the weights."""
    from tokengym.agents.training.job import Job

    world_spec = spec(world)
    if run is None:
        # The world's own options, as with scripted policies; other roles play as in training.
        config = preset(world_spec.id, level, **said)
        prompt = {name: value for name, value in config.options.items() if name == "prompt"}
        config = replace(config, options={**prompt, **options})
        return Job.resolve(config), weights
    if weights is not None:
        raise OptionError(f"--model-path names weights, and so does the run {run.folder}: give one")
    config = run.config
    if config.world != world_spec.id:
        raise OptionError(f"{run.folder} is a run on {config.world}, not on {world_spec.id}")
    if level is not None:
        said["level"] = level
    if options:
        said["options"] = {**config.options, **options}
    newest = run.weights.sampler
    if newest is None:
        raise OptionError(f"{run.folder} has saved no weights to sample from yet")
    return Job.resolve(replace(config, **said)), newest
