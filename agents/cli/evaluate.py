"""`tokengym evaluate`: what policies earn on held-out Tasks, compared in pairs."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tokengym.agents.cli.options import Data, WorldOptions
from tokengym.agents.evaluation.config import EvaluationConfig, WorldLevel
from tokengym.agents.evaluation.endpoint import EndpointError
from tokengym.agents.settings import name_texts, name_values
from tokengym.envs.core.errors import OptionError
from tokengym.envs.registry import make_world, spec

if TYPE_CHECKING:
    from tokengym.agents.evaluation.play_missing import Progress

_USUAL_TASKS = 64
_INTERRUPTED = 130
_UNNAMED = "[]@/:. "


def evaluate(
    world: Annotated[
        list[str] | None,
        typer.Argument(help="one or more ids or short names, optionally with a level: energy:day"),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="once or several times: a baseline, a run folder, a model's name or directory, "
            "smollm2, a tinker:// path, or openai:MODEL@URL"
        ),
    ] = None,
    data: Data = None,
    tasks: Annotated[
        int | None,
        typer.Option(help="Tasks of each world (default: 64, or all in your own data)"),
    ] = None,
    rollouts: Annotated[int, typer.Option(help="rollouts of each Task")] = 1,
    split: Annotated[str, typer.Option(help="train, validation or test")] = "test",
    option: WorldOptions = None,
    role: Annotated[
        str | None, typer.Option(help="the role to evaluate (default: the first)")
    ] = None,
    opponent: Annotated[
        list[str] | None, typer.Option(help="ROLE=BASELINE plays another role")
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(help="of models and endpoints (default: 1, or the run's)")
    ] = None,
    max_tokens: Annotated[int | None, typer.Option(help="token limit of a reply")] = None,
    system: Annotated[str, typer.Option(help="a system text before every conversation")] = "",
    model: Annotated[str | None, typer.Option(help="the model of a tinker:// path")] = None,
    base_url: Annotated[str | None, typer.Option(help="address of a Tinker service")] = None,
    seed: Annotated[int, typer.Option(help="seed of scripted policies")] = 0,
    success_margin: Annotated[
        float, typer.Option(help="largest shortfall from the oracle that counts as success")
    ] = 0.05,
    price_read: Annotated[
        float | None, typer.Option(help="dollars per million tokens read")
    ] = None,
    price_written: Annotated[
        float | None, typer.Option(help="dollars per million tokens written")
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="requests to an endpoint at once")] = 16,
    out: Annotated[Path | None, typer.Option(help="the folder to create or to resume")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON, not tables")] = False,
) -> None:
    """Evaluate policies on the same Tasks. The same command resumes a stopped evaluation."""
    if not world or not policy:
        raise OptionError("name at least one world and one --policy")
    prices = None
    if price_read is not None or price_written is not None:
        prices = (price_read or 0.0, price_written or 0.0)
    worlds = tuple(WorldLevel.parse(one) for one in world)
    options = name_values(option or [], "--option")
    if data is not None:
        options["data"] = str(data.resolve())
    config = EvaluationConfig(
        worlds=worlds,
        policies=tuple(policy),
        tasks=_count_tasks(worlds, split, options) if tasks is None else tasks,
        rollouts=rollouts,
        split=split,
        options=options,
        role=role,
        opponents=name_texts(opponent or [], "--opponent"),
        temperature=temperature,
        max_tokens=max_tokens,
        system=system,
        model=model,
        base_url=base_url,
        seed=seed,
        success_margin=success_margin,
        prices=prices,
    )
    _evaluate(config, out or _folder_of(config), concurrency, as_json=as_json)


def _count_tasks(worlds: Sequence[WorldLevel], split: str, options: Mapping[str, Any]) -> int:
    """Return the number of Tasks in a user's own data, or else one that takes seconds."""
    if "data" not in options:
        return _USUAL_TASKS
    sizes = [
        make_world(name, level, **{**spec(name).evaluation, **options}).size(split)
        for name, level in worlds
    ]
    counted = [size for size in sizes if size is not None]
    # The least that an evaluation takes, so that it says which split has fewer.
    return max([2, *counted]) if counted else _USUAL_TASKS


def _evaluate(config: EvaluationConfig, out: Path, concurrency: int, *, as_json: bool) -> None:
    from tokengym.agents.analysis.report import Table
    from tokengym.agents.evaluation.folder import EvaluationFolder
    from tokengym.agents.evaluation.report import evaluation_report, write_tables
    from tokengym.agents.evaluation.run import run_evaluation

    folder = EvaluationFolder(out)
    try:
        results = run_evaluation(config, folder, concurrency, _progress())
    except (KeyboardInterrupt, EndpointError) as error:
        asked = isinstance(error, KeyboardInterrupt)
        typer.echo(
            f"{'stopped' if asked else error}\nWhat was played is in {out}; the same command "
            "continues from there",
            err=True,
        )
        raise typer.Exit(_INTERRUPTED if asked else 1) from error
    report = evaluation_report(config, results)
    write_tables(out, results)
    report.write(out / "report.html")
    if as_json:
        typer.echo(folder.file.read_text(encoding="utf-8"), nl=False)
        return
    from rich.console import Console

    console = Console(highlight=False)
    for line in report.lines:
        console.print(line, markup=False)
    for part in report.parts:
        if isinstance(part, Table):
            console.print(part.for_terminal())
    console.print(f"{folder.file}, report.html, policies.csv, pairs.csv", markup=False)


def _progress() -> "Progress":
    """Show how many rollouts are saved, on one line that is overwritten."""
    live = sys.stderr.isatty()

    def show(what: str, done: int, total: int) -> None:
        if live:
            ended = "\n" if done == total else ""
            print(f"\r\033[K{what}: {done} of {total} rollouts{ended}", end="", file=sys.stderr)

    return show


def _folder_of(config: EvaluationConfig) -> Path:
    """Return a folder named after the settings, so that the same command finds it again."""
    worlds = "-".join(world.name for world in config.worlds[:3])
    named = [policy.partition("@http")[0] for policy in config.policies[:3]]
    policies = "-".join(Path(policy).name for policy in named)
    name = "".join("_" if letter in _UNNAMED else letter for letter in f"{worlds}-{policies}")
    return Path("evaluations") / f"{name[:80]}-{config.key}"
