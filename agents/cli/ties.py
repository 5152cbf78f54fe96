"""`tokengym ties`: how often groups of a policy tie, by size, and which size is enough."""

import json
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tokengym.agents.cli.options import name_values
from tokengym.envs.core.errors import OptionError
from tokengym.envs.registry import baselines, make_world, spec

if TYPE_CHECKING:
    from tokengym.agents.analysis.page import Sheet
    from tokengym.agents.analysis.ties import TieStudy
    from tokengym.agents.training.config import TrainSettings

MODEL = "model"
"""The policy that is a model and not a script or a run."""


def ties(
    world: Annotated[
        str, typer.Argument(help="id or short name, such as energy, or a run folder to read")
    ],
    level: Annotated[str | None, typer.Option(help="level of the world")] = None,
    group_size: Annotated[str, typer.Option(help="sizes, such as 4,8,16")] = "4,8,16",
    policy: Annotated[
        str | None,
        typer.Option(help="a baseline (noisy if none), model, or a run folder: its newest weights"),
    ] = None,
    tasks: Annotated[int, typer.Option(min=1, help="groups, each of one test Task")] = 100,
    correct: Annotated[
        float | None, typer.Option(help="rewards above it are correct; the middle if none")
    ] = None,
    option: Annotated[list[str] | None, typer.Option(help="name=value, a world's option")] = None,
    model: Annotated[
        str | None, typer.Option(help="a model directory, a hosted model, or tokengym-start")
    ] = None,
    model_path: Annotated[
        str | None, typer.Option(help="tinker://... weights of that model to sample from")
    ] = None,
    base_url: Annotated[str | None, typer.Option(help="address of a Tinker service")] = None,
    temperature: Annotated[float | None, typer.Option(help="of sampling")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="most tokens of a reply")] = None,
    renderer: Annotated[str | None, typer.Option(help="a cookbook renderer's name")] = None,
    seed: Annotated[int, typer.Option(help="of a script's randomness and the intervals")] = 0,
    yes: Annotated[bool, typer.Option("--yes", help="do not ask before using a key")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="write it here too")] = None,
    png: Annotated[Path | None, typer.Option("--png", help="draw it here")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="write one page here")] = None,
) -> None:
    """Study ties by group size, before a model is trained or a token is paid for.

    With a run folder in place of a world: how ties and returns went in that run.
    """
    from rich.console import Console

    sampling: dict[str, Any] = {
        "model": model,
        "base_url": base_url,
        "temperature": temperature,
        "max_tokens": max_tokens,
        "renderer": renderer,
    }
    given = {name: value for name, value in sampling.items() if value is not None}
    found: TieStudy | Any
    if _is_run(world):
        from tokengym.agents.analysis.run_ties import run_ties

        if level or policy or option or given or model_path:
            raise OptionError(f"{world} is a run: only --json, --png and --html go with it")
        found = run_ties(Path(world))
        sheet: Sheet = found.sheet()
    else:
        from tokengym.agents.analysis.ties_report import tie_sheet

        options = name_values(option or [], "--option")
        sizes = _sizes(group_size)
        if policy is None:
            policy = MODEL if given or model_path else "noisy"
        if policy == MODEL or _is_run(policy):
            settings, run, weights = _sampling(
                world, level, options, Path(policy) if policy != MODEL else None, model_path, given
            )
            found = _sampled(settings, run, weights, sizes, tasks, correct, seed, ask=not yes)
        else:
            if given or model_path:
                raise OptionError(
                    f"{policy!r} is no model: --{[*given, 'model_path'][0]} is for one"
                )
            found = _scripted(world, level, options, policy, sizes, tasks, correct, seed)
        sheet = tie_sheet(found)
    console = Console()
    console.print(sheet.table())
    for line in sheet.lines:
        console.print(line, highlight=False)
    if json_file is not None:
        json_file.write_text(json.dumps(found.to_dict(), indent=1, allow_nan=False) + "\n")
    if png is not None:
        sheet.draw(png)
    if html is not None:
        sheet.write(html)


def _is_run(name: str) -> bool:
    """Whether a name is a run's folder; `training.job` names the file, but loads torch."""
    return (Path(name) / "settings.json").is_file()


def _sizes(text: str) -> list[int]:
    try:
        return [int(size) for size in text.split(",")]
    except ValueError:
        raise OptionError(f"--group-size takes sizes such as 4,8,16; got {text!r}") from None


def _scripted(
    world: str,
    level: str | None,
    options: dict[str, Any],
    policy: str,
    sizes: list[int],
    tasks: int,
    correct: float | None,
    seed: int,
) -> "TieStudy":
    from tokengym.agents.analysis.ties import held_out, tie_study

    made = make_world(world, level, **options)
    known = baselines(made.spec.id)
    return tie_study(
        made, held_out(made, tasks), known, policy, sizes, threshold=correct, seed=seed
    )


def _sampling(
    world: str,
    level: str | None,
    options: dict[str, Any],
    run: Path | None,
    weights: str | None,
    given: dict[str, Any],
) -> "tuple[TrainSettings, Path | None, str | None]":
    """Return what to sample: settings, the run that holds the weights, and the weights."""
    from tokengym.agents.analysis.sampled_ties import newest_weights
    from tokengym.agents.training.config import TrainSettings, preset

    row = spec(world)
    if run is None:
        # The world's own options, as with scripted policies; other roles speak as in training.
        return replace(preset(row.id, level, **given), options=options), None, weights
    if weights is not None:
        raise OptionError(f"--model-path names weights, and so does the run {run}: give one")
    settings = TrainSettings.load(run / "settings.json")
    if settings.world != row.id:
        raise OptionError(f"{run} is a run on {settings.world}, not on {row.id}")
    if level is not None:
        given["level"] = level
    if options:
        given["options"] = {**settings.options, **options}
    return replace(settings, **given), run, newest_weights(run)


def _sampled(
    settings: "TrainSettings",
    run: Path | None,
    weights: str | None,
    sizes: list[int],
    tasks: int,
    correct: float | None,
    seed: int,
    *,
    ask: bool,
) -> "TieStudy":
    from tokengym.agents.analysis.sampled_ties import sampled_study, sampling_cost
    from tokengym.agents.analysis.ties import held_out
    from tokengym.agents.tinker.codec import RendererCodec
    from tokengym.agents.training.connection import resolve_model, wants_local_service

    world = make_world(settings.world, settings.level, **settings.options)
    drawn = held_out(world, tasks)
    if not wants_local_service(settings):
        codec = RendererCodec(settings.renderer, resolve_model(settings))
        read, sampled = sampling_cost(settings, codec, drawn, max(sizes))
        typer.echo(f"this study will read about {read:,} tokens and sample at most {sampled:,}")
        if ask and sys.stdin.isatty():
            typer.confirm("start?", abort=True)
    # What samples calls the SDK as the cookbook does, by a name the SDK is about to drop.
    warnings.filterwarnings("ignore", "DEPRECATED: SamplingClient.sample_async", FutureWarning)
    return sampled_study(
        settings, drawn, sizes, run=run, weights=weights, threshold=correct, seed=seed
    )
