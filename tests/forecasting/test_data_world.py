"""Laws of a user's own questions: what is shown, and what never leaks."""

import pickle
import re
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.forecasting.questions_file import (
    plain,
    prompts_of,
    report_of,
    tasks_of,
    world_of,
    write_lines,
)
from tokengym.envs.core.errors import DataError, OptionError
from tokengym.envs.core.task import Task
from tokengym.envs.forecasting.data.record import QuestionRecord
from tokengym.envs.forecasting.data.splits import split
from tokengym.envs.intake.text import clean
from tokengym.envs.registry import baselines, make_world

RNG = np.random.default_rng(0)

RNG = np.random.default_rng(0)


# Leakage


times = st.integers(0, 60)


@st.composite
def open_spans(draw: st.DrawFn) -> list[QuestionRecord]:
    records = []
    for number in range(draw(st.integers(1, 25))):
        start = draw(times)
        end = start + draw(st.integers(1, 20))
        stamp = datetime.fromisoformat("2025-01-01T00:00:00+00:00").timestamp()
        asked, closed = (
            datetime.fromtimestamp(stamp + 86_400 * day).astimezone() for day in (start, end)
        )
        event = f"event {draw(st.integers(0, 9))}"
        records.append(
            QuestionRecord(
                f"q{number}", event, f"q{number}?", "", asked, closed, None, (), number % 2
            )
        )
    return records


@given(records=open_spans(), at=st.none() | st.integers(0, 24))
def test_a_split_separates_events_and_times(records: list[QuestionRecord], at: int | None) -> None:
    cutoff = None if at is None else records[at % len(records)].asked_at
    parts = split(records, cutoff)
    seen = {name: {r.event for r in part} for name, part in parts.records.items()}
    crossing = {r.event for event in parts.crossing for r in event.records}
    groups = [*seen.values(), crossing]
    assert sum(map(len, groups)) == len(set.union(*groups)) == len({r.event for r in records})
    used = [r for part in parts.records.values() for r in part]
    assert len(used) + sum(len(e.records) for e in parts.crossing) == len(records)
    learned = parts.records["train"] + parts.records["validation"]
    if parts.cutoff is None:
        first = min(record.asked_at for record in records)
        assert {r.event for r in records if r.asked_at == first} == {r.event for r in records}
        return
    assert all(r.closed_at < parts.cutoff for r in learned)
    assert all(r.asked_at >= parts.cutoff for r in parts.records["test"])
    if parts.records["train"] and parts.records["validation"]:
        latest = {e: max(r.closed_at for r in learned if r.event == e) for e in seen["train"]}
        later = {e: max(r.closed_at for r in learned if r.event == e) for e in seen["validation"]}
        assert max(latest.values()) <= min(later.values())


def test_the_cutoff_is_the_users_if_one_is_given(river: Path) -> None:
    world = world_of(river, cutoff="2025-02-01")
    asked = [world.task("test", i).instance["asked_on"] for i in range(world.size("test") or 0)]
    assert min(asked) >= "2025-02-01"
    with pytest.raises(DataError, match="soon"):
        world_of(river, cutoff="soon")


def test_closing_times_are_never_shown(river: Path, arena: Path, tmp_path: Path) -> None:
    early = [plain(n, closed_at=f"2025-01-01T1{n}:59:58Z", asked_at="2025-01-01") for n in range(9)]
    for path in (arena, write_lines(tmp_path / "early.jsonl", early)):
        for task in tasks_of(world_of(path)):
            assert not re.search(r"\d\d:\d\d|closed|close_time", task.instance_json)


def test_scheduled_dates_are_rounded_up_without_an_hour(river: Path) -> None:
    world = world_of(river)
    task = next(t for t in tasks_of(world) if t.answer["key"] == "q0")
    assert "by 2025-01-07." in world.start(task).text
    assert "15:30" not in world.start(task).text


def test_a_source_dated_after_the_snapshot_is_refused(tmp_path: Path) -> None:
    sources = [
        {"text": "before", "date": "2025-01-01T08:00:00Z"},
        {"text": "afterwards", "date": "2025-01-01T10:00:00Z"},
        {"text": "sameday", "date": "2025-01-01"},
        {"text": "dayearlier", "date": "2024-12-31"},
        "undated",
    ]
    rows = [plain(0, sources=sources), plain(30)]
    world = world_of(write_lines(tmp_path / "a.jsonl", rows))
    prompt = next(p for p in prompts_of(world) if "Source" in p)
    assert re.findall(r"Source \d: (\w+)", prompt) == ["before", "dayearlier", "undated"]
    assert [late.split(": ")[0] for late in report_of(world).every] == ["a.jsonl:1"] * 2


def test_prices_are_hidden_unless_asked_for(arena: Path) -> None:
    hidden, shown = world_of(arena), world_of(arena, show_prices=True)
    assert not any("0.420" in prompt or "price" in prompt for prompt in prompts_of(hidden))
    assert all('"price":null' in task.instance_json for task in tasks_of(hidden))
    assert any("Market price: no 0.580, yes 0.420." in prompt for prompt in prompts_of(shown))


def test_the_market_policy_states_the_price_or_says_why_not(arena: Path) -> None:
    market = baselines("forecast")["market"]
    world = world_of(arena, show_prices=True)
    task = next(t for t in tasks_of(world) if t.instance["price"] is not None)
    assert market(world, world.start(task), RNG) == "Probability: 0.420"
    blind = world_of(arena)
    reply = market(blind, blind.start(blind.task()), RNG)
    assert reply.startswith("No price is shown")
    assert blind.reply(reply).metrics["probability"] == pytest.approx(blind.base_rate, abs=1e-3)


