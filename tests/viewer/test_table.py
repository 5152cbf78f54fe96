"""Columns of a table of rollouts."""

from dataclasses import replace

from tests.viewer.conftest import rollout
from tokengym.agents.viewer.table import table_of


def test_a_long_question_keeps_whole_words_from_its_end() -> None:
    record = rollout("warehouse", "train", 0, 0, 0)
    (question,) = table_of([record])["question"]
    mark, *words = question.split()
    assert mark == "…"
    assert 150 < len(question) <= 200
    assert record.turns[0].read.split()[-len(words) :] == words


def test_a_rollout_breaks_its_world_s_rule_or_not() -> None:
    record = rollout("energy", "train", 0, 0, 0)
    *turns, last = record.turns
    ends = [replace(last, metrics={"violation_depth": depth}) for depth in (None, 0.0, 0.3)]
    found = table_of([replace(record, turns=[*turns, end]) for end in ends])
    assert found["violation"] == [0, 0, 1]
