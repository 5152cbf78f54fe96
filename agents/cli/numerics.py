"""`tokengym numerics`: whether a service trains on the probabilities that it samples with."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from tokengym.agents.cli.options import Level, Yes, confirm_cost
from tokengym.agents.cli.shown import show
from tokengym.agents.settings.commands import takes
from tokengym.agents.toy_model import TOY_MODEL
from tokengym.agents.training.config import PolicySettings, ServiceSettings
from tokengym.agents.training.presets import preset
from tokengym.installed import require_extra


@takes(
    PolicySettings,
    ServiceSettings,
    only=(
        *("model", "base_url", "temperature", "max_tokens", "renderer", "lora_rank"),
        *("precision", "deterministic"),
    ),
)
def numerics(
    world: Annotated[
        str, typer.Argument(help="id or short name of the world whose prompts are answered")
    ] = "forecast",
    *,
    said: dict[str, Any],
    level: Level = None,
    tasks: Annotated[int, typer.Option(min=1, help="prompts, each of one test Task")] = 16,
    samples: Annotated[int, typer.Option(min=1, help="replies to each")] = 4,
    steps: Annotated[
        int, typer.Option(min=0, help="optimizer steps on random advantages in between")
    ] = 2,
    reference: Annotated[
        bool,
        typer.Option(help="also measure the local service, on the same model if it is here"),
    ] = True,
    rollouts: Annotated[
        Path | None,
        typer.Option(help="use no service: judge these rollouts, JSONL as for `tokengym probe`"),
    ] = None,
    yes: Yes = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="also write the figures to this file")
    ] = None,
) -> None:
    """Compare log-probabilities of sampled tokens with those that training computes for them.

    Works on any service of the Tinker protocol, with a new adapter and after a few steps. With the
    model's directory, replies are also tested against its distribution: truncated sampling or
    another temperature ends with exit status 1.
    """
    if rollouts is not None:
        require_extra("probe", "judging rollouts")
        _judge_rollouts(rollouts, said)
        return
    require_extra("tinker", "a study of numerics")
    from tokengym.agents.probe.numerics import (
        measure_numerics,
        numerics_report,
        on_our_service,
        to_dict,
    )
    from tokengym.agents.training.connection import ServiceRefusedError
    from tokengym.agents.training.job import Job

    job = Job.resolve(preset(world, level, **said))
    prompts = job.world.first_tasks("test", tasks)
    confirm_cost(job, prompts, samples * (steps + 1), ask=not yes)
    measured = measure_numerics(job, prompts, samples, steps)
    if reference and not job.target.local:
        try:
            measured += measure_numerics(on_our_service(job), prompts, samples, steps)
        except ServiceRefusedError as error:
            typer.echo(f"the local service was not measured: {error}", err=True)
    lines, tables = numerics_report(measured)
    show(*lines, *tables)
    found, wrong = to_dict(measured), False
    if (folder := Path(job.target.model)).is_dir() and job.config.temperature:
        # A new adapter is the model itself.
        replies = [(one.prompt, one.tokens, [1] * len(one.tokens)) for one in measured[0].scored]
        found["sampling"], wrong = _judge_sampling(folder, replies, job.config.temperature)
    if json_file is not None:
        json_file.write_text(f"{json.dumps(found, indent=1, allow_nan=False)}\n")
    if wrong:
        raise typer.Exit(1)


def _judge_rollouts(file: Path, said: Mapping[str, Any]) -> None:
    """Judge rollouts of any trainer."""
    from tokengym.agents.models import resolve_model
    from tokengym.agents.probe.rollouts import read_rollouts

    folder = resolve_model(said.get("model", TOY_MODEL))
    replies = [(one.prompt_ids, one.completion_ids, one.mask) for one in read_rollouts(file)]
    if _judge_sampling(folder, replies, said.get("temperature", 1.0))[1]:
        raise typer.Exit(1)


def _judge_sampling(folder: Path, replies: Any, temperature: float) -> tuple[str, bool]:
    """Print whether replies are of a model's distribution; returns what it said, and if not."""
    from tokengym.agents.probe.policy import load_model
    from tokengym.agents.probe.sampled import judge_sample, sample_of
    from tokengym.agents.probe.verdict import VerdictKind

    verdict = judge_sample(sample_of(load_model(folder).float(), replies, temperature))
    show(str(verdict))
    return str(verdict), verdict.kind is VerdictKind.WRONG