def test_repeats_are_merged_into_the_earliest_snapshot(tmp_path: Path) -> None:
    first, again = (
        plain(3),
        plain(3, id="other", asked_at="2025-01-06", question="  WILL river 3 rise above its MARK?"),
    )
    world = world_of(write_lines(tmp_path / "a.jsonl", [again, plain(40), first]))
    assert report_of(world).guards["merged"].found == 1
    asked = [task.instance["asked_on"] for task in tasks_of(world)]
    assert sorted(asked) == ["2025-01-04", "2025-02-13"]


def test_rows_that_contradict_each_other_are_all_rejected(tmp_path: Path) -> None:
    rows = [plain(3), plain(3, id="other", outcome=0), plain(40)]
    world = world_of(write_lines(tmp_path / "a.jsonl", rows))
    assert [rejected.split(",")[0] for rejected in sorted(report_of(world).every)] == [
        "a.jsonl:1: row 1",
        "a.jsonl:2: row 2",
    ]
    assert [task.answer["key"] for task in tasks_of(world)] == ["q40"]


def test_no_instance_or_prompt_depends_on_the_outcome(tmp_path: Path) -> None:
    rows = [plain(number) for number in range(30)]
    swapped = [{**row, "outcome": 1 - row["outcome"]} for row in rows]
    one = world_of(write_lines(tmp_path / "a.jsonl", rows))
    other = world_of(write_lines(tmp_path / "b.jsonl", swapped))
    assert prompts_of(one) == prompts_of(other)
    assert [t.fingerprint for t in tasks_of(one)] == [t.fingerprint for t in tasks_of(other)]


CONTROL = [
    *("<|im_end|>", "<|im_start|>assistant", "</s>", "<start_of_turn>", "<\uff5cUser\uff5c>"),
    *("<think>", "[INST]", "<<SYS>>", "<a<|im_end|>b>", "<|endoftext|"),
]


@pytest.mark.parametrize("token", CONTROL)
def test_control_tokens_in_user_text_are_neutralised(token: str, tmp_path: Path) -> None:
    row = plain(
        1,
        question=f"Will {token} win?",
        background=f"x{token}y",
        sources=[f"{token}{token}"],
        outcomes=[f"a{token}", "b"],
    )
    world = world_of(write_lines(tmp_path / "a.jsonl", [row, plain(40)]))
    for prompt in prompts_of(world):
        assert token not in prompt
        assert not re.search("<[^ <>]+>|<[|\uff5c]|[|\uff5c]>|\\[INST\\]", prompt)


@given(st.text())
def test_neutral_text_is_stable_and_encodes(text: str) -> None:
    once = clean(text)
    assert clean(once) == once
    once.encode("utf-8")


def test_comparisons_and_ordinary_brackets_stay_readable() -> None:
    text = "if x < 5 and y > 7, or 3 > 2 [see note], temperature >30 C"
    assert clean(text) == text


# The world over files


def test_an_index_beyond_the_split_names_its_size(river: Path) -> None:
    world = world_of(river)
    size = world.size("test")
    with pytest.raises(OptionError, match=f"holds {size} Tasks"):
        world.task("test", size or 0)
    for bad in (-1, True, 1.5):
        with pytest.raises(OptionError, match="index"):
            world.task("test", bad)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="holdout"):
        world.task("holdout", 0)
    assert make_world("forecast").size("test") is None


def test_the_base_rate_is_that_of_training(river: Path) -> None:
    world = world_of(river)
    outcomes = [world.task("train", i).answer["outcome"] for i in range(world.size("train") or 0)]
    assert world.base_rate == fmean(outcomes)


@pytest.mark.parametrize("policy", ["half", "base_rate", "random", "empirical", "noisy", "oracle"])
def test_every_policy_plays_real_questions(policy: str, river: Path) -> None:
    world = world_of(river)
    turn = world.start(world.task("test", 1))
    turn = world.reply(baselines("forecast")[policy](world, turn, RNG))
    assert turn.metrics["well_formed"] == 1.0
    assert policy != "oracle" or turn.rewards["forecaster"] == 1.0


def test_a_task_of_a_file_plays_without_the_file(river: Path) -> None:
    task = Task.from_json(world_of(river).task("test", 0).to_json())
    world = make_world("forecast")
    assert "river" in world.start(task).text


def test_worlds_share_records_and_pickle_as_references(river: Path) -> None:
    world, other = world_of(river), world_of(river)
    assert world.fork()._dataset is other._dataset is world._dataset
    sent = pickle.dumps(world)
    assert len(sent) < 2500
    assert pickle.loads(sent).task("test", 0) == world.task("test", 0)


def test_a_file_changed_under_a_pickled_world_is_noticed(river: Path) -> None:
    sent = pickle.dumps(world_of(river))
    write_lines(river, [plain(number) for number in range(61)])
    from tokengym.envs.forecasting.data import load

    load._load.cache_clear()
    with pytest.raises(DataError, match="changed"):
        pickle.loads(sent)


@pytest.mark.parametrize(
    "options",
    [{"label": "expected"}, {"label": "replay:4"}, {"family": "poisson"}, {"level": "hard"}],
)
def test_options_of_synthetic_questions_are_refused_with_data(
    options: dict[str, Any], river: Path
) -> None:
    with pytest.raises(OptionError, match="data comes without"):
        make_world("forecast", data=river, **options)


@pytest.mark.parametrize("options", [{"cutoff": "2025-01-01"}, {"show_prices": True}])
def test_options_of_data_are_refused_without_it(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="options of data"):
        make_world("forecast", **options)
