"""Skill and success are measured against both ends, by expected returns where all are known."""

from itertools import combinations
from statistics import fmean

import numpy as np
import pytest
from scipy import stats

from tests.evaluation.written_rollouts import (
    CONFIG,
    MARGIN,
    TASKS,
    WORLDS,
    Written,
    everywhere,
    share_of,
)
from tokengym.agents.evaluation.report import evaluation_report
from tokengym.envs import make_world

DRAWS = 2000
"""Resamples of an interval of skill."""


@pytest.mark.parametrize("world", WORLDS)
def test_skill_and_optimum_share_the_compared_unit(written: Written, world: str) -> None:
    scale = written.scales[WORLDS.index(world)]
    assert scale.unit == ("expected" if world.startswith("forecast") else "realised")
    blind, oracle = written.ends(world, "null")
    assert scale.ends == pytest.approx((fmean(blind), fmean(oracle)))
    made = make_world(world)
    role = made.spec.roles[0]
    limits = [made.optimum(task)[role] for task in made.first_tasks("test", TASKS)]
    assert scale.optimum == pytest.approx(sum(limit.value for limit in limits) / TASKS)
    assert scale.exact == all(limit.exact for limit in limits)
    if scale.unit == "expected":  # the oracle attains it, on average over outcomes
        assert scale.optimum == pytest.approx(fmean(oracle), abs=2**-12)
    limit = "optimum" if scale.exact else "bound"
    report = evaluation_report(CONFIG.plan, written.scales, written.results)
    unit = "expected returns" if scale.unit == "expected" else "returns"
    assert (
        f"{world}, {unit}: {scale.label} {scale.ends.blind:.3f}, "
        f"oracle {scale.ends.oracle:.3f}, {limit} {scale.optimum:.3f}."
    ) in report.lines


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
    draws = [
        stats.bootstrap(
            (above, span),
            lambda above, span, axis: above.sum(axis=axis) / span.sum(axis=axis),
            paired=True,
            method="percentile",
            n_resamples=DRAWS,
            rng=seed,
        ).confidence_interval
        for seed in range(20)
    ]
    # Ours is one more stream of as many draws.
    for name in ("low", "high"):
        ends = [getattr(interval, name) for interval in draws]
        assert found[name] == pytest.approx(np.mean(ends), abs=5 * np.std(ends)), name
    assert found["samples"] == TASKS - 1
