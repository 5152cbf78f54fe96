"""`tokengym view`: run folders as a page, served on loopback or written as one file."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer


def view(
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="folders of runs, sweeps, evaluations and certificates, folders that contain "
            "them, files of `tokengym ties --json`, or rollouts of any trainer: JSON Lines or "
            "Parquet, verifiers' results, logs of tinker-cookbook"
        ),
    ],
    port: Annotated[int, typer.Option(min=0, max=65535, help="port; any free one if 0")] = 0,
    html: Annotated[
        Path | None, typer.Option(help="write one self-contained page here instead of serving")
    ] = None,
    megabytes: Annotated[
        float, typer.Option(min=0.2, help="size limit of that page, which holds a sample")
    ] = 5.0,
    browser: Annotated[bool, typer.Option(help="open the page in a browser")] = True,
) -> None:
    """Show runs: what changed, curves, rollouts, groups side by side; live while a run trains.

    The page is served to this machine only. Ctrl-C stops the server.
    """
    from tokengym.agents.viewer import Viewer, open_runs, write_page

    if html is not None:
        write_page(paths, html, megabytes)
        typer.echo(f"page: {html} ({html.stat().st_size / 1e6:.1f} MB)")
        return
    runs = open_runs(paths)
    with Viewer(runs, port) as server:
        names = ", ".join(runs)
        server.read_ahead()
        typer.echo(f"{names}\n{server.url} (Ctrl-C stops)")
        if browser:
            webbrowser.open(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            typer.echo("")
