"""`tokengym data`: build and audit sets of real data for a world's option `data`."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tokengym.agents.cli.data_audit import audit
from tokengym.agents.cli.shown import show
from tokengym.agents.execution.executors import process_pool
from tokengym.agents.settings import Settings, option, settings_of
from tokengym.agents.settings.commands import said_of, takes
from tokengym.envs.core.errors import OptionError

if TYPE_CHECKING:
    from tokengym.agents.reports.report import Table
    from tokengym.envs.disruption.data import Recipe

data = typer.Typer(help="Build and audit sets of real data.", no_args_is_help=True)

Source = Annotated[Path, typer.Argument(help="folder of the source, or a file")]


def _skips(text: str) -> bool:
    if text not in ("refuse", "skip"):
        raise OptionError(f"--on-corrupt must be refuse or skip, got {text!r}")
    return text == "skip"


@dataclass(frozen=True)
class _Reading(Settings):
    """Input and scores.

    Attributes: see their help; those of a `Recipe` have its names, and it checks them.
    """

    last_year: int | None = option(None, "last year that the source covers completely")
    window: int = option(5, "years after publication in which citations count")
    shuffles: int = option(20, "shuffles for novelty's z-scores; 0 skips them")
    skip_corrupt: str = option(
        "refuse", "refuse damaged input, or skip and list it", flag="--on-corrupt", read=_skips
    )
    seed: int = option(0, "seed of shuffles and random choices")


@dataclass(frozen=True)
class _Labelling(Settings):
    """Labels and splits.

    Attributes: as of `_Reading`.
    """

    texts: Path | None = option(None, "OpenAlex folder with the texts of sciscinet's papers")
    target: str = option("disruption", "disruption, novelty or both")
    rule: str = option(
        "threshold", "threshold (CD beyond 0.1), or percentile by field and year", flag="--labels"
    )
    share: float = option(0.25, "percentile: share of papers in either tail")
    test_from: int | None = option(None, "first year of test (default: test gets about 15 %)")
    balance: str = option("field-year", "balance classes per field-year, per split, or not (none)")


@dataclass(frozen=True)
class _Work(Settings):
    """Fetching and workers.

    Attributes: see their help.
    """

    works_filter: str | None = option(
        None, "first fetch the works of OpenAlex's API that match", flag="--filter"
    )
    expand: str = option(
        "",
        "of --filter: also fetch citers, references or both (citers,references) of the works that "
        "match, to count citations; these are not judged themselves",
    )
    most_pages: int | None = option(
        None, "of --filter: maximum pages to fetch, 100 works each", least=1
    )
    address: str | None = option(None, "of --filter: address of the API")
    workers: int = option(1, "worker processes", least=1)


@data.callback()
def _data() -> None:
    """Build and audit sets of real data."""


data.command()(audit)


@data.command()
@takes(_Reading, _Labelling, _Work)
def papers(
    source: Source,
    out: Annotated[Path, typer.Argument(help="folder to write, for the option data of disruption")],
    *,
    said: dict[str, Any],
) -> None:
    """Label, balance, split and audit papers; after an interruption, run it again to continue."""
    from tokengym.envs.disruption.data import build_papers, fetch_works
    from tokengym.envs.disruption.data.openalex_api import ADDRESS

    asked = said_of(_Work, said)
    if asked.works_filter is None and (asked.most_pages or asked.address or asked.expand):
        raise OptionError("--expand, --most-pages and --address go with --filter")
    recipe = _recipe(source, said)
    with _working(asked.workers) as tools:
        if asked.works_filter is not None:
            fetch_works(
                source,
                asked.works_filter,
                expand=[name.strip() for name in asked.expand.split(",") if name.strip()],
                window=recipe.window,
                most_pages=asked.most_pages,
                address=asked.address or ADDRESS,
                progress=tools["progress"],
            )
        manifest = build_papers(recipe, out, **tools)
    left_out = _left_out(manifest["skipped"], manifest["source"]["ignored_files"])
    show(*left_out, _table(manifest, out))


@data.command()
@takes(_Reading)
def scores(
    source: Source,
    out: Annotated[Path, typer.Option(help="CSV file to write")] = Path("scores.csv"),
    least_shared: Annotated[
        int, typer.Option("--l", min=1, help="references a citer must share to count in DI_l")
    ] = 5,
    workers: Annotated[int, typer.Option(min=1, help="worker processes")] = 1,
    *,
    said: dict[str, Any],
) -> None:
    """Write CD, mCD, DI_l and the z-scores of Uzzi et al. of every work as a table."""
    from tokengym.envs.disruption.data import score_works

    recipe = _recipe(source, said)
    with _working(workers) as tools:
        summary = score_works(recipe, out, least_shared=least_shared, **tools)
    read = summary.read
    show(
        *_left_out(read.skipped, summary.ignored),
        f"{read.records:,} records read, {read.refused:,} refused; {read.works:,} works with "
        f"{read.citations:,} citations among them",
        f"CD{recipe.window} of {summary.cd:,}: {summary.disruptive:,} above 0.1, "
        f"{summary.consolidating:,} below -0.1; z-scores of {summary.novelty:,}",
        f"{summary.unreferenced:,} works have no reference in the source: their CD{recipe.window}, "
        f"mCD{recipe.window} and DI_{least_shared} are empty, since every citer would count as one "
        f"that ignores the references. Of {summary.incomplete:,} the window is not complete.",
        f"{out}",
    )


def _recipe(source: Path, said: Mapping[str, Any]) -> "Recipe":
    """Return the recipe that was asked for; what was not said is as the recipe has it."""
    from tokengym.envs.disruption.data import Recipe

    known = {**settings_of(_Reading), **settings_of(_Labelling)}
    chosen = {name: value for name, value in said.items() if name in known}
    return Recipe(source=source, **chosen)


@contextmanager
def _working(workers: int) -> Iterator[dict[str, Any]]:
    """Show how far each stage is; yields the `executor` and `progress`."""
    from tokengym.agents.reports.progress import progress_bars

    pool = nullcontext() if workers == 1 else process_pool(workers)
    with progress_bars() as progress, pool as executor:
        yield {"executor": executor, "progress": progress}


def _left_out(skipped: Mapping[str, Sequence[str]], ignored: Sequence[str]) -> list[str]:
    lines = [f"skipped in {name}: {why}" for name, reasons in skipped.items() for why in reasons]
    return [*lines, *(f"not read: {name} (no JSON)" for name in ignored)]


def _table(manifest: Mapping[str, Any], out: Path) -> "Table":
    from tokengym.agents.reports.report import Table

    audit, target = manifest["audit"], manifest["arguments"]["target"]
    targets = ["disruption", "novelty"] if target == "both" else [target]
    names = [
        name
        for aim in targets
        for name in sorted({n for split in audit["counts"].values() for n in split[aim]})
    ]
    rows = []
    for split, counts in audit["counts"].items():
        every = {name: count for aim in targets for name, count in counts[aim].items()}
        years = [int(year) for year in audit["by_year"][split]]
        spelt = [f"{every.get(name, 0):,}" for name in names]
        period = f"{min(years)}-{max(years)}" if years else ""
        rows.append((split, f"{sum(counts[targets[0]].values()):,}", *spelt, period))
    left_out = {**manifest["source"]["left_out"], **manifest["source"]["withheld"]}
    note = "; ".join(f"left out: {n:,} {reason}" for reason, n in left_out.items())
    return Table(("split", "papers", *names, "years"), rows, str(out), note)
