"""`tokengym train`, `sft` and `dpo`: train a policy; `resume`: continue a run.

Without a key a policy trains on a local service of its own, on this machine.
"""

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperOption

from tokengym.agents.cli.failures import describe
from tokengym.agents.cli.options import Columns, Data, Level, WorldName, Yes, add_data, new_folder
from tokengym.agents.cli.shown import INTERRUPTED
from tokengym.agents.settings import settings_of
from tokengym.agents.settings.commands import takes
from tokengym.agents.training.config import CONFIGS, Command, JobConfig
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.presets import preset_for, preset_values, without_world
from tokengym.envs.core.errors import OptionError
from tokengym.envs.registry import spec_and_level
from tokengym.installed import require_extra

if TYPE_CHECKING:
    from tokengym.agents.training.folder.run_summary import RunSummary

ELSEWHERE = {
    "--lr": "--learning-rate",
    "--beta": "--kl",
    "--batch-size": "--groups",
    "--num-generations": "--group-size",
    "--max-new-tokens": "--max-tokens",
    "--max-completion-length": "--max-tokens",
    "--max-steps": "--steps",
    "--model-name": "--model",
    "--lora-rank": "--rank",
}
"""Options of other trainers, and ours."""
COLLAPSED = 3
"""Exit status of a run that lost its signal."""
FIRST = (
    *("level", "data", "run", "dry_run", "model", "base_url", "steps", "groups_per_batch"),
    *("group_size", "learning_rate", "max_tokens", "evaluation_tasks"),
)
"""The options that `--help` explains; the others it names, and `--help-all` explains all."""
_WHOLE_HELP = "--help-all"
Price = Annotated[
    float, typer.Option(min=0.0, max=1e6, help="dollars per million tokens, for --dry-run")
]


def training_command(name: Command) -> Callable[..., None]:
    """Return one of the commands that begin a run."""

    @takes(CONFIGS[name], change=without_world)
    def command(
        world: WorldName,
        said: dict[str, Any],
        level: Level = None,
        data: Data = None,
        columns: Columns = None,
        run: Annotated[
            Path | None, typer.Option(help="the run folder to create", parser=new_folder)
        ] = None,
        dry_run: Annotated[
            bool,
            typer.Option(
                "--dry-run",
                help="show the first prompt as the model reads it, one group of rollouts with "
                "rewards, and the tokens of the job; train nothing, write nothing",
            ),
        ] = False,
        price_read: Price = 0.0,
        price_written: Price = 0.0,
        price_trained: Price = 0.0,
        yes: Yes = False,
    ) -> None:
        require_extra("tinker", "training")
        add_data(said, data, columns)
        config = preset_for(CONFIGS[name], *world_of(world, level), **said)
        new = RunFolder(run if run is not None else _new_folder(config))
        if new.exists:
            raise OptionError(
                f"{new.folder} already holds a run; continue it with tokengym resume {new.folder}"
            )
        if dry_run:
            _rehearse(config, (price_read, price_written, price_trained))
        else:
            _end(train_run(config, new, ask=not yes))

    command.__name__ = name
    command.__doc__ = (
        f"{CONFIGS[name].__doc__}\n\n"
        "Its return on held-out Tasks is reported before and after. Without TINKER_API_KEY or "
        "--base-url the small policy that comes with the package, or the model you name, trains on "
        "a local service; with a key, the model you name trains on Tinker."
    )
    return command


class WorldHelp(TyperCommand):
    """A command that begins a run; its help has the defaults of the world that is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse a command line; options of other trainers are answered with ours.

        Raises:
            OptionError: if there is one.
        """
        own = {flag for param in self.params for flag in param.opts}
        for flag in (word.partition("=")[0] for word in args):
            if flag in ELSEWHERE and flag not in own:
                raise OptionError(f"there is no option {flag}; it is {ELSEWHERE[flag]} here")
        whole = _WHOLE_HELP in args
        args = [ctx.help_option_names[0] if word == _WHOLE_HELP else word for word in args]
        if set(args) & set(ctx.help_option_names):
            self._name_further(() if whole else self.params)
            rest = [word for word in args if word not in ctx.help_option_names]
            self._show_defaults(self.make_parser(ctx).parse_args(rest)[0])
        return super().parse_args(ctx, args)

    def _name_further(self, params: Sequence[Any]) -> None:
        """Hide options that few need, and name them at the end by group."""
        further: dict[str, list[str]] = {}
        for param in (one for one in self.params if isinstance(one, TyperOption)):
            param.hidden = param in params and not (param.required or param.name in FIRST)
            if param.hidden:
                group = param.rich_help_panel or "Further"
                further.setdefault(group, []).append(param.opts[0])
        named = (f"{group}: {' '.join(flags)}" for group, flags in further.items())
        self.epilog = "\n\n".join([*named, f"{_WHOLE_HELP} explains them all."] * bool(further))

    def _show_defaults(self, parsed: Mapping[str, Any]) -> None:
        # Values that were not typed are None in some versions of click, and a sentinel in others.
        typed: dict[str, Any] = {n: v for n, v in parsed.items() if isinstance(v, str | bool)}
        if not typed.get("world"):
            return
        kind = next(kind for command, kind in CONFIGS.items() if command == self.name)
        world = world_of(typed["world"], typed.get("level"))
        named = {name: typed.get(name) for name in ("model", "self_play")}
        values = preset_values(kind, *world, **{k: v for k, v in named.items() if v})
        settings = settings_of(kind)
        for option in self.params:
            if isinstance(option, TyperOption) and option.name in settings:
                setting = settings[option.name]
                default = values.get(option.name, setting.default)
                option.help = replace(setting, default=default).described


