"""The selection of papers: one of each text, split by time and by paper, classes balanced."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from tokengym.envs.core.errors import DataError
from tokengym.rewards.arrays import Flags, Floats, Ints

Balance = Literal["field-year", "split", "none"]
BALANCES: tuple[Balance, ...] = get_args(Balance)

TEST_SHARE = 0.15
VALIDATION_SHARE = 0.15
LEFT_OUT = -1


class Candidates(NamedTuple):
    """Facts about labelled papers that the selection needs, one entry per paper.

    Attributes:
        key: a number that names the paper, distinct, shape (k,).
        year: publication year.
        field: number of its field.
        label: number of its class, 0 to `classes` - 1; -1 if it has none.
        title: hash of its title's words, 0 if it has none.
        abstract: hash of its abstract's words, 0 if it has none.
        leaks: whether its text speaks of its own citations or scores.
    """

    key: npt.NDArray[np.uint64]
    year: Ints
    field: Ints
    label: Ints
    title: npt.NDArray[np.uint64]
    abstract: npt.NDArray[np.uint64]
    leaks: Flags

    def take(self, which: npt.NDArray[Any]) -> "Candidates":
        """Return some of them, by position or by a mask."""
        return Candidates._make(column[which] for column in self)


class Selection(NamedTuple):
    """The papers of a set.

    Attributes:
        split: position in `SPLITS` of each candidate, -1 if it is left out, shape (k,).
        test_from: first year of `test`.
        dropped: how many candidates each reason left out.
    """

    split: npt.NDArray[np.int8]
    test_from: int
    dropped: Mapping[str, int]


def select_papers(
    candidates: Candidates,
    classes: int,
    *,
    window: int,
    test_from: int | None = None,
    balance: Balance = "field-year",
    seed: int = 0,
) -> Selection:
    """Select papers and give each a split; the order of the candidates does not matter.

    Duplicates by title or abstract are removed; the earliest is kept. `test` begins with the year
    `test_from`; `train` and `validation` are papers whose window had closed by then, so that
    nothing counted for their evidence or label is as late as `test`; papers between are left out.
    `validation` is a share of the papers of every class and stratum of those years.

    Args:
        candidates: labelled papers.
        classes: how many classes there are.
        window: years after publication that citers count.
        test_from: first year of `test`; the one that gives `test` nearest to 15 % if `None`.
        balance: strata in which classes are made equally frequent: each `field-year`, each `split`
            as a whole, or none (`none`).
        seed: of the random choice.

    Raises:
        DataError: if no year, or not the one that is asked for, leaves papers on both sides.
    """
    dropped: dict[str, int] = {}
    order = np.lexsort((candidates.key, candidates.year))
    kept = order[_find_usable(candidates.take(order), dropped)]
    year = candidates.year[kept]
    first_test = _choose_test_year(year, window, test_from)
    late = year >= first_test
    closed = late | (year < first_test - window)
    dropped["window not closed before the test years"] = int((~closed).sum())
    kept, late = kept[closed], late[closed]
    split = np.full(len(candidates.key), LEFT_OUT, dtype=np.int8)
    if len(kept):
        split[kept] = _assign_splits(candidates.take(kept), late, classes, balance, seed)
        dropped["more of its class than of the rarest"] = int((split[kept] == LEFT_OUT).sum())
    return Selection(split, first_test, {name: n for name, n in sorted(dropped.items()) if n})


def _find_usable(papers: Candidates, dropped: dict[str, int]) -> Flags:
    """Return which papers, in order, have a label and a text that no earlier one has."""
    usable = np.ones(len(papers.key), dtype=bool)
    for reason, wrong in (
        ("no label", papers.label < 0),
        ("no title", papers.title == 0),
        ("text speaks of its citations or scores", papers.leaks),
    ):
        dropped[reason] = int((usable & wrong).sum())
        usable &= ~wrong
    for reason, text in (
        ("title of an earlier paper", papers.title),
        ("abstract of an earlier paper", papers.abstract),
    ):
        those = np.flatnonzero(usable & (text != 0))
        first = np.unique(text[those], return_index=True)[1]
        repeated = np.delete(those, first)
        dropped[reason] = len(repeated)
        usable[repeated] = False
    return usable


def _choose_test_year(years: Ints, window: int, asked: int | None) -> int:
    """Return the year that brings `test` nearest to its share, in a tie the later one."""
    best: tuple[float, int] | None = None
    for year in np.unique(years)[::-1].tolist() if asked is None else [asked]:
        test, train = int((years >= year).sum()), int((years < year - window).sum())
        if train and test:
            distance = abs(test / (test + train) - TEST_SHARE)
            if best is None or distance < best[0]:
                best = distance, year
    if best is None:
        raise DataError(_explain_split(years, window, asked))
    return best[1]


def _explain_split(years: Ints, window: int, asked: int | None) -> str:
    """Return why papers of these years cannot be split, and which settings would work."""
    if not len(years):
        return "no paper has a label and a text of its own: there is nothing to split"
    first, last = int(years.min()), int(years.max())
    given = "" if asked is None else f" and --test-from {asked}"
    advice = "only a source of at least three years would do"
    if last - first > window:
        advice = f"--test-from {first + window + 1} to {last} would do"
    elif last - first > 1:
        advice = f"--window {last - first - 1} or less would do, with --test-from {last}"
    return (
        f"{len(years)} papers of {first} to {last} cannot be split with --window {window}{given}: "
        f"the first year of test must be more than {window} years after some paper, and there must "
        f"be papers from it on; {advice}"
    )


def _assign_splits(
    papers: Candidates, late: Flags, classes: int, balance: Balance, seed: int
) -> npt.NDArray[np.int8]:
    """Return the split of each paper, -1 if its class has more than the rarest of its stratum."""
    columns = [late.astype(np.int64)]
    if balance == "field-year":
        columns += [papers.field, papers.year]
    strata, stratum = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    group = stratum * classes + papers.label
    sizes = np.bincount(group, minlength=len(strata) * classes)
    order = np.lexsort((papers.key, _draw_uniform(papers.key, seed), group))
    rank = np.empty(len(group), dtype=np.int64)
    rank[order] = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    most = sizes
    if balance != "none":
        most = np.repeat(sizes.reshape(-1, classes).min(axis=1), classes)
    # Rounded up as often as the fraction asks for, but alike for all classes of a stratum.
    keys = np.zeros(len(strata), dtype=np.uint64)
    for column in strata.T:
        keys = _mix(keys ^ column.astype(np.uint64))
    lift = np.repeat(_draw_uniform(keys, seed), classes)
    held_out = np.floor(VALIDATION_SHARE * most + lift).astype(np.int64)
    split = np.where(late, 2, np.where(rank < held_out[group], 1, 0))
    return np.where(rank < most[group], split, LEFT_OUT).astype(np.int8)


def _draw_uniform(key: npt.NDArray[np.uint64], seed: int) -> Floats:
    """Return a number in [0, 1) for each key, by key and seed alone."""
    start = _mix(np.array([seed % 2**64], dtype=np.uint64))
    values: npt.NDArray[Any] = _mix(_mix(key.astype(np.uint64)) ^ start)
    return (values >> np.uint64(11)) / float(2**53)


def _mix(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele, Lea & Flood 2014): every bit depends on all bits."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
