"""An evaluation of rollouts written by hand, and its figures by scipy and counting."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

from tokengym.agents.evaluation.config import EvaluationConfig
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.results import Results
from tokengym.agents.evaluation.run import Evaluation, run_evaluation
from tokengym.agents.evaluation.worlds import EvaluatedWorld
from tokengym.agents.scale.level_scale import Scale

WORLDS = ("energy:small", "energy:day", "forecast:easy")
POLICIES = ("null", "random", "oracle")
TASKS, ROLLOUTS, MARGIN = 12, 5, 0.25
PRICES = (3.0, 15.0)
EXPECTED = "expected_return/forecaster"
CONFIG = EvaluationConfig(
    WORLDS,
    POLICIES,
    tasks=TASKS,
    rollouts=ROLLOUTS,
    success_margin=MARGIN,
    price_read=PRICES[0],
    price_written=PRICES[1],
)

everywhere = pytest.mark.parametrize(
    ("world", "policy"), [(world, policy) for world in WORLDS for policy in POLICIES]
)


class Written(NamedTuple):
    """An evaluation of rollouts written by hand.

    Attributes:
        rows: by world and policy its rollouts as they stand in the log, by Task, then number.
        worlds: what `evaluation.json` says of each world.
        scales: the same, read.
        found: the results in `evaluation.json`.
        results: the same as they were returned.
    """

    rows: Mapping[tuple[str, str], Sequence[Sequence[dict[str, Any]]]]
    worlds: Mapping[str, Mapping[str, Any]]
    scales: Sequence[Scale]
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
        scale = self.worlds[world]["scale"]
        unit = "expected_T" if known else "realised_T"
        return [scale["returns"][who][unit] for who in (scale["blind"], "oracle")]


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
    energy = row["world"] == "tokengym/Energy-v2"
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


def write_rollouts(folder: EvaluationFolder) -> Written:
    """Play an evaluation, write other rollouts in its log, and let it compute its results again."""
    run_evaluation(CONFIG, folder)
    played = json.loads(folder.file.read_text())
    worlds = dict(zip(WORLDS, played["worlds"], strict=True))
    rng, rows = np.random.default_rng(0), {}
    for world, place in zip(WORLDS, CONFIG.plan.places, strict=True):
        for policy in POLICIES:
            path = folder.rollouts.path(CONFIG.plan.segment(place, policy))
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            oracle = worlds[world]["scale"]["returns"]["oracle"]
            ends = oracle["realised_T"]
            best = oracle["expected_T"] or ends
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
    resolved = [EvaluatedWorld.resolve(place, 0) for place in CONFIG.plan.places]
    results = Evaluation(CONFIG.plan, folder, resolved).results()
    folder.write(CONFIG.plan, resolved, results)
    found = json.loads(folder.file.read_text())
    assert found["worlds"] == played["worlds"]
    return Written(rows, worlds, folder.saved().scales, found["results"], results)


def lost(row: Mapping[str, Any]) -> bool:
    last = row["turns"][-1]
    return last["said"] is None and last["finish"].startswith("time-out")


def end(name: str) -> Callable[[dict[str, Any]], float]:
    return lambda row: row["turns"][-1]["metrics"][name]


def total(row: dict[str, Any]) -> float:
    return float(row["return"])


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
