"""Every figure of an evaluation, from rollouts written by hand, against scipy and counting."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

from tokengym.agents.evaluation.config import EvaluationConfig, WorldLevel
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.report import evaluation_report, write_tables
from tokengym.agents.evaluation.results import Results
from tokengym.agents.evaluation.run import results_of, run_evaluation
from tokengym.agents.evaluation.worlds import EvaluatedWorld
from tokengym.envs import make_world

WORLDS = ("energy:small", "energy:day", "forecast:easy")
POLICIES = ("null", "random", "oracle")
TASKS, ROLLOUTS, MARGIN = 12, 5, 0.25
PRICES = (3.0, 15.0)
EXPECTED = "expected_return/forecaster"
CONFIG = EvaluationConfig(
    tuple(map(WorldLevel.parse, WORLDS)),
    POLICIES,
    tasks=TASKS,
    rollouts=ROLLOUTS,
    success_margin=MARGIN,
    prices=PRICES,
)


class Written(NamedTuple):
    """An evaluation of rollouts written by hand.

    Attributes:
        rows: by world and policy its rollouts as they stand in the log, by Task, then number.
        worlds: what `evaluation.json` says of each world.
        found: the results in `evaluation.json`.
        results: the same as they were returned.
    """

    rows: Mapping[tuple[str, str], Sequence[Sequence[dict[str, Any]]]]
    worlds: Mapping[str, Mapping[str, Any]]
    found: Mapping[str, Any]
    results: Results

    def of(self, world: str, policy: str) -> Mapping[str, Any]:
        """Return the results of one policy."""
        place = WORLDS.index(world) * len(POLICIES) + POLICIES.index(policy)
        return dict(self.found["policies"][place])

    def by_task(
        self, world: str, policy: str, of: Callable[[dict[str, Any]], float]
    ) -> list[list[float]]:
        """Return a number of each rollout that was not lost."""
        return [[of(row) for row in rows if not lost(row)] for rows in self.rows[world, policy]]

    def in_unit(self, world: str, policy: str) -> list[list[float]]:
        """Return what skill and success are of: expected returns where all are known."""
        known = world.startswith("forecast") and policy != "random"
        return self.by_task(world, policy, end(EXPECTED) if known else total)

    def ends(self, world: str, policy: str) -> list[list[float]]:
        """Return what the blind policy and the oracle earn on each Task, in the same unit."""
        known = world.startswith("forecast") and policy != "random"
        prefix = "expected_" if known else ""
        return [self.worlds[world][f"{prefix}{who}_returns"] for who in ("blind", "oracle")]


def rewritten(
    row: dict[str, Any], oracle: float, best: float, rng: np.random.Generator
) -> dict[str, Any]:
    """Return a rollout of random turns and earnings in place of one that was played.

    Two in five succeed: one above the margin and one that earns just what is asked.
    """
    near, far = [MARGIN - 1 / 64, MARGIN, MARGIN + 1 / 64], [0.5, 0.75]
    # One policy is better than the others: its differences are found.
    better = (row["level"], row["policy"]) == ("day", "oracle")
    missing, expected = (float(rng.choice(near if better else near + far)) for _ in range(2))
    place = 100 * row["group"] + row["member"]
    turns = [
        {
            **row["turns"][0],
            "said": f"reply {n}",
            "malformed": bool(rng.random() < 0.3),
            "complete": bool(rng.random() < 0.7),
            "finish": str(rng.choice(["stop", "length", "refusal", "content_filter"])),
            "prompt_tokens": 1000 + place,
            "completion_tokens": 10 + n,
            "metrics": {"well_formed": 1.0},
        }
        for n in range(rng.integers(1, 6))
    ]
    energy = row["world"] == "tokengym/Energy-v0"
    last = {
        "violation_depth": None if place == 2 else max(0.0, rng.integers(-8, 8) / 16),
        "total_money_cost": rng.integers(1, 64) / 16,
        "carbon": None if place == 103 else rng.integers(1, 64) / 16,
    }
    stated = {
        "label": float(row["group"] == 1),
        "probability": rng.integers(1, 64) / 64,
        EXPECTED: best - expected,
    }
    turns[-1]["metrics"] |= last if energy else stated
    # No reply: the endpoint refused the conversation, or gave no answer; all of one Task were lost.
    silent = {**turns[-1], "said": None, "complete": False, "malformed": True}
    unanswered = place % 7 == 2 or row["group"] == 5 + POLICIES.index(row["policy"])
    finish = "time-out: no answer in 9 s" if unanswered else "refused (status 400): too long"
    if unanswered or place % 3 == 0:
        turns.append({**silent, "finish": finish, "prompt_tokens": None})
    return {**row, "return": oracle - missing, "turns": turns}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Play an evaluation, write other rollouts in its log, and let it compute its results again."""
    folder = EvaluationFolder(tmp_path_factory.mktemp("evaluation"))
    run_evaluation(CONFIG, folder, 1)
    played = json.loads(folder.file.read_text())
    worlds = dict(zip(WORLDS, played["worlds"], strict=True))
    rng, rows = np.random.default_rng(0), {}
    for world, level in zip(WORLDS, CONFIG.worlds, strict=True):
        for policy in POLICIES:
            path = folder.rollouts.path(folder.segment(level, policy, CONFIG))
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            ends = worlds[world]["oracle_returns"]
            best = worlds[world]["expected_oracle_returns"] or ends
            new = [rewritten(row, ends[row["group"]], best[row["group"]], rng) for row in lines]
            if (world, policy) == ("energy:day", "random"):
                new[7]["turns"][0]["completion_tokens"] = None
            if (world, policy) == ("forecast:easy", "random"):
                new[8]["turns"][-1]["metrics"][EXPECTED] = None
            path.write_text("".join(json.dumps(row) + "\n" for row in new))
            rows[world, policy] = [
                new[first : first + ROLLOUTS] for first in range(0, len(new), ROLLOUTS)
            ]
    # Not by running it again, which would play what was lost.
    resolved = [EvaluatedWorld.resolve(level, CONFIG) for level in CONFIG.worlds]
    results = results_of(CONFIG, folder, resolved)
    folder.write(CONFIG, resolved, results)
    found = json.loads(folder.file.read_text())
    assert found["worlds"] == played["worlds"]
    return Written(rows, worlds, found["results"], results)