def resume(
    run: Annotated[Path, typer.Argument(help="a run folder")],
    steps: Annotated[
        int | None, typer.Option(min=1, help="optimizer steps in all (default: the run's)")
    ] = None,
    yes: Yes = False,
) -> None:
    """Continue a run after the last state it saved."""
    require_extra("tinker", "training")
    opened = RunFolder.open(run)
    if steps is None and _told_finished(opened):
        return
    config = opened.config if steps is None else replace(opened.config, steps=steps)
    _end(train_run(config, opened, ask=not yes))


def _told_finished(run: RunFolder) -> bool:
    """Return how a complete run that has ended can be continued."""
    from tokengym.agents.viewer import REPORT

    outcome, report = run.outcome, run.folder / REPORT
    if outcome is None or not report.is_file():
        return False
    typer.echo(
        f"{run.folder} is finished: {run.steps_done} of {run.config.steps} steps; --steps "
        f"with a larger number trains on; report: {report}"
    )
    _end(outcome)
    return True


def _rehearse(config: JobConfig, prices: Sequence[float]) -> None:
    from tokengym.agents.training.connection import ServiceRefusedError
    from tokengym.agents.training.dry_run import dry_run
    from tokengym.agents.training.job import Job

    try:
        for line in dry_run(Job.resolve(config), prices):
            typer.echo(line)
    except ServiceRefusedError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from error


def _end(outcome: "RunSummary") -> None:
    if outcome.collapse is not None:
        raise typer.Exit(COLLAPSED)


def train_run(config: JobConfig, run: RunFolder, *, ask: bool) -> "RunSummary":
    """Run or resume a job in a folder, and show how it goes; what every training command does.

    Args:
        config: of the job.
        run: its folder.
        ask: whether to ask before a key is used.

    Raises:
        typer.Exit: if it was interrupted, or its service ended or refused it.
    """
    from tokengym.agents.service import ServiceDiedError
    from tokengym.agents.training.connection import ServiceRefusedError, ServiceTarget
    from tokengym.agents.training.progress import Progress

    # Unreachable services are refused before much is loaded.
    target = ServiceTarget.resolve(config)
    from tokengym.agents.evaluation.experiment import run_experiment
    from tokengym.agents.training.cost import job_cost
    from tokengym.agents.training.job import Job
    from tokengym.agents.viewer import REPORT, write_page
    from tokengym.agents.viewer.run_report import run_report

    progress = Progress()
    job = Job.resolve_on(target, config)
    for notice in filter(None, job.notices):
        progress.say(notice)
    if config.max_tokens is None:
        progress.say(f"replies of at most {job.max_tokens} tokens; --max-tokens sets another limit")
    if not job.target.local:
        progress.say(f"with the longest replies this job will use {job_cost(job)}")
        if ask and sys.stdin.isatty():
            typer.confirm("start?", abort=True)
    try:
        outcome = run_experiment(job, run, progress)
        write_page([run.folder], run.folder / REPORT)
    except KeyboardInterrupt as error:
        progress.say(f"stopped\n{_resume_advice(run, local=target.local)}")
        raise typer.Exit(INTERRUPTED) from error
    except (ServiceDiedError, ServiceRefusedError, OSError, MemoryError) as error:
        progress.say(f"{describe(error)}\n{_resume_advice(run, local=target.local)}")
        raise typer.Exit(1) from error
    report = run_report(run)
    for line in filter(None, [report.warning, *report.lines]):
        progress.say(line)
    progress.show(report.tables[0].for_terminal())
    progress.say(f"report: {run.folder / REPORT}")
    return outcome


def world_of(name: str, level: str | None) -> tuple[str, str | None]:
    """Read `forecast`, or `forecast:easy`, and a level that may be given by itself.

    Returns:
        id and level, `None` where no level is named.

    Raises:
        UnknownWorldError, OptionError: if the world or a level is unknown, or two are given.
    """
    world, named = spec_and_level(name, level)
    world.require_level(named)
    return world.id, named if level is not None or ":" in name else None


def _new_folder(config: JobConfig) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    return Path("runs") / f"{config.tag}-{stamp}"


def _resume_advice(run: RunFolder, *, local: bool) -> str:
    """State what is kept of an interrupted run, and how to resume it.

    Args:
        run: the run.
        local: whether its states are in its own folder, and not at a hosted service.
    """
    if not run.exists:
        return "nothing was begun"
    saved = max(run.saved_steps, default=0)
    rows = run.checkpoints()
    passing = any(row.get("rolling") and row["batch"] == saved for row in rows)
    days = ", and the service keeps it for 30 days" if passing and not local else ""
    state = f"The state after step {saved} is saved{days}" if saved else "No step is saved yet"
    return f"{state}; resume with: tokengym resume {shlex.quote(str(run.folder))}"
