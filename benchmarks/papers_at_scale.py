"""Time and memory of scoring a large literature: a million works, and one year of long lists.

    python -m benchmarks.papers_at_scale
    python -m benchmarks.papers_at_scale --works 200000 --markdown docs/papers.md

The works have a title of nine words, half of them an abstract of a hundred, and on average ten
citations each, of recent and much-cited papers most. They are written as a snapshot of OpenAlex and
scored as by `tokengym data scores --shuffles 20`, in one process. Then one year of works with 30
references each to 50,000 venues is scored by five shuffles, at a quarter of `--year` works and at
all of them. Seconds are those of a processor, peaks those of a process.
"""

import argparse
import gzip
import json
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tokengym.agents.reports.markdown import markdown_table, write_block
from tokengym.envs.disruption.array_files import scratch_arrays
from tokengym.envs.disruption.data import Recipe, score_works
from tokengym.envs.disruption.novelty import ReferenceSlots, shuffled_scores

BLOCK = "papers_at_scale.py"
ALL_WORKS = 250_000_000
PART, CHUNK = 50_000, 1 << 20
VENUES, REFERENCES, SHUFFLES = 50_000, 30, 5


IntArray = npt.NDArray[np.int64]


def literature(papers: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return years, citing and cited papers of a growing literature, with ten citations a paper.

    Half of all citations copy the target of an earlier citation (the cited get cited), half go to
    a paper sampled with a preference for recent ones.
    """
    rng = np.random.default_rng(0)
    years = np.sort(rng.integers(1980, 2011, papers))
    citing = np.sort(rng.integers(papers // 50, papers, 10 * papers))
    recent = citing * (1.0 - 0.5 * rng.random(len(citing)) ** 2)
    cited = np.minimum(recent.astype(np.int64), citing - 1)
    copied = rng.random(len(citing)) < 0.5
    model = rng.integers(0, np.maximum(np.arange(len(citing)), 1))
    cited[copied] = np.minimum(cited[model[copied]], citing[copied] - 1)
    return years, citing, cited


def write_works(folder: Path, works: int) -> None:
    """Write works and their citations as parts of a snapshot."""
    rng = np.random.default_rng(0)
    years, citing, cited = literature(works)
    starts = np.searchsorted(citing, np.arange(works + 1)).tolist()
    venue = (20_000 * rng.random(works) ** 3).astype(int).tolist()
    words = np.array([f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in "lmnrst"])
    abstracts = ["null"] * 500
    for k in range(0, len(abstracts), 2):
        index: dict[str, list[int]] = {}
        for place, word in enumerate(rng.choice(words, 100).tolist()):
            index.setdefault(word, []).append(place)
        abstracts[k] = json.dumps(index)
    path = folder / "works" / "updated_date=2024-01-01"
    path.mkdir(parents=True)
    for begin in range(0, works, PART):
        own = range(begin, min(begin + PART, works))
        titles = rng.choice(words, (len(own), 8)).tolist()
        with gzip.open(path / f"part_{begin:09d}.gz", "wt", compresslevel=1) as file:
            for k, title in zip(own, titles, strict=True):
                references = [
                    f"https://openalex.org/W{r}" for r in cited[starts[k] : starts[k + 1]]
                ]
                file.write(
                    f'{{"id": "https://openalex.org/W{k}", "title": "{" ".join(title)} {k}", '
                    f'"publication_year": {years[k]}, "type": "article", "cited_by_count": 0, '
                    f'"primary_location": {{"source": {{"id": "S{venue[k]}"}}}}, '
                    f'"primary_topic": {{"field": {{"display_name": "Field {k % 26}"}}}}, '
                    f'"abstract_inverted_index": {abstracts[k % len(abstracts)]}, '
                    f'"referenced_works": {json.dumps(references)}}}\n'
                )


def peak() -> float:
    """Return the most memory this process has held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def score_all(source: Path) -> list[tuple[str, float, float]]:
    """Score the works of a snapshot; return processor seconds and peak of each stage."""
    stages, last = [], time.process_time()

    def note(stage: str, done: int, total: int) -> None:
        nonlocal last
        if done == total:
            now = time.process_time()
            stages.append((stage, now - last, peak()))
            last = now

    score_works(Recipe(kind="openalex", source=source), [source / "scores.csv"], progress=note)
    note("write table", 1, 1)
    return stages


def score_year(works: int, folder: Path) -> tuple[float, float]:
    """Score a year of works with 30 references; return processor seconds and peak."""
    rng = np.random.default_rng(0)
    with scratch_arrays(folder) as new:
        venue, year = new(np.int64), new(np.int64)
        for begin in range(0, works * REFERENCES, CHUNK):
            count = min(CHUNK, works * REFERENCES - begin)
            venue.append((VENUES * rng.random(count) ** 3).astype(np.int64))
            year.append(2020 - (60 * rng.random(count) ** 2).astype(np.int64))
        slots = ReferenceSlots(np.arange(works + 1) * REFERENCES, venue, year)
        began = time.process_time()
        shuffled_scores(slots, seed=0, shuffles=SHUFFLES, folder=folder)
        return time.process_time() - began, peak()


def alone(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a fresh process: a peak never falls."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--works", type=int, default=1_000_000)
    parser.add_argument("--year", type=int, default=200_000)
    parser.add_argument("--folder", type=Path, help="where works lie until they are scored")
    parser.add_argument("--markdown", type=Path, help="page to write the tables into")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=chosen.folder) as own:
        folder = Path(own)
        alone(write_works, folder, chosen.works)
        stages = alone(score_all, folder)
        sizes = [chosen.year // 4, chosen.year]
        years = [alone(score_year, works, folder) for works in sizes]
    us, scale = 1e6 / chosen.works, ALL_WORKS / 3.6e9
    stages.append(("all", sum(seconds for _, seconds, _ in stages), stages[-1][2]))
    pairs = REFERENCES * (REFERENCES - 1) // 2
    ns = 1e9 / pairs / (SHUFFLES + 1)
    text = [
        f"{chosen.works:,} works, {10 * chosen.works:,} citations, 20 shuffles; core-hours of "
        f"{ALL_WORKS:,} works in proportion:",
        markdown_table(
            ("stage", "seconds", "µs a work", "peak MB", f"hours of {ALL_WORKS // 10**6} million"),
            [
                (name, f"{s:.1f}", f"{us * s:.1f}", f"{mb:.0f}", f"{us * s * scale:.1f}")
                for name, s, mb in stages
            ],
        ),
        f"One year of works with {REFERENCES} references each, {SHUFFLES} shuffles:",
        markdown_table(
            ("works", "pairs", "seconds", "ns a pair and shuffle", "peak MB"),
            [
                (f"{n:,}", f"{n * pairs:,}", f"{s:.1f}", f"{ns * s / n:.0f}", f"{mb:.0f}")
                for n, (s, mb) in zip(sizes, years, strict=True)
            ],
        ),
    ]
    print("\n\n".join(text))
    if chosen.markdown:
        write_block(chosen.markdown, BLOCK, "\n\n".join(text))


if __name__ == "__main__":
    main()
