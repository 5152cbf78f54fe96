"""`tokengym data`: build sets of real data, which a world plays through its option `data`."""

import os
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tokengym.agents.cli.data_audit import audit
from tokengym.agents.cli.data_days import days
from tokengym.envs.core.errors import OptionError

if TYPE_CHECKING:
    from rich.progress import Progress
    from rich.table import Table

data = typer.Typer(help="Build and audit sets of real data.", no_args_is_help=True)


@data.callback()
def _data() -> None:
    """Build and audit sets of real data."""


data.command()(audit)
data.command()(days)


@data.command()
def papers(
    source: Annotated[Path, typer.Argument(help="folder of the source, or a file of JSON lines")],
    out: Annotated[Path, typer.Argument(help="folder to write, for the option data of disruption")],
    kind: Annotated[
        str, typer.Option(help="openalex (a snapshot), openalex-api, sciscinet or jsonl")
    ],
    last_year: Annotated[
        int | None,
        typer.Option(help="last year the source covers completely; jsonl needs none"),
    ] = None,
    texts: Annotated[
        Path | None, typer.Option(help="OpenAlex folder with the texts of sciscinet's papers")
    ] = None,
    works_filter: Annotated[
        str | None,
        typer.Option("--filter", help="openalex-api: first fetch the works that match"),
    ] = None,
    most_pages: Annotated[
        int | None, typer.Option(min=1, help="openalex-api: maximum pages to fetch, 100 works each")
    ] = None,
    address: Annotated[str | None, typer.Option(help="openalex-api: address of the API")] = None,
    on_corrupt: Annotated[
        str, typer.Option(help="refuse damaged input, or skip it and list it in the manifest")
    ] = "refuse",
    target: Annotated[str, typer.Option(help="disruption, novelty or both")] = "disruption",
    labels: Annotated[
        str, typer.Option(help="threshold (CD beyond 0.1), or percentile by field and year")
    ] = "threshold",
    share: Annotated[float, typer.Option(help="percentile: share of papers in either tail")] = 0.25,
    window: Annotated[
        int, typer.Option(help="years after publication in which citations count")
    ] = 5,
    test_from: Annotated[
        int | None, typer.Option(help="first year of test (default: test gets about 15 %)")
    ] = None,
    balance: Annotated[
        str, typer.Option(help="balance classes per field-year, per split, or not (none)")
    ] = "field-year",
    shuffles: Annotated[
        int, typer.Option(help="shuffles for novelty scores; 0 skips novelty")
    ] = 20,
    seed: Annotated[int, typer.Option(help="seed of shuffles and random choices")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="worker processes")] = 1,
) -> None:
    """Label, balance, split and audit papers; after an interruption, run it again to continue."""
    from rich.console import Console

    from tokengym.envs.disruption.data import Recipe, build_papers, fetch_works
    from tokengym.envs.disruption.data.openalex_api import ADDRESS

    if on_corrupt not in ("refuse", "skip"):
        raise OptionError(f"--on-corrupt must be refuse or skip, got {on_corrupt!r}")
    if works_filter is None and (most_pages is not None or address is not None):
        raise OptionError("--most-pages and --address go with --filter")
    # Strings that the recipe checks itself, so that every caller gets the same message.
    names: dict[str, Any] = {"kind": kind, "target": target, "rule": labels, "balance": balance}
    recipe = Recipe(
        source=source,
        texts=texts,
        last_year=last_year,
        share=share,
        window=window,
        test_from=test_from,
        shuffles=shuffles,
        seed=seed,
        skip_corrupt=on_corrupt == "skip",
        **names,
    )
    if works_filter is not None and kind != "openalex-api":
        raise OptionError(f"--filter goes with --kind openalex-api, got {kind!r}")
    console = Console()
    with _make_bars(console) as bars, _make_executor(workers) as executor:
        progress = _StageProgress(bars).update
        if works_filter is not None:
            fetch_works(
                source,
                works_filter,
                most_pages=most_pages,
                address=address or ADDRESS,
                progress=progress,
            )
        manifest = build_papers(recipe, out, executor=executor, progress=progress)
    for name, reasons in manifest["skipped"].items():
        for reason in reasons:
            console.print(f"skipped in {name}: {reason}", markup=False, highlight=False)
    console.print(_make_table(manifest, out))


class _StageProgress:
    """A progress bar for each stage."""

    def __init__(self, bars: "Progress") -> None:
        self._bars = bars
        self._stages: dict[str, Any] = {}

    def update(self, stage: str, done: int, total: int) -> None:
        """Show how far a stage is."""
        if stage not in self._stages:
            self._stages[stage] = self._bars.add_task(stage, total=total)
        self._bars.update(self._stages[stage], completed=done, total=total)


def _make_bars(console: Any) -> "Progress":
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
    )


@contextmanager
def _make_executor(workers: int) -> Iterator[Executor | None]:
    """Start processes that end with this one, however it ends; none for a single worker."""
    if workers == 1:
        yield None
        return
    with ProcessPoolExecutor(workers, get_context("spawn"), _end_with_parent) as pool:
        yield pool


def _end_with_parent() -> None:
    """End this process as soon as its parent is gone; a pool's processes would wait forever."""
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _make_table(manifest: Mapping[str, Any], out: Path) -> "Table":
    from rich.table import Table

    audit, target = manifest["audit"], manifest["arguments"]["target"]
    targets = ["disruption", "novelty"] if target == "both" else [target]
    names = [
        name
        for one in targets
        for name in sorted({n for split in audit["counts"].values() for n in split[one]})
    ]
    table = Table("split", "papers", *names, "years", title=str(out), title_justify="left")
    for split, counts in audit["counts"].items():
        every = {name: count for one in targets for name, count in counts[one].items()}
        years = [int(year) for year in audit["by_year"][split]]
        table.add_row(
            split,
            f"{sum(counts[targets[0]].values()):,}",
            *(f"{every.get(name, 0):,}" for name in names),
            f"{min(years)}-{max(years)}" if years else "",
        )
    left_out = manifest["source"]["left_out"]
    table.caption = "; ".join(f"left out: {n:,} {reason}" for reason, n in left_out.items())
    return table
