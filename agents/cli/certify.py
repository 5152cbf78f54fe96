"""`tokengym certify`: certificates of anybody's environments; fails if a requirement is not met."""

import math
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from tokengym.agents.certify.bench import CertifySettings
from tokengym.agents.certify.sandbox import Limits
from tokengym.agents.cli.shown import show
from tokengym.agents.settings import Settings, name_values, option
from tokengym.agents.settings.commands import said_of, takes
from tokengym.envs.core.errors import OptionError, TokengymError

if TYPE_CHECKING:
    from tokengym.agents.certify.certificate import Certificate
    from tokengym.agents.certify.policy import Requirement

_CERTIFICATE = "certificate.json"


class _RunFirst(TyperGroup):
    """Take what is no subcommand for the arguments of `run`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the name of the usual subcommand before arguments that name none."""
        if not args or args[0] not in self.commands:
            args = ["run", *(args or ("--help",))]
        return super().parse_args(ctx, args)


certify = typer.Typer(cls=_RunFirst, help="Check environments and reward functions.")


def _pair(text: str) -> list[float]:
    """Read `LOW,HIGH`."""
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        low, high = 0.0, 0.0
    if not -math.inf < low < high < math.inf:
        raise OptionError(f"--declared takes LOW,HIGH, finite, the lower first, got {text!r}")
    return [low, high]


def _template(text: str) -> str:
    """Read a format with one place for the answer."""
    try:
        given = text.format("\n")
    except (ValueError, LookupError):
        given = ""
    if "\n" not in given:
        raise OptionError(
            f"--reply-template has {{}} for the answer, and doubles other braces, got {text!r}"
        )
    return text


@dataclass(frozen=True)
class _Asked(Settings):
    """Targets, requirements and files.

    Attributes: see their help.
    """

    prompts: Path | None = option(None, "JSON lines with the prompts and answers of a grader")
    options: Mapping[str, Any] = option({}, "name=value, an option of the source", flag="--option")
    harder: Mapping[str, Any] = option({}, "name=value, a setting that should be harder")
    targets: Path | None = option(None, "file of targets, one per line with its own options")
    reply_template: str = option("", "how a reply states its answer {}", read=_template)
    declared: str = option("", "LOW,HIGH: lowest and highest return, if known", read=_pair)
    only: tuple[str, ...] = option((), "id of a check to run alone")
    require: tuple[str, ...] = option(
        (), "requirement: defects (default), risks, properties, a check's id, or ID<=VALUE"
    )
    waivers: Path | None = option(None, "a TOML file of failures that are accepted")
    baseline: Path | None = option(None, "folder of earlier certificates: only what is new fails")
    summary: Path | None = option(None, "Markdown file to append the results to, as in CI")
    resume: bool = option(False, "skip targets whose certificate in --out has these settings")
    workers: int = option(1, "targets certified at once", least=1)
    out: Path = option(Path("certificates"), "folder of the certificates")


