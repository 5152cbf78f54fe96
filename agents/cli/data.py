"""`tokengym data`: build and audit sets of real data for a world's option `data`."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tokengym.agents.cli.data_audit import audit
from tokengym.agents.executors import process_pool
from tokengym.envs.core.errors import OptionError

if TYPE_CHECKING:
    from rich.progress import Progress
    from rich.table import Table

data = typer.Typer(help="Build and audit sets of real data.", no_args_is_help=True)


@data.callback()
def _data() -> None:
    """Build and audit sets of real data."""


data.command()(audit)


@data.command()
def papers(
    source: Annotated[Path, typer.Argument(help="folder of the source, or a file")],
    out: Annotated[Path, typer.Argument(help="folder to write, for the option data of disruption")],
    kind: Annotated[
        str | None,
        typer.Option(help="openalex, sciscinet or jsonl (default: what the records look like)"),
    ] = None,
    last_year: Annotated[
        int | None, typer.Option(help="last year the source covers completely; jsonl needs none")
    ] = None,
    texts: Annotated[
        Path | None, typer.Option(help="OpenAlex folder with the texts of sciscinet's papers")
    ] = None,
    works_filter: Annotated[
        str | None,
        typer.Option("--filter", help="first fetch the works of OpenAlex's API that match"),
    ] = None,
    most_pages: Annotated[
        int | None, typer.Option(min=1, help="of --filter: maximum pages to fetch, 100 works each")
    ] = None,
    address: Annotated[str | None, typer.Option(help="of --filter: address of the API")] = None,
    on_corrupt: Annotated[
        str, typer.Option(help="refuse damaged input, or skip it and list it in the manifest")
    ] = "refuse",
    keep_withheld: Annotated[
        bool, typer.Option("--keep-withheld", help="judge retracted works and paratext too")
    ] = False,
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

    from tokengym.envs.disruption.data import Recipe, build_papers, detect_kind, fetch_works
    from tokengym.envs.disruption.data.openalex_api import ADDRESS

    _check_on_corrupt(on_corrupt)
    if works_filter is None and (most_pages is not None or address is not None):
        raise OptionError("--most-pages and --address go with --filter")
    if works_filter is not None and kind not in (None, "openalex"):
        raise OptionError(f"--filter fetches works of openalex, got --kind {kind!r}")
    if works_filter is not None:
        kind = "openalex"
    # Strings that the recipe checks itself, so that every caller gets the same message.
    names: dict[str, Any] = {
        "kind": detect_kind(source) if kind is None else kind,
        "target": target,
        "rule": labels,
        "balance": balance,
    }
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
        keep_withheld=keep_withheld,
        **names,
    )
    console = Console()
    with _make_bars(console) as bars, _pool(workers) as executor:
        progress = _stages(bars)
        if works_filter is not None:
            fetch_works(
                source,
                works_filter,
                most_pages=most_pages,
                address=address or ADDRESS,
                progress=progress,
            )
        manifest = build_papers(recipe, out, executor=executor, progress=progress)
    _print_left_out(console, manifest["skipped"], manifest["source"]["ignored_files"])
    console.print(_make_table(manifest, out))


@data.command()
def scores(
    source: Annotated[Path, typer.Argument(help="folder of the source, or a file")],
    out: Annotated[
        list[Path] | None,
        typer.Option(help="table to write, .csv or .parquet; several times for both"),
    ] = None,
    kind: Annotated[
        str | None, typer.Option(help="openalex or sciscinet (default: what the records look like)")
    ] = None,
    window: Annotated[
        int, typer.Option(help="years after publication in which citations count")
    ] = 5,
    least_shared: Annotated[
        int, typer.Option("--l", min=1, help="references a citer must share to count in DI_l")
    ] = 5,
    last_year: Annotated[
        int | None,
        typer.Option(help="last year the source covers completely (default: its latest)"),
    ] = None,
    shuffles: Annotated[int, typer.Option(help="shuffles for z-scores; 0 skips them")] = 20,
    on_corrupt: Annotated[str, typer.Option(help="refuse damaged input, or skip it")] = "refuse",
    seed: Annotated[int, typer.Option(help="seed of shuffles")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="worker processes")] = 1,
) -> None:
    """Write CD, mCD, DI_l and the z-scores of Uzzi et al. of every work as a table."""
    from rich.console import Console

    from tokengym.envs.disruption.data import Recipe, detect_kind, score_works

    _check_on_corrupt(on_corrupt)
    names: dict[str, Any] = {"kind": detect_kind(source) if kind is None else kind}
    recipe = Recipe(
        source=source,
        last_year=last_year,
        window=window,
        shuffles=shuffles,
        seed=seed,
        skip_corrupt=on_corrupt == "skip",
        **names,
    )
    tables = out or [Path("scores.csv")]
    console = Console()
    with _make_bars(console) as bars, _pool(workers) as executor:
        summary = score_works(
            recipe, tables, least_shared=least_shared, executor=executor, progress=_stages(bars)
        )
    _print_left_out(console, summary.skipped, summary.ignored)
    lines = [
        f"{summary.records:,} records read, {summary.refused:,} refused; {summary.works:,} works "
        f"with {summary.citations:,} citations among them",
        f"CD{window} of {summary.cd:,}: {summary.disruptive:,} above 0.1, "
        f"{summary.consolidating:,} below -0.1; z-scores of {summary.novelty:,}",
        ", ".join(map(str, tables)),
    ]
    for line in lines:
        console.print(line, markup=False, highlight=False)


def _check_on_corrupt(on_corrupt: str) -> None:
    if on_corrupt not in ("refuse", "skip"):
        raise OptionError(f"--on-corrupt must be refuse or skip, got {on_corrupt!r}")


def _print_left_out(
    console: Any, skipped: Mapping[str, Sequence[str]], ignored: Mapping[str, str]
) -> None:
    for name, reasons in skipped.items():
        for reason in reasons:
            console.print(f"skipped in {name}: {reason}", markup=False, highlight=False)
    for name, held in ignored.items():
        console.print(f"not read: {name} ({held})", markup=False, highlight=False)


def _stages(bars: "Progress") -> Callable[[str, int, int], None]:
    """Return what shows how far a stage is, each stage in a bar of its own."""
    stages: dict[str, Any] = {}

    def update(stage: str, done: int, total: int) -> None:
        if stage not in stages:
            stages[stage] = bars.add_task(stage, total=total)
        bars.update(stages[stage], completed=done, total=total)

    return update


def _pool(workers: int) -> AbstractContextManager[Executor | None]:
    return nullcontext() if workers == 1 else process_pool(workers)


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


def _make_table(manifest: Mapping[str, Any], out: Path) -> "Table":
    from rich.table import Table

    audit, target = manifest["audit"], manifest["arguments"]["target"]
    targets = ["disruption", "novelty"] if target == "both" else [target]
    names = [
        name
        for aim in targets
        for name in sorted({n for split in audit["counts"].values() for n in split[aim]})
    ]
    table = Table("split", "papers", *names, "years", title=str(out), title_justify="left")
    for split, counts in audit["counts"].items():
        every = {name: count for aim in targets for name, count in counts[aim].items()}
        years = [int(year) for year in audit["by_year"][split]]
        table.add_row(
            split,
            f"{sum(counts[targets[0]].values()):,}",
            *(f"{every.get(name, 0):,}" for name in names),
            f"{min(years)}-{max(years)}" if years else "",
        )
    left_out = {**manifest["source"]["left_out"], **manifest["source"]["withheld"]}
    table.caption = "; ".join(f"left out: {n:,} {reason}" for reason, n in left_out.items())
    return table
