"""Which papers make up a set: one of each text, split by time and by paper, classes balanced."""

import hashlib
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from tokengym.envs.core.errors import DataError

Balance = Literal["field-year", "split", "none"]
BALANCES: tuple[Balance, ...] = ("field-year", "split", "none")

TEST_SHARE = 0.15
VALIDATION_SHARE = 0.15


class Candidate(NamedTuple):
    """What the choice needs to know of an eligible paper.

    Attributes:
        id: its id, distinct.
        year: publication year.
        field: its field.
        label: its label, or labels; `None` if one that is needed is missing.
        title: hash of its title's words, 0 if it has none.
        abstract: hash of its abstract's words, 0 if it has none.
        tells: whether its text speaks of what came later.
    """

    id: str
    year: int
    field: str
    label: Hashable
    title: int
    abstract: int
    tells: bool


class Selection(NamedTuple):
    """The papers of a set.

    Attributes:
        split: split of each paper that was chosen, by id.
        test_from: first year of `test`.
        dropped: how many candidates each reason left out.
    """

    split: Mapping[str, str]
    test_from: int
    dropped: Mapping[str, int]


def select(
    candidates: Iterable[Candidate],
    classes: Sequence[Hashable],
    *,
    window: int,
    test_from: int | None = None,
    balance: Balance = "field-year",
    seed: int = 0,
) -> Selection:
    """Choose papers and give each a split.

    Of equal titles and of equal abstracts the earliest paper stays. `test` begins with the year
    `test_from`; `train` and `validation` are papers whose window had closed by then, so that
    nothing counted for their evidence or label is as late as `test`; papers between are left out.
    `validation` is a share of the papers of every class of every cell of those years.

    Args:
        candidates: eligible papers in any order, on which the choice does not depend.
        classes: every label.
        window: years after publication that citers count.
        test_from: first year of `test`; the one that gives `test` nearest to 15 % if `None`.
        balance: where classes are made equally frequent: in each `field-year`, in each `split` as a
            whole, or nowhere (`none`).
        seed: of the choice.

    Raises:
        DataError: if no year leaves papers on both sides.
    """
    dropped: Counter[str] = Counter()
    kept = _distinct(candidates, dropped)
    first_test = _test_year(kept, window) if test_from is None else test_from
    cells: dict[Hashable, list[Candidate]] = {}
    for one in kept:
        if first_test - window <= one.year < first_test:
            dropped["window not closed before the test years"] += 1
            continue
        late = one.year >= first_test
        cell: Hashable = (late, one.field, one.year) if balance == "field-year" else (late,)
        cells.setdefault(cell, []).append(one)
    split: dict[str, str] = {}
    for cell, listed in cells.items():
        late = listed[0].year >= first_test
        groups = [[one.id for one in listed if one.label == label] for label in classes]
        size = len(listed) if balance == "none" else min(map(len, groups))
        rounding = _share(seed, "validation", repr(cell))
        for group in groups:
            chosen = first_of(group, size, seed)
            held_out = 0 if late else int(VALIDATION_SHARE * len(chosen) + rounding)
            dropped["more of its class than of the rarest"] += len(group) - len(chosen)
            for place, name in enumerate(chosen):
                split[name] = "test" if late else "validation" if place < held_out else "train"
    return Selection(split, first_test, {name: n for name, n in sorted(dropped.items()) if n})


def first_of(ids: Iterable[str], count: int, seed: int) -> list[str]:
    """Choose `count` ids at random; the choice depends on the ids but not on their order."""
    return sorted(ids, key=lambda name: _share(seed, "choice", name))[:count]


def _distinct(candidates: Iterable[Candidate], dropped: Counter[str]) -> list[Candidate]:
    """Papers to choose from: labelled, with a text of their own, earliest first."""
    titles: set[int] = {0}
    abstracts: set[int] = set()
    kept = []
    for one in sorted(candidates, key=lambda c: (c.year, len(c.id), c.id)):
        if one.label is None:
            dropped["no label"] += 1
        elif not one.title:
            dropped["no title"] += 1
        elif one.tells:
            dropped["text speaks of its citations or scores"] += 1
        elif one.title in titles or (one.abstract and one.abstract in abstracts):
            dropped["title or abstract of an earlier paper"] += 1
        else:
            titles.add(one.title)
            abstracts.add(one.abstract)
            kept.append(one)
    return kept


def _test_year(candidates: Sequence[Candidate], window: int) -> int:
    """The first test year that gives `test` nearest to its share, a later one of equals."""
    years = np.array([one.year for one in candidates], dtype=np.int64)
    best: tuple[float, int] | None = None
    for year in sorted(set(years.tolist()), reverse=True):
        test, train = int((years >= year).sum()), int((years < year - window).sum())
        if train and test:
            distance = abs(test / (test + train) - TEST_SHARE)
            if best is None or distance < best[0]:
                best = distance, year
    if best is None:
        span = f"of {years.min()} to {years.max()}" if len(years) else "at all"
        raise DataError(
            f"papers {span} cannot be split: test must begin more than {window} years after some"
        )
    return best[1]


def _share(seed: int, *key: str) -> float:
    """A number in [0, 1) that depends on the key alone."""
    told = "\n".join([str(seed), *key]).encode()
    return int.from_bytes(hashlib.blake2b(told, digest_size=7).digest()) / 2**56
