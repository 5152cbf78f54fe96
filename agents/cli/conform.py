"""`tokengym conform`: whether a Tinker server does what the SDK promises."""

from pathlib import Path
from typing import Annotated

import typer

from tokengym.installed import require_extra


def conform(
    url: Annotated[str, typer.Argument(help="address of the server")],
    *,
    model: Annotated[
        str, typer.Option(help="name of the model there; the first that is served if not given")
    ] = "",
    wait: Annotated[
        float, typer.Option(min=1.0, help="seconds without an answer before giving up")
    ] = 60.0,
) -> None:
    """Try a server of the Tinker protocol; exit with status 1 if it lacks anything.

    Uses an adapter of its own, and reads and samples about 20,000 tokens. Where the model is a
    directory on this machine, samples are also tested against its distribution.
    """
    require_extra("tinker", "tokengym conform")
    from tokengym.agents.cli.probe import judge_sampling
    from tokengym.agents.conform.bench import TrialServer
    from tokengym.agents.conform.trials import TRIALS, TrialFinding, try_server
    from tokengym.agents.execution.run_async import run_async
    from tokengym.agents.probe.verdict import VerdictKind
    from tokengym.agents.training.connection import Connection, ServiceTarget

    bench = TrialServer(url, model)
    with Connection.open(ServiceTarget(model, url, local=False)):
        findings = run_async(try_server(bench, typer.echo, wait=wait))
    untried = len(TRIALS) - len(findings)
    if bench.fresh and Path(bench.model).is_dir():
        replies = [(one.prompt, one.tokens, [1] * len(one.tokens)) for one in bench.fresh]
        verdict = judge_sampling(Path(bench.model), replies)
        wrong = verdict.kind is not VerdictKind.FOLLOWS
        lack, note = (str(verdict), "") if wrong else ("", str(verdict))
        findings.append(TrialFinding("distribution", lack, note))
        typer.echo(str(findings[-1]))
    lacking = sum(bool(row.missing) for row in findings)
    typer.echo(f"{len(findings) - lacking} as promised, {lacking} not, {untried} not tried")
    if lacking:
        raise typer.Exit(1)
