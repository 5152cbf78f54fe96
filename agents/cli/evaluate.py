"""`tokengym evaluate`: what policies earn on held-out Tasks, compared in pairs."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from tokengym.agents.cli.options import Columns, Data, Workers, add_data, new_folder
from tokengym.agents.cli.shown import INTERRUPTED, show
from tokengym.agents.evaluation.config import EvaluationConfig
from tokengym.agents.evaluation.endpoint import EndpointError
from tokengym.agents.evaluation.plan import EvaluationPlan
from tokengym.agents.execution.executors import find_executor
from tokengym.agents.settings.commands import takes
from tokengym.envs.core.errors import OptionError
from tokengym.envs.registry import make_world, spec_and_level

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
    data: Data = None,
    columns: Columns = None,
    workers: Workers = 1,
    out: Annotated[
        Path | None, typer.Option(help="the folder to create or to resume", parser=new_folder)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON, not tables")] = False,
    whole: Annotated[bool, typer.Option("--all", help="print every measure")] = False,
    verify: Annotated[
        Path | None,
        typer.Option(help="replay what a folder of an evaluation or a run holds, without a model"),
    ] = None,
    *,
    said: dict[str, Any],
) -> None:
    """Evaluate policies on the same Tasks. The same command resumes a stopped evaluation.

    With --verify no policy plays: every saved rollout is replayed and must come out the same.
    """
    from tokengym.agents.evaluation.folder import EvaluationFolder
    from tokengym.agents.evaluation.report import evaluation_report
    from tokengym.agents.evaluation.run import run_evaluation
    from tokengym.agents.reports.progress import progress_bars

    if verify is not None:
        return _verify(verify)
    if not world or not policy:
        raise OptionError("name at least one world and one --policy")
    add_data(said, data, columns)
    if "data" in said.get("options", {}) and "tasks" not in said:
        said["tasks"] = _count_tasks(world, said.get("split", "test"), said["options"])
    config = EvaluationConfig(tuple(world), tuple(policy), **said)
    plan = config.plan
    out = out or _folder_of(plan)
    folder = EvaluationFolder(out)
    try:
        with progress_bars() as progress:
            executor = find_executor(workers, partial(progress, "scripted policies"))
            results = run_evaluation(config, folder, progress, executor)
    except (KeyboardInterrupt, EndpointError) as error:
        stopped = isinstance(error, KeyboardInterrupt)
        typer.echo(
            f"{'stopped' if stopped else error}\nThe rollouts so far are in {out}; the same "
            "command continues from there",
            err=True,
        )
        raise typer.Exit(INTERRUPTED if stopped else 1) from error
    if as_json:
        typer.echo(folder.file.read_text(encoding="utf-8"), nl=False)
        return
    report = evaluation_report(plan, folder.saved().scales, results, whole=whole)
    notes = dict.fromkeys(folder.rollouts.notes)
    show(*notes, *report.lines, *report.tables, f"{folder.file}", f"page: tokengym view {out}")


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
    typer.echo(f"{verified.rollouts} rollouts replayed: all agree")


def _count_tasks(worlds: Sequence[str], split: str, options: Mapping[str, Any]) -> int:
    """Return the number of Tasks in a user's own data; the usual one where it has no end."""
    sizes = [
        make_world(one, level, **{**one.evaluation, **options}).size(split)
        for one, level in map(spec_and_level, worlds)
    ]
    counted = [size for size in sizes if size is not None]
    # The least that an evaluation takes, so that it says which split has fewer.
    return max([2, *counted]) if counted else EvaluationConfig.tasks


def _folder_of(plan: EvaluationPlan) -> Path:
    """Return a folder named after the plan, so that the same command finds it again."""
    worlds = "-".join(place.name for place in plan.places[:3])
    named = [policy.partition("@http")[0] for policy in plan.policies[:3]]
    policies = "-".join(Path(policy).name for policy in named)
    name = "".join("_" if letter in _UNNAMED else letter for letter in f"{worlds}-{policies}")
    return Path("evaluations") / f"{name[:80]}-{plan.key}"
