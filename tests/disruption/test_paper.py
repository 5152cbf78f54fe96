"""Laws of records: labels agree with scores, or the record is refused and says which."""

import dataclasses
import pickle
from typing import Any

import pytest

from tests.every import every
from tokengym.envs.core.errors import DataError
from tokengym.envs.disruption.paper import FirstYear, Paper, ReferenceFacts

PAPER = Paper(
    openalex_id="W2741809807",
    title="A study of things",
    abstract="We look at things.",
    publication_year=2003,
    cited_by_count=120,
    cd_index=0.31,
    novelty_score=-0.4,
    conventionality_score=1.2,
    disruption_label="disruptive",
    novelty_label="balanced",
    primary_field="Biology",
)
SHARES = {"novelty_score": 0.82, "conventionality_score": 0.35, "novelty_label": "novel"}
"""On the scale the debate was first described with."""


@every(
    ("change", "message"),
    [
        ({"disruption_label": "neutral"}, "cd_index=0.31 means disruption_label='disruptive'"),
        ({"cd_index": 0.1}, "means disruption_label='neutral'"),
        ({"cd_index": -0.11}, "means disruption_label='consolidating'"),
        ({"cd_index": 1.01}, r"cd_index must lie in \[-1, 1\], got 1.01"),
        ({"cd_index": float("nan")}, "cd_index"),
        ({"cd_index": None}, "cd_index is None"),
        ({"disruption_label": "great"}, "'great'"),
        ({"novelty_label": "conventional"}, "novel or balanced, got 'conventional'"),
        ({"novelty_score": 0.2}, "mean novelty_label=conventional"),
        ({"novelty_score": 3.0}, "cannot exceed the median"),
        ({"novelty_score": None}, "novelty_label cannot be"),
        ({"conventionality_score": float("inf")}, "finite"),
        ({"field_median": 2.0}, "mean novelty_label=novel, got 'balanced'"),
        ({"novelty_label": "fresh"}, "'fresh'"),
        ({"cited_by_count": -1}, "cited_by_count"),
        ({"publication_year": "2003"}, "whole number from 0 to .*, got '2003'"),
        ({"novelty_score": "-0.4"}, "novelty_score must be a number or null, got '-0.4'"),
        ({"label_rule": "guess"}, "label_rule"),
        ({"novelty_scale": "percent"}, "novelty_scale must be one of"),
        ({"novelty_scale": "share"}, r"shares must lie in \[0, 1\], got -0.4 and 1.2"),
        ({**SHARES, "novelty_label": "conventional"}, "novel or balanced, got 'conventional'"),
        ({**SHARES, "novelty_scale": "z"}, "cannot exceed the median"),
        (
            {**SHARES, "novelty_score": 0.1, "novelty_scale": "z", "novelty_label": "balanced"},
            "mean novelty_label=conventional",
        ),
        (
            {"references": ReferenceFacts(-1, 0, 0, 0)},
            "count must be a whole number from 0 to .*, got -1",
        ),
        ({"authors": 0}, "authors must be a whole number from 1 to .*, got 0"),
        ({"authors": 2.5}, "authors must be a whole number from 1 to .*, got 2.5"),
        ({"first_year": FirstYear(0, -2, 0)}, "n_j must be a whole number from 0 to .*, got -2"),
    ],
)
def test_a_record_that_contradicts_itself_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        dataclasses.replace(PAPER, **change)
    assert "W2741809807" in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        {"cd_index": None, "disruption_label": None},
        {"novelty_score": None, "conventionality_score": None, "novelty_label": None},
        {"novelty_label": "novel"},
        SHARES,
        {**SHARES, "novelty_scale": "share"},
        {**SHARES, "novelty_label": "balanced"},
        {**SHARES, "novelty_score": 0.1, "novelty_label": "balanced"},
        {**SHARES, "novelty_score": 0.1, "novelty_label": "conventional"},
        {"field_median": 1.2, "novelty_label": "novel"},
        {"label_rule": "percentile", "disruption_label": "neutral"},
        {"cd_index": 0.1, "disruption_label": "neutral"},
    ],
)
def test_a_record_that_agrees_with_itself_is_kept(change: dict[str, Any]) -> None:
    paper = dataclasses.replace(PAPER, **change)
    assert pickle.loads(pickle.dumps(paper)) == paper
    assert hash(paper) == hash(dataclasses.replace(paper))


def test_a_record_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        PAPER.title = "another"  # type: ignore[misc]