@certify.command("run")
@takes(_Asked, CertifySettings, Limits)
def run(
    target: Annotated[
        list[str] | None,
        typer.Argument(
            help="KIND:NAME (cookbook, gymnasium, openenv, reasoning-gym, textarena, "
            "verifiers), FILE.py:NAME, a file or folder of recorded rollouts, or a world, such "
            "as energy:day"
        ),
    ] = None,
    *,
    said: dict[str, Any],
) -> None:
    """Check environments and reward functions; exit with 1 if a requirement is not met.

    `tokengym certify FILE.py:NAME --prompts FILE` checks a reward function, and
    `tokengym certify diff OLD NEW` shows changes between two certificates.
    """
    from rich.console import Console
    from rich.progress import Progress

    from tokengym.agents.certify.certificate import certify_target, read_certificate
    from tokengym.agents.certify.page import save
    from tokengym.agents.certify.policy import Requirement, read_waivers, waive

    settings, limits = said_of(CertifySettings, said), said_of(Limits, said)
    asked = said_of(_Asked, said)
    listed = asked.targets.read_text(encoding="utf-8-sig").splitlines() if asked.targets else ()
    named = [name for line in (*(target or ()), *listed) if (name := line.strip())]
    if not named:
        raise OptionError("name at least one TARGET")
    requirements = [*map(Requirement.parse, asked.require or ("defects",))]
    accepted = read_waivers(asked.waivers) if asked.waivers else []
    also = {"prompts": str(asked.prompts or ""), "declared": asked.declared}
    also["reply_template"] = asked.reply_template
    common = {**asked.options, **{name: value for name, value in also.items() if value}}
    bars = Progress(*Progress.get_default_columns(), console=Console(stderr=True), transient=True)
    all_of_them = bars.add_task("targets", total=len(named), visible=len(named) > 1)

    def one(line: str) -> "Certificate | TokengymError":
        name, *own = map(str.strip, line.split("--option"))
        bar = bars.add_task(name, total=None, start=False)
        folder = asked.out / _folder(line)

        def progress(check: str, done: int, total: int) -> None:
            bars.start_task(bar)
            bars.update(bar, description=f"{name}: {check}", completed=done, total=total)

        try:
            options = common | name_values(own, "--option")
            if asked.resume and not asked.only and (folder / _CERTIFICATE).exists():
                known = read_certificate(folder)
                if known.holds_for(name, options, settings, asked.harder):
                    return waive(known, accepted)
            # Findings are saved after each check, so that an interrupted run leaves them behind.
            keep = None if asked.only else partial(save, folder=folder)
            run = partial(certify_target, harder=asked.harder, only=asked.only, progress=progress)
            made = waive(run(name, options, settings, limits, keep=keep), accepted)
        except TokengymError as error:
            return error
        finally:
            bars.remove_task(bar)
            bars.advance(all_of_them)
        if not asked.only:
            save(made, folder)
        return made

    with bars, ThreadPoolExecutor(asked.workers) as pool:
        # One at a time in this thread, which an interrupt reaches at once.
        each = map(one, named) if asked.workers == 1 else pool.map(one, named)
        try:
            results = list(zip(named, each, strict=True))
        except KeyboardInterrupt:  # what has begun ends, the rest waits for --resume
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    if not asked.only and not all(isinstance(made, TokengymError) for _, made in results):
        typer.echo(f"{asked.out}: {_CERTIFICATE} of each target; see tokengym view {asked.out}")
    _end(results, requirements, asked)


def _folder(line: str) -> str:
    """Return the name of the folder that holds the certificate of a target and its options."""
    return re.sub(r"[^\w.-]+", "_", line)


def _end(
    results: "Sequence[tuple[str, Certificate | TokengymError]]",
    requirements: "Sequence[Requirement]",
    asked: _Asked,
) -> None:
    """Show the results; the exit status is that of what is required."""
    from tokengym.agents.certify.certificate import read_certificate
    from tokengym.agents.certify.page import certificate_report, step_summary

    unmet = []
    for name, made in results:
        if isinstance(made, TokengymError):
            if len(results) == 1:
                raise made
            unmet.append(f"{name}: {made}")
            continue
        report = certificate_report(made)
        tables = report.tables if len(results) == 1 else ()
        show(*report.lines, *tables, title=report.title)
        before = asked.baseline / _folder(name) if asked.baseline else None
        old = read_certificate(before) if before and before.exists() else None
        known = {found.check for found in old.findings if found.counts} if old else set()
        broken = {
            (found.check, requirement.text): found
            for requirement in requirements
            for found in requirement.unmet(made)
            if found.check not in known
        }
        unmet += [f"{made.target}: {check} breaks {text}" for check, text in broken]
        if asked.summary:
            with asked.summary.open("a", encoding="utf-8") as file:
                required = [requirement.text for requirement in requirements]
                file.write(step_summary(made, required, [*broken.values()], old))
    for line in unmet:
        typer.secho(line, fg="red", err=True)
    if unmet:
        raise typer.Exit(1)


@certify.command("diff")
def diff(
    old: Annotated[Path, typer.Argument(help="a certificate, or its folder")],
    new: Annotated[Path, typer.Argument(help="another one")],
) -> None:
    """Show what changed between two certificates; exit with 1 if a check fails that did not."""
    from tokengym.agents.certify.certificate import read_certificate
    from tokengym.agents.certify.policy import changes
    from tokengym.agents.reports.report import Table

    before, after = read_certificate(old), read_certificate(new)
    rows = changes(before, after)
    title = f"{before.target} ({before.package}) to {after.target} ({after.package})"
    if not rows:
        typer.echo(f"{title}: nothing changed")
        return
    show(Table(("check", "before", "after", "found now"), rows, title))
    earlier = {found.check for found in before.findings if found.counts}
    if any(found.counts and found.check not in earlier for found in after.findings):
        raise typer.Exit(1)