def mean_of(values: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Return the mean with Student's interval over the means of Tasks."""
    means = [sum(row) / len(row) for row in values if row]
    half = stats.t.ppf(0.975, len(means) - 1) * stats.sem(means)
    mean = sum(means) / len(means)
    return {"value": mean, "low": mean - half, "high": mean + half, "samples": len(means)}


def mean_of_rollouts(values: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Return the mean of all rollouts, with the error of a ratio of sums over Tasks."""
    played = [row for row in values if row]
    count, tasks = sum(map(len, played)), len(played)
    mean = sum(map(sum, played)) / count
    squares = sum((sum(row) - mean * len(row)) ** 2 for row in played)
    half = stats.t.ppf(0.975, tasks - 1) * math.sqrt(tasks / (tasks - 1) * squares) / count
    return {"value": mean, "low": mean - half, "high": mean + half, "samples": tasks}


def share_of(values: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Return the mean of shares: Student's interval, or Clopper and Pearson's of rare outcomes."""
    played = [row for row in values if row]
    count, tasks = sum(sum(row) / len(row) for row in played), len(played)
    if 5.0 <= count <= tasks - 5.0:
        return mean_of(values)
    low = stats.beta.ppf(0.025, count, tasks - count + 1) if count else 0.0
    high = stats.beta.ppf(0.975, count + 1, tasks - count) if count < tasks else 1.0
    return {"value": count / tasks, "low": low, "high": high, "samples": tasks}


def lost(row: Mapping[str, Any]) -> bool:
    last = row["turns"][-1]
    return last["said"] is None and last["finish"].startswith("time-out")


def differences(first: Sequence[Sequence[float]], second: Sequence[Sequence[float]]) -> list[float]:
    """Return the differences of the means of the Tasks that both played."""
    return [
        sum(a) / len(a) - sum(b) / len(b) for a, b in zip(first, second, strict=True) if a and b
    ]


def replies(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [turn for turn in row["turns"] if turn["said"] is not None]


def share_of_replies(what: Callable[[dict[str, Any]], bool]) -> Callable[[dict[str, Any]], float]:
    return lambda row: sum(map(what, replies(row))) / len(replies(row))


def end(name: str) -> Callable[[dict[str, Any]], float]:
    return lambda row: row["turns"][-1]["metrics"][name]


def total(row: dict[str, Any]) -> float:
    return float(row["return"])


everywhere = pytest.mark.parametrize(
    ("world", "policy"), [(world, policy) for world in WORLDS for policy in POLICIES]
)


@everywhere
def test_who_played_what_is_stated(written: Written, world: str, policy: str) -> None:
    found = written.of(world, policy)
    level = WorldLevel.parse(world)
    names = ("world", "level", "policy", "role", "tasks", "rollouts")
    role = "operator" if world.startswith("energy") else "forecaster"
    wanted = (level.world, level.level, policy, role, TASKS, ROLLOUTS)
    assert tuple(found[name] for name in names) == wanted
    assert (found["temperature"], found["max_tokens"]) == (None, None)


@pytest.mark.parametrize("world", WORLDS)
def test_the_ends_of_skill_and_the_optimum_are_in_the_unit_of_what_is_compared(
    written: Written, world: str
) -> None:
    found = written.found["worlds"][WORLDS.index(world)]
    assert found["unit"] == ("expected" if world.startswith("forecast") else "realised")
    blind, oracle = written.ends(world, "null")
    assert found["blind"] == pytest.approx(mean_of([[value] for value in blind]))
    assert found["oracle"] == pytest.approx(mean_of([[value] for value in oracle]))
    made = make_world(*WorldLevel.parse(world))
    limits = [made.optimum(task)[found["role"]] for task in made.first_tasks("test", TASKS)]
    assert found["optimum"] == pytest.approx(sum(limit.value for limit in limits) / TASKS)
    assert found["exact"] == all(limit.exact for limit in limits)
    if found["unit"] == "expected":  # the oracle attains it, on average over outcomes
        assert found["optimum"] == pytest.approx(sum(oracle) / TASKS, abs=2**-12)
    limit = "optimum" if found["exact"] else "bound"
    report = evaluation_report(CONFIG, written.results)
    unit = "expected returns" if found["unit"] == "expected" else "returns"
    assert (
        f"{world}, {unit}: {found['blind_name']} {found['blind']['value']:.3f}, "
        f"oracle {found['oracle']['value']:.3f}, {limit} {found['optimum']:.3f}."
    ) in report.lines


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
def test_what_earns_just_the_margin_less_than_the_oracle_succeeds(
    written: Written, world: str, policy: str
) -> None:
    found = written.of(world, policy)
    _, oracle = written.ends(world, policy)
    earned = written.in_unit(world, policy)
    succeeded = [
        [float(value >= best - MARGIN) for value in values]
        for values, best in zip(earned, oracle, strict=True)
    ]
    assert found["success"] == pytest.approx(share_of(succeeded))
    assert list(found["pass_at"]) == ["1", "2", "4", "5"]
    for k, share in found["pass_at"].items():
        chances = [
            [float(np.mean([max(chosen) for chosen in combinations(row, int(k))]))]
            for row in succeeded
            if len(row) >= int(k)
        ]
        assert share == pytest.approx(share_of(chances)), k
    # Some earn just that, or the law above would hold of `>` too.
    pairs = zip(earned, oracle, strict=True)
    assert any(value == best - MARGIN for values, best in pairs for value in values)


@everywhere
def test_skill_is_that_of_the_mean_rollout_between_both_ends(
    written: Written, world: str, policy: str
) -> None:
    rows = [
        (sum(values) / len(values), *ends)
        for values, *ends in zip(
            written.in_unit(world, policy), *written.ends(world, policy), strict=True
        )
        if values
    ]
    means, blind, oracle = map(np.array, zip(*rows, strict=True))
    above, span = means - blind, oracle - blind
    found = written.of(world, policy)["skill"]
    known = world.startswith("forecast") and policy != "random"
    assert written.of(world, policy)["unit"] == ("expected" if known else "realised")
    assert found["value"] == pytest.approx(above.sum() / span.sum())
    draws = stats.bootstrap(
        (above, span),
        lambda above, span, axis: above.sum(axis=axis) / span.sum(axis=axis),
        paired=True,
        method="percentile",
        rng=0,
    ).confidence_interval
    near = 0.05 * (draws.high - draws.low)
    assert (found["low"], found["high"]) == pytest.approx((draws.low, draws.high), abs=near)
    assert found["samples"] == TASKS - 1


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
def test_tokens_cost_their_prices_and_one_unknown_count_makes_the_sum_unknown(
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
def test_what_a_world_reports_at_the_end_is_clustered_by_task(
    written: Written, world: str, policy: str
) -> None:
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


def test_policies_are_compared_within_a_level_by_corrected_paired_t_tests(
    written: Written,
) -> None:
    wanted = [(world, *two) for world in WORLDS for two in combinations(POLICIES, 2)]
    found = written.found["pairs"]
    names = ("world", "level", "first", "second")
    assert [tuple(pair[name] for name in names) for pair in found] == [
        (*WorldLevel.parse(world), first, second) for world, first, second in wanted
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
        assert pair["on_outcomes"] == (
            pytest.approx(mean_of([[value] for value in paid])) if known else None
        )
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


def test_the_report_and_the_tables_show_these_figures(written: Written, tmp_path: Path) -> None:
    report = evaluation_report(CONFIG, written.results)
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
        assert cells["could show"] == f"{pair['detectable']:.3f}"
        needed = pair["tasks_needed"]
        assert cells["Tasks to show it"] == ("" if needed is None else f"{needed:,}")
        assert cells["return"].endswith(" (expected)") == (pair["unit"] == "expected")
    write_tables(tmp_path, written.results)
    table = [line.split(",") for line in (tmp_path / "policies.csv").read_text().splitlines()]
    saved = dict(zip(table[0], table[1], strict=True))
    assert float(saved["mean_return.low"]) == first["mean_return"]["low"]
    assert float(saved["pass_at.4.high"]) == first["pass_at"]["4"]["high"]
    assert math.isclose(float(saved["cost"]), first["cost"])
