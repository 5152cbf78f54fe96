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
from tokengym.agents.evaluation.run import run_evaluation

WORLDS = ("energy:small", "energy:day", "forecast:easy")
POLICIES = ("null", "random", "oracle")
TASKS, ROLLOUTS, MARGIN = 12, 5, 0.25
PRICES = (3.0, 15.0)
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
        """Return a number of each rollout."""
        return [[of(row) for row in rows] for rows in self.rows[world, policy]]


def rewritten(row: dict[str, Any], oracle: float, rng: np.random.Generator) -> dict[str, Any]:
    """Return a rollout of random turns and earnings in place of one that was played.

    Two in five succeed: one above the margin and one that earns just what is asked.
    """
    missing = float(rng.choice([MARGIN - 1 / 64, MARGIN, MARGIN + 1 / 64, 0.5, 0.75]))
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
        "expected_return/forecaster": rng.integers(1, 64) / 64,
    }
    turns[-1]["metrics"] |= last if energy else stated
    # No reply: the episode was cut short instead.
    silent = {**turns[-1], "said": None, "complete": False, "malformed": True, "finish": "refusal"}
    turns += [{**silent, "prompt_tokens": None}] if place % 3 == 0 else []
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
            new = [rewritten(row, ends[row["group"]], rng) for row in lines]
            if (world, policy) == ("energy:day", "random"):
                new[7]["turns"][0]["completion_tokens"] = None
            if (world, policy) == ("forecast:easy", "random"):
                new[7]["turns"][-1]["metrics"]["expected_return/forecaster"] = None
            path.write_text("".join(json.dumps(row) + "\n" for row in new))
            rows[world, policy] = [
                new[first : first + ROLLOUTS] for first in range(0, len(new), ROLLOUTS)
            ]
    results = run_evaluation(CONFIG, folder, 1)
    found = json.loads(folder.file.read_text())
    assert found["worlds"] == played["worlds"]
    return Written(rows, worlds, found["results"], results)


def mean_of(values: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Return the mean with Student's interval over the means of Tasks."""
    means = [sum(row) / len(row) for row in values]
    low, high = stats.ttest_1samp(means, 0.0).confidence_interval(0.95)
    return {"value": sum(means) / len(means), "low": low, "high": high, "samples": len(means)}


def share_of(values: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Return the mean of shares: Student's interval, or Clopper and Pearson's of rare outcomes."""
    count, tasks = float(np.mean(values, axis=1).sum()), len(values)
    if 5.0 <= count <= tasks - 5.0:
        return mean_of(values)
    low = stats.beta.ppf(0.025, count, tasks - count + 1) if count else 0.0
    high = stats.beta.ppf(0.975, count + 1, tasks - count) if count < tasks else 1.0
    return {"value": count / tasks, "low": low, "high": high, "samples": tasks}


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
    ends = iter(written.worlds[world]["oracle_returns"])
    succeeded = [
        [float(row["return"] >= best - MARGIN) for row in rows]
        for rows, best in zip(written.rows[world, policy], ends, strict=True)
    ]
    exactly = [row for rows in written.rows[world, policy] for row in rows]
    assert found["success"] == pytest.approx(share_of(succeeded))
    assert list(found["pass_at"]) == ["1", "2", "4", "5"]
    for k, share in found["pass_at"].items():
        chances = [
            [float(np.mean([max(chosen) for chosen in combinations(row, int(k))]))]
            for row in succeeded
        ]
        assert share == pytest.approx(share_of(chances)), k
    # Some earn just that, or the law above would hold of `>` too.
    oracle = written.worlds[world]["oracle_returns"]
    assert any(row["return"] == oracle[row["group"]] - MARGIN for row in exactly)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("world", WORLDS[:2])
def test_skill_is_that_of_the_mean_rollout_between_both_ends(
    written: Written, world: str, policy: str
) -> None:
    means = np.mean(written.by_task(world, policy, total), axis=1)
    blind, oracle = (
        np.array(written.worlds[world][f"{name}_returns"]) for name in ("blind", "oracle")
    )
    above, span = means - blind, oracle - blind
    found = written.of(world, policy)["skill"]
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
    assert found["samples"] == TASKS


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
        name = "expected_return/forecaster"
        known = None if policy == "random" else mean_of(written.by_task(world, policy, end(name)))
        assert found["expected"] == (known and pytest.approx(known))
        assert found["violations"] is None
        squares = written.by_task(
            world, policy, lambda row: (end("probability")(row) - end("label")(row)) ** 2
        )
        assert found["scores"]["Brier score"] == pytest.approx(mean_of(squares))
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
        means = [np.mean(written.by_task(world, one, total), axis=1) for one in two]
        test = stats.ttest_rel(*means)
        low, high = test.confidence_interval(0.95)
        difference = float((means[0] - means[1]).mean())
        assert pair["difference"] == pytest.approx(
            {"value": difference, "low": low, "high": high, "samples": TASKS}
        )
        assert pair["p_value"] == pytest.approx(test.pvalue)
        reach = float(stats.t.ppf(0.975, TASKS - 1) + stats.t.ppf(0.8, TASKS - 1))
        assert pair["detectable"] == pytest.approx(reach * abs(difference / test.statistic))
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
        assert row[3:] == (f"{pair['p_corrected']:.3f}", f"{pair['detectable']:.3f}")
    write_tables(tmp_path, written.results)
    table = [line.split(",") for line in (tmp_path / "policies.csv").read_text().splitlines()]
    cells = dict(zip(table[0], table[1], strict=True))
    assert float(cells["mean_return.low"]) == first["mean_return"]["low"]
    assert float(cells["pass_at.4.high"]) == first["pass_at"]["4"]["high"]
    assert math.isclose(float(cells["cost"]), first["cost"])
