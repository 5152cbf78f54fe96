"""Laws of the selection of papers and of the audit of a set."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.envs.core.errors import DataError
from tokengym.envs.disruption.data.audit import audit
from tokengym.envs.disruption.data.columns import leaks_outcome
from tokengym.envs.disruption.data.selection import BALANCES, Candidates, select_papers
from tokengym.envs.disruption.evidence import Evidence, evidence_of_paper
from tokengym.envs.disruption.paper import Paper

Integers = npt.NDArray[np.int64]


@st.composite
def candidates(draw: st.DrawFn) -> Candidates:
    count = draw(st.integers(30, 120))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    return Candidates(
        key=rng.permutation(10 * count)[:count].astype(np.uint64),
        year=rng.integers(1990, 2012, count),
        field=rng.integers(0, 2, count),
        label=rng.integers(-1, 3, count),
        title=rng.integers(0, 4 * count, count).astype(np.uint64),
        abstract=rng.integers(0, 4 * count, count).astype(np.uint64),
        leaks=rng.random(count) < 0.05,
    )


@given(papers=candidates(), balance=st.sampled_from(BALANCES), seed=st.integers(0, 2**70))
def test_a_choice_keeps_its_rules_whatever_the_order(
    papers: Candidates, balance: Any, seed: int
) -> None:
    options = {"window": 3, "balance": balance, "seed": seed}
    found = select_papers(papers, 3, **options)
    order = np.random.default_rng(0).permutation(len(papers.key))
    again = select_papers(papers.take(order), 3, **options)
    assert again.split.tolist() == found.split[order].tolist()
    assert sum(found.dropped.values()) == (found.split < 0).sum()
    kept = found.split >= 0
    late = found.split == 2
    assert (papers.label[kept] >= 0).all()
    assert (papers.title[kept] > 0).all()
    assert not papers.leaks[kept].any()
    assert (papers.year[late] >= found.test_from).all()
    assert (papers.year[kept & ~late] + 3 < found.test_from).all()
    for text in (papers.title[kept], papers.abstract[kept & (papers.abstract > 0)]):
        assert len(set(text.tolist())) == len(text)
    if balance != "none":
        strata: dict[Any, Counter[int]] = {}
        for k in np.flatnonzero(kept).tolist():
            where = (papers.field[k], papers.year[k]) if balance == "field-year" else ()
            stratum = found.split[k], *map(int, where)
            strata.setdefault(stratum, Counter())[int(papers.label[k])] += 1
        assert all(len(set(n.values())) == 1 and len(n) == 3 for n in strata.values())


def titled(year: Integers, field: Integers, label: Integers) -> Candidates:
    """Papers with titles of their own and no abstracts."""
    key, none = np.arange(len(year), dtype=np.uint64), np.zeros(len(year), dtype=np.uint64)
    return Candidates(key, year, field, label, key + np.uint64(1), none, none.astype(bool))


def test_the_shares_of_the_splits_are_about_those_asked_for() -> None:
    count = 20_000
    rng = np.random.default_rng(1)
    year, field, label = (
        rng.integers(*range_of, count) for range_of in ((1960, 2012), (0, 8), (0, 3))
    )
    papers = titled(year, field, label)
    split = select_papers(papers, 3, window=5, balance="field-year").split
    train, validation, test = (int((split == k).sum()) for k in range(3))
    assert 0.12 < validation / (train + validation) < 0.18
    assert 0.1 < test / (train + validation + test) < 0.2


def sample(name: str, year: int, title: str, abstract: str = "") -> Paper:
    return Paper(
        name, title, abstract, year, 7, 0.3, None, None, "disruptive", None, "Physics"
    )  # fmt: skip


LEAKS: list[tuple[dict[str, list[Paper]], str]] = [
    ({"train": [sample("W1", 2000, "One"), sample("W2", 2001, "one!")]}, "same title"),
    (
        {
            "train": [sample("W1", 2000, "A", "so it is")],
            "test": [sample("W2", 2010, "B", "So it is")],
        },
        "same abstract",
    ),
    (
        {"train": [sample("W1", 2000, "One")], "test": [sample("W2", 2005, "Two")]},
        "test begins in 2005",
    ),
    ({"train": [sample("W1", 2000, "Cited by 7 others")]}, "speaks of its later use"),
    ({"train": [sample("W1", 2000, "On W1")]}, "speaks of its later use"),
]


@pytest.mark.parametrize(("papers", "message"), LEAKS)
def test_an_audit_refuses_what_leaks(papers: dict[str, list[Paper]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        audit(papers, 5)


@pytest.mark.parametrize(
    ("title", "leaks"),
    [
        ("On W17 and others", True),
        ("W17", True),
        ("It is called (W17)", True),
        ("W17s and AW17 and W17_2, W17W17", False),
        ("On w17", False),
        ("CITED BY 12", True),
        ("Cited 3 times, times cited, never mind", True),
        ("Papers that are cited by many", False),
        ("The CD-Index of papers", True),
        ("A disruptiveness SCORE", True),
        ("An index of scores that was cited", False),
        ("cited_by_count", True),
    ],
)
def test_texts_that_speak_of_their_id_their_citations_or_scores(title: str, leaks: bool) -> None:
    assert leaks_outcome("W17", title, "A text.") == leaks_outcome("W17", "", title) == leaks


def test_a_prompt_that_showed_the_future_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def leaking(paper: Paper, tier: str) -> Evidence:
        shown = evidence_of_paper(paper, tier)
        return shown._replace(title=f"{shown.title} {paper.cd_index}")

    audit({"train": [sample("W1", 2000, "One")]}, 5)
    monkeypatch.setattr("tokengym.envs.disruption.data.audit.evidence_of_paper", leaking)
    with pytest.raises(DataError, match="depends on the outcome"):
        audit({"train": [sample("W1", 2000, "One")]}, 5)


@pytest.mark.parametrize(
    ("years", "window", "test_from", "does"),
    [
        (range(1995, 2011), 5, 1999, "--test-from 2001 to 2010 would do"),
        (range(1995, 2011), 5, 2011, "--test-from 2001 to 2010 would do"),
        (range(1995, 1999), 5, None, "--window 2 or less would do, with --test-from 1998"),
        ([1995, 1996], 5, None, "only a source of at least three years"),
        ([], 5, None, "there is nothing to split"),
    ],
)
def test_papers_that_cannot_be_split_are_refused(
    years: Iterable[int], window: int, test_from: int | None, does: str
) -> None:
    year = np.repeat(np.array(list(years), dtype=np.int64), 6)
    papers = titled(year, np.zeros_like(year), np.arange(len(year)) % 3)
    with pytest.raises(DataError, match=does):
        select_papers(papers, 3, window=window, test_from=test_from)
    values = [int(word) for word in re.findall(r"(?:--window|--test-from) (\d+)", does)]
    if does.startswith("--test-from"):
        assert select_papers(papers, 3, window=window, test_from=values[0]).test_from == values[0]
    elif does.startswith("--window"):
        assert select_papers(papers, 3, window=values[0]).test_from == values[1]
