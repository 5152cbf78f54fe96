"""Which papers make up a set: one of each text, split by time and by paper, classes balanced."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tokengym.envs.core.errors import DataError

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Balance = Literal["field-year", "split", "none"]
BALANCES: tuple[Balance, ...] = ("field-year", "split", "none")

TEST_SHARE = 0.15
VALIDATION_SHARE = 0.15
LEFT_OUT = -1


class Candidates(NamedTuple):
    """What the choice needs to know of eligible papers, one entry a paper.

    Attributes:
        key: a number that names the paper, distinct, shape (k,).
        year: publication year.
        field: number of its field.
        label: number of its class, 0 to `classes` - 1; -1 if it has none.
        title: hash of its title's words, 0 if it has none.
        abstract: hash of its abstract's words, 0 if it has none.
        tells: whether its text speaks of what came later.
    """

    key: npt.NDArray[np.uint64]
    year: IntArray
    field: IntArray
    label: IntArray
    title: npt.NDArray[np.uint64]
    abstract: npt.NDArray[np.uint64]
    tells: BoolArray

    def take(self, which: npt.NDArray[Any]) -> "Candidates":
        """Some of them, by position or by a mask."""
        return Candidates(
            self.key[which],
            self.year[which],
            self.field[which],
            self.label[which],
            self.title[which],
            self.abstract[which],
            self.tells[which],
        )


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


def select(
    candidates: Candidates,
    classes: int,
    *,
    window: int,
    test_from: int | None = None,
    balance: Balance = "field-year",
    seed: int = 0,
) -> Selection:
    """Choose papers and give each a split; the order of the candidates does not matter.

    Of equal titles and of equal abstracts the earliest paper stays. `test` begins with the year
    `test_from`; `train` and `validation` are papers whose window had closed by then, so that
    nothing counted for their evidence or label is as late as `test`; papers between are left out.
    `validation` is a share of the papers of every class of every cell of those years.

    Args:
        candidates: eligible papers.
        classes: how many classes there are.
        window: years after publication that citers count.
        test_from: first year of `test`; the one that gives `test` nearest to 15 % if `None`.
        balance: where classes are made equally frequent: in each `field-year`, in each `split` as a
            whole, or nowhere (`none`).
        seed: of the choice.

    Raises:
        DataError: if no year leaves papers on both sides.
    """
    dropped: dict[str, int] = {}
    order = np.lexsort((candidates.key, candidates.year))
    kept = order[_usable(candidates.take(order), dropped)]
    year = candidates.year[kept]
    first_test = _test_year(year, window) if test_from is None else test_from
    late = year >= first_test
    closed = late | (year < first_test - window)
    dropped["window not closed before the test years"] = int((~closed).sum())
    kept, late = kept[closed], late[closed]
    split = np.full(len(candidates.key), LEFT_OUT, dtype=np.int8)
    if len(kept):
        place = _places(candidates.take(kept), late, classes, balance, seed)
        dropped["more of its class than of the rarest"] = int((place == LEFT_OUT).sum())
        split[kept] = place
    return Selection(split, first_test, {name: n for name, n in sorted(dropped.items()) if n})


def _usable(papers: Candidates, dropped: dict[str, int]) -> BoolArray:
    """Which papers, in order, have a label and a text that no earlier one has."""
    usable = np.ones(len(papers.key), dtype=bool)
    for reason, wrong in (
        ("no label", papers.label < 0),
        ("no title", papers.title == 0),
        ("text speaks of its citations or scores", papers.tells),
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


def _test_year(years: IntArray, window: int) -> int:
    """The first test year that gives `test` nearest to its share, a later one of equals."""
    best: tuple[float, int] | None = None
    for year in np.unique(years)[::-1].tolist():
        test, train = int((years >= year).sum()), int((years < year - window).sum())
        if train:
            distance = abs(test / (test + train) - TEST_SHARE)
            if best is None or distance < best[0]:
                best = distance, year
    if best is None:
        span = f"{len(years)} papers of {years.min()} to {years.max()}" if len(years) else "nothing"
        raise DataError(
            f"{span} cannot be split: test must begin more than {window} years after other papers"
        )
    return best[1]


def _places(
    papers: Candidates, late: BoolArray, classes: int, balance: Balance, seed: int
) -> npt.NDArray[np.int8]:
    """Split of each paper, -1 if its class has more than the others of its cell."""
    where = [late.astype(np.int64)]
    if balance == "field-year":
        where += [papers.field, papers.year]
    cells, cell = np.unique(np.stack(where, axis=1), axis=0, return_inverse=True)
    group = cell * classes + papers.label
    sizes = np.bincount(group, minlength=len(cells) * classes)
    order = np.lexsort((papers.key, _random(papers.key, seed), group))
    rank = np.empty(len(group), dtype=np.int64)
    rank[order] = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    most = sizes
    if balance != "none":
        most = np.repeat(sizes.reshape(-1, classes).min(axis=1), classes)
    # Rounded up as often as the fraction says, but alike for all classes of a cell.
    rounding = np.zeros(len(cells), dtype=np.uint64)
    for column in cells.T:
        rounding = _mixed(rounding ^ column.astype(np.uint64))
    lift = np.repeat(_random(rounding, seed), classes)
    held_out = np.floor(VALIDATION_SHARE * most + lift).astype(np.int64)
    place = np.where(late, 2, np.where(rank < held_out[group], 1, 0))
    return np.where(rank < most[group], place, LEFT_OUT).astype(np.int8)


def _random(key: npt.NDArray[np.uint64], seed: int) -> npt.NDArray[np.float64]:
    """A number in [0, 1) for each key, by key and seed alone."""
    start = _mixed(np.array([seed % 2**64], dtype=np.uint64))
    values: npt.NDArray[Any] = _mixed(_mixed(key.astype(np.uint64)) ^ start)
    return (values >> np.uint64(11)) / float(2**53)


def _mixed(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele, Lea & Flood 2014): every bit depends on all bits."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
