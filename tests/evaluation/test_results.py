"""Figures of an evaluation, from rollouts written by hand, against scipy and counting."""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.evaluation.written_rollouts import (
    CONFIG,
    EXPECTED,
    POLICIES,
    ROLLOUTS,
    TASKS,
    WORLDS,
    Written,
    end,
    everywhere,
    mean_of,
    mean_of_rollouts,
    share_of,
    total,
)
from tokengym.agents.evaluation.report import evaluation_report
from tokengym.envs.registry import spec_and_level


def differences(first: Sequence[Sequence[float]], second: Sequence[Sequence[float]]) -> list[float]:
    """Return the differences of the means of the Tasks that both played."""
    return [
        sum(a) / len(a) - sum(b) / len(b) for a, b in zip(first, second, strict=True) if a and b
    ]


def replies(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [turn for turn in row["turns"] if turn["said"] is not None]


def share_of_replies(what: Callable[[dict[str, Any]], bool]) -> Callable[[dict[str, Any]], float]:
    return lambda row: sum(map(what, replies(row))) / len(replies(row))


@pytest.mark.nightly
@everywhere
def test_who_played_what_is_stated(written: Written, world: str, policy: str) -> None:
    found = written.of(world, policy)
    spec, level = spec_and_level(world)
    names = ("world", "level", "policy", "role", "tasks", "rollouts")
    role = "operator" if world.startswith("energy") else "forecaster"
    wanted = (spec.id, level, policy, role, TASKS, ROLLOUTS)
    assert tuple(found[name] for name in names) == wanted
    assert (found["temperature"], found["max_tokens"]) == (None, None)


@everywhere
def test_returns_and_shares_are_clustered_by_task(
    written: Written, world: str, policy: str
) -> None:
    found = written.of(world, policy)
    assert found["mean_return"] == pytest.approx(mean_of(written.by_task(world, policy, total)))
    for name, what in (
        ("malformed", lambda turn: turn["malformed"]),
        ("cut_off", lambda turn: not turn["complete"]),
        ("refused", lambda turn: turn["finish"] in ("refusal", "content_filter")),
    ):
        shares = written.by_task(world, policy, share_of_replies(what))
        assert 0.0 < found[name]["value"] < 1.0
        assert found[name] == pytest.approx(share_of(shares)), name


@everywhere
def test_failures_are_counted_by_reason(written: Written, world: str, policy: str) -> None:
    found = written.of(world, policy)
    ends = [row["turns"][-1] for rows in written.rows[world, policy] for row in rows]
    reasons = [turn["finish"] for turn in ends if turn["said"] is None]
    assert found["failures"] == {
        "refused (status 400)": sum(reason.startswith("refused") for reason in reasons),
        "time-out": sum(reason.startswith("time-out") for reason in reasons),
    }
    assert found["lost"] == found["failures"]["time-out"] > 5


@everywhere
def test_one_unknown_count_makes_the_cost_unknown(
    written: Written, world: str, policy: str
) -> None:
    found = written.of(world, policy)
    turns = [turn for rows in written.rows[world, policy] for row in rows for turn in replies(row)]
    read, said = ([turn[f"{name}_tokens"] for turn in turns] for name in ("prompt", "completion"))
    names = ("prompt_tokens", "completion_tokens", "cost")
    if (world, policy) == ("energy:day", "random"):
        assert [found[name] for name in names] == [sum(read), None, None]
        return
    dollars = sum(read) * 3.0 / 1_000_000 + sum(said) * 15.0 / 1_000_000
    assert [found[name] for name in names] == [sum(read), sum(said), pytest.approx(dollars)]


@everywhere
def test_final_reports_are_clustered_by_task(written: Written, world: str, policy: str) -> None:
    found = written.of(world, policy)
    if not world.startswith("energy"):
        values = written.by_task(world, policy, end(EXPECTED))
        known = None if policy == "random" else mean_of(values)
        assert found["expected"] == (known and pytest.approx(known))
        assert found["violations"] is None
        squares = written.by_task(
            world, policy, lambda row: (end("probability")(row) - end("label")(row)) ** 2
        )
        assert found["scores"]["Brier score"] == pytest.approx(mean_of_rollouts(squares))
        return
    assert found["expected"] is None
    broken = written.by_task(
        world, policy, lambda row: float((end("violation_depth")(row) or 0.0) > 0.0)
    )
    assert found["violations"] == pytest.approx(share_of(broken))
    paid = written.by_task(world, policy, lambda row: 100.0 * end("total_money_cost")(row))
    assert found["scores"]["cost (ct)"] == pytest.approx(mean_of(paid))
    # One rollout of the second Task has no such figure: the Task is left out.
    first, _, *others = written.by_task(world, policy, end("carbon"))
    assert found["scores"]["carbon (kg)"] == pytest.approx(mean_of([first, *others]))


def test_policies_of_a_level_are_compared_pairwise(written: Written) -> None:
    wanted = [(world, *two) for world in WORLDS for two in combinations(POLICIES, 2)]
    found = written.found["pairs"]
    names = ("world", "level", "first", "second")
    assert [tuple(pair[name] for name in names) for pair in found] == [
        (spec_and_level(world)[0].id, spec_and_level(world)[1], first, second)
        for world, first, second in wanted
    ]
    p_values = []
    for pair, (world, *two) in zip(found, wanted, strict=True):
        known = world.startswith("forecast") and "random" not in two
        paid = differences(*(written.by_task(world, one, total) for one in two))
        expected = paid
        if known:
            expected = differences(*(written.by_task(world, one, end(EXPECTED)) for one in two))
        assert pair["unit"] == ("expected" if known else "realised")
        assert pair["difference"] == pytest.approx(mean_of([[value] for value in expected]))
        test = stats.ttest_1samp(expected, 0.0)
        assert pair["p_value"] == pytest.approx(test.pvalue)
        tasks, error = len(expected), float(stats.sem(expected))
        assert tasks == TASKS - 2  # each lost another one
        ends = np.asarray(stats.t.ppf([0.975, 0.8], tasks - 1))
        assert pair["detectable"] == pytest.approx(ends.sum() * error)
        found_it = world == "energy:day" and "oracle" in two
        assert (test.pvalue < 0.05) == found_it
        if found_it:
            assert pair["tasks_needed"] is None
        else:
            # By the normal law, with the wider interval of so few Tasks, rounded up to two digits.
            shown = (1.96 + 0.84) / 1.96 * ends[0] * error / float(np.mean(expected))
            assert pair["tasks_needed"] == pytest.approx(tasks * shown**2, rel=0.1, abs=1.0)
            assert pair["tasks_needed"] >= tasks * shown**2
        p_values.append(pair["p_value"])
    # Holm: the smallest times how many there are, the next times one less, and never less again.
    corrected, before = {}, 0.0
    for place, n in enumerate(sorted(range(9), key=p_values.__getitem__)):
        before = corrected[n] = max(before, min(1.0, (9 - place) * p_values[n]))
    assert [pair["p_corrected"] for pair in found] == pytest.approx(
        [corrected[n] for n in range(9)]
    )


def test_the_report_shows_these_figures(written: Written) -> None:
    report = evaluation_report(CONFIG.plan, written.scales, written.results)
    small, _, _, pairs = report.tables
    first = written.of("energy:small", "null")
    shown = {str(row[0]): row[1] for row in small.rows}
    share = first["pass_at"]["5"]
    assert shown["pass@5"] == (
        f"{share['value']:.1%} ({100 * share['low']:.0f} to {100 * share['high']:.0f})"
    )
    assert shown["cost"] == f"${first['cost']:.2f}"
    half = (first["mean_return"]["high"] - first["mean_return"]["low"]) / 2
    assert shown["return"] == f"{first['mean_return']['value']:.3f}\xa0±\xa0{half:.3f}"
    for row, pair in zip(pairs.rows, written.found["pairs"], strict=True):
        assert row[1] == f"{pair['first']} - {pair['second']}"
        cells = dict(zip(pairs.header, row, strict=True))
        assert cells["p"] == f"{pair['p_corrected']:.3f}"
        assert cells["detectable"] == f"{pair['detectable']:.3f}"
        needed = pair["tasks_needed"]
        assert cells["Tasks needed"] == ("" if needed is None else f"{needed:,}")
        assert cells["return"].endswith(" (expected)") == (pair["unit"] == "expected")
