"""`tokengym certify`: certificates of anybody's environments; fails if a requirement is not met."""

import math
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from tokengym.agents.certify.bench import CertifySettings
from tokengym.agents.certify.sandbox import Limits
from tokengym.agents.command_options import takes
from tokengym.agents.settings import name_values, settings_of
from tokengym.envs.core.errors import OptionError, TokengymError

if TYPE_CHECKING:
    from tokengym.agents.certify.certificate import Certificate
    from tokengym.agents.certify.policy import Requirement

_CERTIFICATE = "certificate.json"


class _RunFirst(TyperGroup):
    """Take what is no subcommand for the arguments of `run`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the name of the usual subcommand before arguments that name none."""
        if args and args[0] not in (*self.commands, "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


certify = typer.Typer(
    cls=_RunFirst,
    no_args_is_help=True,
    help="Certify environments: `tokengym certify TARGET` is short for `certify run TARGET`.",
)


@certify.command("run")
@takes(CertifySettings, Limits)
def run(
    target: Annotated[
        list[str] | None,
        typer.Argument(
            help="KIND:NAME (cookbook, gymnasium, openenv, reasoning-gym, textarena, verifiers, "
            "verifiers-v1), FILE.py:NAME, a file or folder of recorded rollouts, or a world, such "
            "as energy:day"
        ),
    ] = None,
    *,
    said: dict[str, Any],
    targets: Annotated[
        Path | None,
        typer.Option(help="a file with one target a line, each with options of its own behind it"),
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option("--option", help="name=value, an option of the source")
    ] = None,
    harder: Annotated[
        list[str] | None,
        typer.Option(help="name=value, an option of a setting that is said to be harder"),
    ] = None,
    prompts: Annotated[
        Path | None, typer.Option(help="JSON lines with the prompts of a reward function")
    ] = None,
    declared: Annotated[
        str | None, typer.Option(help="LOW,HIGH: lowest and highest return, if they are known")
    ] = None,
    only: Annotated[list[str] | None, typer.Option(help="the id of a check to run alone")] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(
            help="what must hold: defects, risks, properties, a check's id, or ID<=VALUE "
            "(default: defects)"
        ),
    ] = None,
    waivers: Annotated[
        Path | None, typer.Option(help="a TOML file of failures that are accepted")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="keep certificates of equal settings in --out")
    ] = False,
    workers: Annotated[int, typer.Option(min=1, help="targets at a time")] = 1,
    out: Annotated[Path, typer.Option(help="folder of the certificates")] = Path("certificates"),
) -> None:
    """Certify environments."""
    from rich.console import Console
    from rich.progress import Progress

    from tokengym.agents.certify.certificate import certify_target, read_certificate
    from tokengym.agents.certify.page import save
    from tokengym.agents.certify.policy import Requirement, read_waivers, waive

    listed = targets.read_text(encoding="utf-8-sig").splitlines() if targets else ()
    named = [name for line in (*(target or ()), *listed) if (name := line.strip())]
    if not named:
        raise OptionError("name at least one TARGET")
    requirements = [Requirement.parse(text) for text in require or ["defects"]]
    accepted = read_waivers(waivers) if waivers else []
    limits = Limits(**{name: said.pop(name) for name in settings_of(Limits) if name in said})
    settings = CertifySettings(**said)
    common = name_values(option or [], "--option")
    hard = name_values(harder or [], "--harder")
    common |= {"prompts": str(prompts)} if prompts else {}
    common |= {"declared": _pair(declared)} if declared else {}
    bars = Progress(*Progress.get_default_columns(), console=Console(stderr=True), transient=True)
    all_of_them = bars.add_task("targets", total=len(named), visible=len(named) > 1)

    def one(line: str) -> "Certificate | TokengymError":
        name, *own = map(str.strip, line.split("--option"))
        bar = bars.add_task(name, total=None, start=False)
        folder = out / re.sub(r"[^\w.-]+", "_", line)
        try:
            options = common | name_values(own, "--option")
            if resume and not only and (folder / _CERTIFICATE).exists():
                known = read_certificate(folder)
                if known.holds_for(name, options, settings, hard):
                    return waive(known, accepted)

            def progress(check: str, done: int, total: int) -> None:
                bars.start_task(bar)
                bars.update(bar, description=f"{name}: {check}", completed=done, total=total)

            made = certify_target(
                name, options, settings, limits, harder=hard, only=only or (), progress=progress
            )
        except TokengymError as error:
            return error
        finally:
            bars.remove_task(bar)
            bars.advance(all_of_them)
        if not only:
            save(waive(made, accepted), folder)
        return waive(made, accepted)

    with bars, ThreadPoolExecutor(workers) as pool:
        # One at a time in this thread, which an interrupt reaches at once.
        each = map(one, named) if workers == 1 else pool.map(one, named)
        try:
            results = list(zip(named, each, strict=True))
        except KeyboardInterrupt:  # what has begun ends, the rest waits for --resume
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    _end(results, requirements, out, saved=not only)


def _end(
    results: "Sequence[tuple[str, Certificate | TokengymError]]",
    requirements: "Sequence[Requirement]",
    out: Path,
    *,
    saved: bool,
) -> None:
    """Show the results and exit by what is required."""
    from rich.console import Console

    from tokengym.agents.certify.page import certificate_report

    console = Console(highlight=False, markup=False)
    unmet = False
    failed = [(name, error) for name, error in results if isinstance(error, TokengymError)]
    for _, made in results:
        if isinstance(made, TokengymError):
            continue
        report = certificate_report(made)
        console.print(report.title, style="bold")
        for line in report.lines:
            console.print(line, soft_wrap=True)
        for table in report.tables if len(results) == 1 else ():
            console.print(table.for_terminal())
        for requirement in requirements:
            for found in requirement.unmet(made):
                unmet = True
                typer.secho(
                    f"{made.target}: {found.check} breaks {requirement.text}", fg="red", err=True
                )
    for name, error in failed:
        if len(results) == 1:
            raise error
        typer.secho(f"{name}: {error}", fg="red", err=True)
    if saved:
        console.print(f"{out}: {_CERTIFICATE} and certificate.html of each target")
    if unmet or failed:
        raise typer.Exit(1)


@certify.command("diff")
def diff(
    old: Annotated[Path, typer.Argument(help="a certificate, or its folder")],
    new: Annotated[Path, typer.Argument(help="another one")],
) -> None:
    """Show what changed between two certificates; exit with 1 if a check fails that did not."""
    from rich.console import Console
    from rich.table import Table

    from tokengym.agents.certify.certificate import read_certificate
    from tokengym.agents.certify.policy import changes

    before, after = read_certificate(old), read_certificate(new)
    rows = changes(before, after)
    title = f"{before.target} ({before.package}) to {after.target} ({after.package})"
    if not rows:
        typer.echo(f"{title}: nothing changed")
        return
    table = Table("check", "before", "after", "found now", title=title, title_justify="left")
    for row in rows:
        table.add_row(*row)
    Console(markup=False).print(table)
    earlier = {found.check for found in before.findings if found.counts}
    if any(found.counts and found.check not in earlier for found in after.findings):
        raise typer.Exit(1)


def _pair(text: str) -> list[float]:
    """Read `LOW,HIGH`."""
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        low, high = 0.0, 0.0
    if not -math.inf < low < high < math.inf:
        raise OptionError(f"--declared takes LOW,HIGH, finite, the lower first, got {text!r}")
    return [low, high]
