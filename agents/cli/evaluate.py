"""`tokengym evaluate`: what policies earn on held-out Tasks, compared in pairs."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tokengym.agents.cli.options import Data, EngineName, Workers, add_data
from tokengym.agents.command_options import takes
from tokengym.agents.evaluation.chat_client import PATIENCE, Patience
from tokengym.agents.evaluation.config import EvaluationConfig, WorldLevel
from tokengym.agents.evaluation.endpoint import EndpointError
from tokengym.agents.executors import find_executor
from tokengym.envs.core.errors import OptionError
from tokengym.envs.registry import make_world, spec

if TYPE_CHECKING:
    from tokengym.agents.evaluation.play_missing import Progress

_INTERRUPTED = 130
_UNNAMED = "[]@/:. "


@takes(EvaluationConfig)
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
    *,
    said: dict[str, Any],
    data: Data = None,
    price_read: Annotated[
        float | None, typer.Option(help="dollars per million tokens read")
    ] = None,
    price_written: Annotated[
        float | None, typer.Option(help="dollars per million tokens written")
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="requests to an endpoint at once")] = 16,
    timeout: Annotated[
        float, typer.Option(min=1.0, help="seconds that an endpoint may take to answer")
    ] = PATIENCE.timeout,
    retries: Annotated[
        int, typer.Option(min=0, help="tries after the first, where a later one may be answered")
    ] = PATIENCE.retries,
    rate: Annotated[
        float, typer.Option(min=0.1, help="most requests a minute to each address of an endpoint")
    ] = PATIENCE.rate,
    max_failures: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="most failed rollouts of a policy in a world; a tenth, but at least 20, if not "
            "given",
        ),
    ] = None,
    workers: Workers = None,
    engine: EngineName = "processes",
    out: Annotated[Path | None, typer.Option(help="the folder to create or to resume")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON, not tables")] = False,
) -> None:
    """Evaluate policies on the same Tasks. The same command resumes a stopped evaluation."""
    from rich.console import Console

    from tokengym.agents.analysis.report import Table
    from tokengym.agents.evaluation.folder import EvaluationFolder
    from tokengym.agents.evaluation.report import evaluation_report, write_tables
    from tokengym.agents.evaluation.run import run_evaluation

    if not world or not policy:
        raise OptionError("name at least one world and one --policy")
    if price_read is not None or price_written is not None:
        said["prices"] = (price_read or 0.0, price_written or 0.0)
    add_data(said, data)
    worlds = tuple(map(WorldLevel.parse, world))
    if "data" in said.get("options", {}) and "tasks" not in said:
        said["tasks"] = _count_tasks(worlds, said.get("split", "test"), said["options"])
    config = EvaluationConfig(worlds, tuple(policy), **said)
    patience = Patience(timeout, retries, max_failures, rate)
    executor = find_executor(workers, engine)
    out = out or _folder_of(config)
    folder = EvaluationFolder(out)
    try:
        results = run_evaluation(config, folder, concurrency, _progress(), patience, executor)
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
    console = Console(highlight=False)
    for line in report.lines:
        console.print(line, markup=False)
    for part in report.parts:
        if isinstance(part, Table):
            console.print(part.for_terminal())
    console.print(f"{folder.file}, report.html, policies.csv, pairs.csv, worlds.csv", markup=False)


def _count_tasks(worlds: Sequence[WorldLevel], split: str, options: Mapping[str, Any]) -> int:
    """Return the number of Tasks in a user's own data; the usual one where it has no end."""
    sizes = [
        make_world(name, level, **{**spec(name).evaluation, **options}).size(split)
        for name, level in worlds
    ]
    counted = [size for size in sizes if size is not None]
    # The least that an evaluation takes, so that it says which split has fewer.
    return max([2, *counted]) if counted else EvaluationConfig.tasks


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
