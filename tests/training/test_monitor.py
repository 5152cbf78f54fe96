"""Laws of monitoring a run: each completed step once, damaged lines skipped, replies counted."""

import json
import re
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tokengym.agents.rollouts import (
    RolloutLog,
    RolloutOrigin,
    RolloutRecord,
    TurnRecord,
    train_segment,
)
from tokengym.agents.rollouts.repetition import repeats_itself
from tokengym.agents.training.folder.monitor import ReplyStatistics, StepLog, StepRow, named
from tokengym.agents.training.folder.run_summary import form_warning
from tokengym.agents.training.progress import Progress


def line(step: int, reward: float = 0.5, uniform: float = 0.0, malformed: float = 0.0) -> str:
    return json.dumps(
        {
            "step": step,
            "env/all/reward/total": reward,
            "env/all/reward_uniform_group_rate": uniform,
            "env/all/malformed": malformed,
            "env/all/total_ob_tokens": 900,
            "env/all/total_ac_tokens": 100,
            "time/total": 2.0,
        }
    )


def test_a_file_that_grows_gives_each_step_once(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    log = StepLog(path, RolloutLog(tmp_path))
    assert log.poll() == []
    path.write_text(line(0) + "\n" + line(1)[:20])
    assert [found.step for found in log.poll()] == [0]
    path.write_text(line(0) + "\n" + line(1) + "\n")
    assert [found.step for found in log.poll()] == [1]
    assert log.poll() == []
    assert log.rows[1].tokens == 1000


@pytest.mark.parametrize(("total", "every"), [(8, 1), (60, 3)])
def test_progress_shows_the_means_since_the_line_before(
    tmp_path: Path, total: int, every: int
) -> None:
    path = tmp_path / "metrics.jsonl"
    rewards = [step / total for step in range(total)]
    path.write_text("".join(line(step, reward) + "\n" for step, reward in enumerate(rewards)))
    shown = StringIO()
    with Progress(Console(file=shown, width=200)).steps(total, []) as show:
        for row in StepLog(path, RolloutLog(tmp_path)).current():
            show(row)
    found = re.findall(r"step (\d+)/\d+  reward (\S+)", shown.getvalue())
    assert [int(number) for number, _ in found] == sorted({*range(1, total + 1, every), total})
    for number, reward in found:
        latest = rewards[max(0, int(number) - every) : int(number)]
        assert float(reward) == pytest.approx(sum(latest) / len(latest), abs=6e-4)


@pytest.mark.parametrize(
    ("cut_off", "repeating", "said"),
    [
        (0.2, 0.0, ""),
        (0.21, 0.1, "cut off 21% (raise --max-tokens)"),
        (0.8, 0.7, "cut off 80% (most repeat themselves: --warm-start)"),
    ],
)
def test_a_step_with_many_replies_cut_off_names_the_option(
    cut_off: float, repeating: float, said: str, tmp_path: Path
) -> None:
    shares = {"env/all/cut_off": cut_off, "env/all/repeating": repeating}
    (tmp_path / "metrics.jsonl").write_text(json.dumps(json.loads(line(0)) | shares) + "\n")
    shown = StringIO()
    with Progress(Console(file=shown, width=200)).steps(1, []) as show:
        show(StepLog(tmp_path / "metrics.jsonl", None).current()[0])
    assert shown.getvalue().startswith(f"step 1/1  {said}{'  ' * bool(said)}reward 0.500")


@pytest.mark.parametrize(("repeating", "named"), [(0.0, True), (0.9, False)])
def test_no_longer_limit_is_advised_where_replies_repeat_themselves(
    repeating: float, named: bool
) -> None:
    assert ("--max-tokens" in form_warning(0.9, 0.9, repeating, "full")) == named


@pytest.mark.parametrize(
    ("reply", "repeats"),
    [
        ("Probability: 0.99999999", True),
        ("TRIP O1\nTRIP O2\n" * 3 + "TRIP", True),
        ("The sum is 3.000", False),
        ("Wait ... the rate is 0.25 per day, so 0.25 + 0.25", False),
        ("", False),
    ],
)
def test_a_reply_that_goes_round_in_circles_is_found(reply: str, repeats: bool) -> None:
    assert repeats_itself(reply) == repeats


def test_a_step_repeated_after_a_resume_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    torn = line(1)[:30]
    path.write_text("\n".join([line(0), line(1, 0.1), torn, line(1, 0.9), "{}", "[1]"]) + "\n")
    log = StepLog(path, RolloutLog(tmp_path))
    log.poll()
    assert [(found.step, found.reward) for found in log.rows] == [(0, 0.5), (1, 0.9)]


def test_what_a_step_replied_is_read_from_its_rollouts(tmp_path: Path) -> None:
    groups = [["Probability: 0.1", "Probability: 0.1 "], ["Probability: 0.1", "I think"]]
    rollouts = RolloutLog(tmp_path / "rollouts")
    for group, replies in enumerate(groups):
        for member, said in enumerate(replies):
            origin = RolloutOrigin("train", step=0, group=group, member=member)
            turns = (TurnRecord("forecaster", "?", said),)
            task = ("w", "l", "train", 0, "f")
            record = RolloutRecord(origin, *task, "forecaster", turns, "completed", 0.5)
            rollouts.append(train_segment(0), [record])
    with rollouts.path(train_segment(0)).open("a") as torn:
        torn.write('{"schema": 1, "st')
    (tmp_path / "metrics.jsonl").write_text(line(0) + "\n" + line(1) + "\n")
    log = StepLog(tmp_path / "metrics.jsonl", rollouts)
    log.poll()
    first, second = log.rows
    assert first.replies == ReplyStatistics(4, 2, "Probability: 0.1", 0.75, 2)
    assert not first.one_reply
    assert second.replies is None
    assert second.commonest_share is None


def test_each_figure_is_where_the_trainer_logs_it(tmp_path: Path) -> None:
    logged = {
        "step": 3,
        "env/all/reward/total": 0.1,
        "env/all/reward_uniform_group_rate": 0.2,
        "env/all/reward_tie_pair_rate": 0.3,
        "env/all/malformed": 0.4,
        "env/all/cut_off": 0.5,
        "env/all/repeating": 0.6,
        "env/all/copied": 0.7,
        "optim/entropy": 0.8,
        "env/all/total_ob_tokens": 900,
        "env/all/total_ac_tokens": 90,
        "train/tokens": 9,
        "time/total": 2.5,
    }
    fits = ({"train/nll": 2.0}, {"dpo/loss": 0.5, "env/all/malformed": float("inf")})
    supervised = [{"step": 4 + n, **fit} for n, fit in enumerate(fits)]
    counted = {**logged, "step": 6, "groups/live": 2.0, "groups/drawn": 8.0}
    lines = [json.dumps(row) for row in (logged, *supervised, counted)]
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    found, nll, dpo, live = StepLog(tmp_path / "metrics.jsonl", None).current()
    assert tuple(found) == (3, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, None, 999.0, 2.5, logged)
    assert (found.loss, nll.loss, dpo.loss) == (None, 2.0, 0.5)
    assert (nll.reward, nll.entropy, dpo.malformed_share) == (0.0, None, 0.0)
    assert (found.dead_share, live.dead_share) == (0.2, 0.75)
    expected = {"mean_reward": 0.1, "reward_uniform_group_rate": 0.2, "reward_tie_pair_rate": 0.3}
    assert named(logged) == {**expected, "tokens_per_second": 999 / 2.5}
    assert named({"time/total": 1.0}) == named({"train/tokens": 5}) == {}


@pytest.mark.parametrize(
    ("commonest", "tasks", "one"), [(0.9, 2, True), (0.89, 2, False), (1, 1, False)]
)
def test_nearly_one_reply_to_all_is_one(commonest: float, tasks: int, one: bool) -> None:
    statistics = ReplyStatistics(100, 2, "TRIP O1", commonest, tasks)
    shown = StepRow(0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, statistics, 1.0, 1.0, {})
    assert shown.one_reply is one
