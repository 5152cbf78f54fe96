"""Laws of the scores of a classifier of papers: they are those of its confusion matrix."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.disruption.test_sources import PAPER
from tokengym.envs.disruption.classification import classification_scores
from tokengym.envs.disruption.labels import DISRUPTION_LABELS, Target
from tokengym.envs.disruption.metrics import classification_metrics
from tokengym.envs.disruption.world import DisruptionWorld
from tokengym.envs.registry import make_world

TARGETS: tuple[Target, ...] = ("disruption",)
CLASS = st.integers(0, 2)


def scores_of(ends: list[list[dict[str, Any]]]) -> dict[str, Any]:
    return classification_scores([], ends, np.random.default_rng(0))


@given(pairs=st.lists(st.tuples(CLASS, CLASS | st.none()), min_size=1, max_size=12))
def test_scores_are_those_of_the_confusion_matrix(pairs: list[tuple[int, int | None]]) -> None:
    ends = [
        [classification_metrics(TARGETS, [gold], None if chosen is None else [chosen], {})]
        for gold, chosen in pairs
    ]
    found = scores_of(ends)
    f1 = []
    for k, label in enumerate(DISRUPTION_LABELS):
        right = sum(gold == chosen == k for gold, chosen in pairs)
        chosen_k = sum(chosen == k for _, chosen in pairs)
        gold_k = sum(gold == k for gold, _ in pairs)
        for name, whole in (("precision", chosen_k), ("recall", gold_k)):
            value = found[f"{name}, {label}"].value
            assert value == pytest.approx(right / whole) if whole else math.isnan(value)
        if chosen_k + gold_k:
            f1.append(2 * right / (chosen_k + gold_k))
    macro = found["macro-F1, disruption"]
    assert macro.value == pytest.approx(sum(f1) / len(f1))
    assert 0.0 <= macro.low <= macro.value <= macro.high <= 1.0


def test_only_overconfident_classifiers_exceed_the_null_quantile() -> None:
    rng = np.random.default_rng(1)
    errors = {}
    for stated in (0.6, 0.95):
        right_N = (rng.random(400) < 0.6).astype(float).tolist()
        ends = [
            [{"confidence": stated, "right_final": right, "half_brier": 0.3}] for right in right_N
        ]
        found = scores_of(ends)
        errors[stated] = found["calibration error"] > found["its 95 % null quantile"]
        assert found["confidence"] == pytest.approx(stated)
    assert errors == {0.6: False, 0.95: True}


def test_labels_that_depend_on_the_window_are_reported() -> None:
    paper = dataclasses.replace(PAPER, cd_by_window=((3, 0.02), (5, 0.31), (10, -0.5)))
    world = make_world("disruption")
    assert isinstance(world, DisruptionWorld)
    world.start(world.task_from_paper(paper))
    reply = "LABEL neutral\nP 0.2 0.2 0.6"
    for text in (reply, "ARGUE nothing", reply):
        turn = world.reply(text)
    found = scores_of([[dict(turn.metrics)]])
    right = {name: one.value for name, one in found.items() if name.startswith("right")}
    same = {name: one.value for name, one in found.items() if name.startswith("same")}
    assert list(right.values()) == [1.0, 0.0, 0.0]
    assert list(same.values()) == [0.0, 1.0, 0.0]
    assert "right, window of 10 years" in right


def test_a_malformed_answer_misses_its_class() -> None:
    world = make_world("disruption")
    task = world.task("test", 0)
    world.start(task)
    for reply in ("no idea", "ARGUE nothing"):
        world.reply(reply)
    metrics = dict(world.reply("no idea").metrics)
    label = task.answer["labels"]["disruption"]
    assert metrics[f"recall_{label}"] == 0.0
    assert not [name for name in metrics if name.startswith("precision")]
