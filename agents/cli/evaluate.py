"""`tokengym evaluate`: what policies earn on held-out Tasks, compared in pairs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from tokengym.agents.cli.options import Data, EngineName, Workers, add_data
from tokengym.agents.cli.shown import progress_bars, show
from tokengym.agents.command_options import said_of, takes
from tokengym.agents.evaluation.chat_client import Patience
from tokengym.agents.evaluation.config import EvaluationConfig, WorldLevel
from tokengym.agents.evaluation.endpoint import EndpointError
from tokengym.agents.executors import find_executor
from tokengym.agents.settings import Settings, option
from tokengym.envs.core.errors import OptionError
from tokengym.envs.registry import make_world, spec

_INTERRUPTED = 130
_UNNAMED = "[]@/:. "


@dataclass(frozen=True)
class _Asked(Settings):
    """How endpoints are asked and paid, and what is written.

    Attributes: see their help.
    """

    concurrency: int = option(16, "requests to an endpoint at once", least=1)
    price_read: float | None = option(None, "dollars per million tokens read")
    price_written: float | None = option(None, "dollars per million tokens written")
    out: Path | None = option(None, "the folder to create or to resume")
    again: bool = option(False, "play Tasks again whose answers have changed", flag="--again")
    as_json: bool = option(False, "print JSON, not tables", flag="--json")
    verify: Path | None = option(
        None, "replay what a folder of an evaluation or a run holds, without a model"
    )


@takes(EvaluationConfig, Patience, _Asked)
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
    workers: Workers = None,
    engine: EngineName = "processes",
    *,
    said: dict[str, Any],
) -> None:
    """Evaluate policies on the same Tasks. The same command resumes a stopped evaluation.

    With --verify nothing is played: every saved rollout is replayed, and nothing may differ.
    """
    from tokengym.agents.evaluation.folder import EvaluationFolder
    from tokengym.agents.evaluation.report import evaluation_report, write_tables
    from tokengym.agents.evaluation.run import run_evaluation

    asked = said_of(_Asked, said)
    if asked.verify is not None:
        return _verify(asked.verify)
    if not world or not policy:
        raise OptionError("name at least one world and one --policy")
    add_data(said, data)
    worlds = tuple(map(WorldLevel.parse, world))
    if "data" in said.get("options", {}) and "tasks" not in said:
        said["tasks"] = _count_tasks(worlds, said.get("split", "test"), said["options"])
    prices = asked.price_read, asked.price_written
    paid = None if prices == (None, None) else (prices[0] or 0.0, prices[1] or 0.0)
    given = {"worlds": worlds, "policies": tuple(policy), "prices": paid}
    config = said_of(EvaluationConfig, said, **given)
    patience, executor = said_of(Patience, said), find_executor(workers, engine)
    out = asked.out or _folder_of(config)
    folder = EvaluationFolder(out)
    try:
        with progress_bars() as progress:
            results = run_evaluation(
                config, folder, asked.concurrency, progress, patience, executor, asked.again
            )
    except (KeyboardInterrupt, EndpointError) as error:
        stopped = isinstance(error, KeyboardInterrupt)
        typer.echo(
            f"{'stopped' if stopped else error}\nWhat was played is in {out}; the same command "
            "continues from there",
            err=True,
        )
        raise typer.Exit(_INTERRUPTED if stopped else 1) from error
    report = evaluation_report(config, results)
    write_tables(out, results)
    if asked.as_json:
        typer.echo(folder.file.read_text(encoding="utf-8"), nl=False)
        return
    files = f"{folder.file}, policies.csv, pairs.csv, worlds.csv"
    show(*report.lines, *report.tables, files, f"page: tokengym view {out}")


def _verify(saved: Path) -> None:
    """Replay every saved rollout of an evaluation or a run, and exit with 1 if something differs.

    Raises:
        OptionError: if there is no such folder, or its files are damaged.
    """
    from tokengym.agents.evaluation.folder import EvaluationFolder
    from tokengym.agents.evaluation.verify import verify_evaluation, verify_run
    from tokengym.agents.training.folder.run import RunFolder

    if not saved.exists():
        raise OptionError(f"{saved} does not exist")
    verified = (
        verify_run(RunFolder.open(saved))
        if RunFolder(saved).exists
        else verify_evaluation(EvaluationFolder.open(saved))
    )
    for difference in verified.differences:
        typer.echo(difference)
    if verified.differences:
        typer.echo(f"{len(verified.differences)} differences in {verified.rollouts} rollouts")
        raise typer.Exit(1)
    typer.echo(f"{verified.rollouts} rollouts replayed: all agree exactly")


def _count_tasks(worlds: Sequence[WorldLevel], split: str, options: Mapping[str, Any]) -> int:
    """Return the number of Tasks in a user's own data; the usual one where it has no end."""
    sizes = [
        make_world(name, level, **{**spec(name).evaluation, **options}).size(split)
        for name, level in worlds
    ]
    counted = [size for size in sizes if size is not None]
    # The least that an evaluation takes, so that it says which split has fewer.
    return max([2, *counted]) if counted else EvaluationConfig.tasks


def _folder_of(config: EvaluationConfig) -> Path:
    """Return a folder named after the settings, so that the same command finds it again."""
    worlds = "-".join(world.name for world in config.worlds[:3])
    named = [policy.partition("@http")[0] for policy in config.policies[:3]]
    policies = "-".join(Path(policy).name for policy in named)
    name = "".join("_" if letter in _UNNAMED else letter for letter in f"{worlds}-{policies}")
    return Path("evaluations") / f"{name[:80]}-{config.key}"
