"""One Prophet Arena table gives what the cookbook's recipe makes of it, but for what it leaks."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from tests.forecasting.arena_file import write_arena
from tests.forecasting.questions_file import world_of
from tokengym.envs.forecasting.data.load import load_dataset
from tokengym.envs.forecasting.data.record import QuestionRecord

recipe = pytest.importorskip("tinker_cookbook.recipes.forecasting.data")

CUTOFF = "2025-10-20"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_arena(tmp_path_factory.mktemp("arena") / "arena.csv")


def identity(record: QuestionRecord) -> tuple[str, str, datetime, datetime, int]:
    return (record.event, record.part, record.asked_at, record.closed_at, record.outcome)


def theirs(example: object) -> tuple[str, str, datetime, datetime, int]:
    names = ("event_ticker", "market", "snapshot_time", "close_time", "outcome")
    return tuple(getattr(example, name) for name in names)


def test_questions_order_and_outcomes_are_those_of_the_recipe(table: Path) -> None:
    dataset = load_dataset(table, CUTOFF)
    split = recipe.load_prophet_arena_split(
        table,
        split_time=datetime.fromisoformat(CUTOFF).replace(tzinfo=UTC),
        max_train_questions=None,
        max_validation_questions=None,
    )
    assert [identity(r) for r in dataset.records["test"]] == list(map(theirs, split.validation))
    # Theirs is shuffled by a seed, ours by a hash; and our last 15 % of events are validation.
    train = [*dataset.records["train"], *dataset.records["validation"]]
    assert sorted(map(identity, train)) == sorted(map(theirs, split.train))
    assert dataset.report.guards["crossing"].found >= split.excluded_crossing_events > 0
    assert len(split.validation) > 20
    assert not dataset.report.dropped


def test_sources_are_in_the_order_of_the_recipe(table: Path) -> None:
    examples = {
        (one.event_ticker, one.market): one for one in recipe.load_prophet_arena_examples(table)
    }
    for records in load_dataset(table, CUTOFF).records.values():
        for record in records:
            shown = "\n\n".join(
                f"{number}. {source.text}" for number, source in enumerate(record.sources, 1)
            )
            expected = examples[record.event, record.part].reference_material
            assert shown == expected


def test_scores_are_the_brier_reward_of_the_recipe(table: Path) -> None:
    world = world_of(table, cutoff=CUTOFF)
    rng = np.random.default_rng(0)
    for index in range(world.size("test") or 0):
        task = world.task("test", index)
        world.start(task)
        p = round(float(rng.uniform()), 3)
        turn = world.reply(f"Probability: {p}")
        # brier_reward of the recipe's env.py, which loads torch
        assert turn.metrics["score"] == pytest.approx(1.0 - (p - task.answer["outcome"]) ** 2)
        assert turn.metrics["base_rate"] == world.base_rate
