"""Laws of collapse: seen after so many steps, named with its cause, not where there is signal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.agents.training.folder.collapse import find_collapse
from tokengym.agents.training.folder.monitor import ReplyStatistics, StepRow

PATIENCE = 5


def row(
    step: int,
    dead: float = 0.1,
    malformed: float = 0.0,
    cut_off: float = 0.0,
    repeating: float = 0.0,
    copied: float = 0.0,
    commonest: float = 0.05,
) -> StepRow:
    replies = ReplyStatistics(
        128, 1 + int(128 * (1 - commonest)), "Probability: 0.137", commonest, 8
    )
    shares = malformed, cut_off, repeating, copied
    return StepRow(step, 0.5, dead, dead, *shares, 1.0, replies, 1.0, 1.0, {})


@given(st.lists(st.booleans(), max_size=20), st.integers(0, 7))
def test_a_collapse_is_so_many_dead_steps_at_the_end(dead: list[bool], patience: int) -> None:
    rows = [row(step, float(flag)) for step, flag in enumerate(dead)]
    found = find_collapse(rows, patience)
    run = 0
    for flag in reversed(dead):
        if not flag:
            break
        run += 1
    assert (found is not None) == (0 < patience <= run)
    if found is not None:
        assert found.since == len(dead) - run


@pytest.mark.parametrize(
    ("ailment", "cause", "advice"),
    [
        ({"cut_off": 0.95, "malformed": 0.95}, "95% of the replies were cut off", "--max-tokens"),
        (
            {"cut_off": 0.95, "repeating": 0.9},
            "90% of the replies repeat themselves",
            "--warm-start",
        ),
        ({"malformed": 0.9}, "90% of the replies are malformed", "--warm-start"),
        ({"copied": 0.7}, "70% of the replies copy a line of the prompt", "--temperature"),
        ({"commonest": 0.6}, "60% of the replies are the same", "--kl"),
        ({}, "there is no gradient left", "--group-size"),
    ],
)
def test_the_cause_is_named_with_what_to_try(
    ailment: dict[str, float], cause: str, advice: str
) -> None:
    found = find_collapse([row(step, 1.0, **ailment) for step in range(PATIENCE)], PATIENCE)
    assert found is not None
    assert cause in found.reason
    assert "100% of the groups tie" in found.reason
    assert advice in found.advice


@pytest.mark.parametrize(
    ("dead", "malformed", "collapsed"),
    [(0.8, 0.5, True), (0.79, 0.5, False), (0.8, 0.49, False), (1.0, 0.0, True)],
)
def test_most_groups_tie_for_one_cause(dead: float, malformed: float, collapsed: bool) -> None:
    rows = [row(step, dead, malformed) for step in range(PATIENCE)]
    assert (find_collapse(rows, PATIENCE) is not None) == collapsed


def test_harmless_ties_stop_no_policy() -> None:
    """Near the optimum most groups tie, and that is no fault."""
    assert find_collapse([row(step, 0.9) for step in range(9)], PATIENCE) is None


def test_ties_below_the_best_blind_policy_are_a_collapse() -> None:
    """SmolLM2 in disruption, seed 1: its claims differ, and it gives one label to every paper."""
    dead = (0.0, 0.0, 0.25, 0.62, 0.62, 0.38, 0.75, 0.88, 1.0, 0.75, 0.88)
    rewards = (0.36, 0.08, 0.33, 0.52, 0.65, 0.54, 0.28, 0.23, -0.05, 0.84, 0.29)
    rows = [
        row(step, share)._replace(reward=reward)
        for step, (share, reward) in enumerate(zip(dead, rewards, strict=True))
    ]
    assert find_collapse(rows[:-1], PATIENCE, 0.534) is None
    found = find_collapse(rows, PATIENCE, 0.534)
    assert found is not None
    assert found.since == 6
    assert "85% of the groups tie" in found.reason
    assert "(0.534)" in found.reason
    assert "--kl" in found.advice
    assert find_collapse(rows, PATIENCE) is None
    assert find_collapse(rows, PATIENCE, 0.3) is None


def test_one_reply_on_one_task_is_no_collapse() -> None:
    alone = ReplyStatistics(8, 1, "DONE", 1.0, 1)
    rows = [row(step)._replace(replies=alone) for step in range(9)]
    assert find_collapse(rows, PATIENCE) is None


def test_live_groups_decide_over_returns() -> None:
    tied = [row(step, 1.0) for step in range(PATIENCE)]
    counted = {"groups/drawn": 8.0, "groups/live": 8.0}
    assert find_collapse([found._replace(metrics=counted) for found in tied], PATIENCE) is None
    dead = {"groups/drawn": 8.0, "groups/live": 0.0}
    noise = [row(step)._replace(metrics=dead) for step in range(PATIENCE)]
    assert find_collapse(noise, PATIENCE) is not None
