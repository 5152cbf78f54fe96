"""The results of an evaluation: figures of each policy with intervals, and paired comparisons.

Where a world states what replies earn on average over outcomes, skill, success and comparisons are
of these expected returns, as they have no noise of outcomes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from tokengym.agents.evaluation.plan import EvaluationPlace, EvaluationPlan
from tokengym.agents.evaluation.rollout_table import Returns, RolloutTable
from tokengym.agents.evaluation.worlds import EvaluatedWorld
from tokengym.agents.scale.ladder import Standing, find_standing, rung_values
from tokengym.agents.scale.level_scale import ladder_of, skill_of
from tokengym.agents.training.folder.run_summary import form_warning
from tokengym.envs.core.seeding import generator
from tokengym.envs.registry import import_object
from tokengym.rewards.clustered import (
    clustered_mean,
    clustered_share,
    holm,
    paired_comparison,
    pass_at_k,
    task_means,
)
from tokengym.rewards.estimates import Estimate


@dataclass(frozen=True)
class PolicyResult:
    """A policy on the Tasks of one world; intervals are clustered by Task.

    Attributes:
        place: what the plan calls the setting, such as `energy:day`; no two are called alike.
        world: id of the world.
        level: its level.
        role: the evaluated role.
        policy: who played, as the plan names it.
        temperature: of sampling; `None` for scripts.
        max_tokens: most tokens of a reply; `None` for scripts.
        prompt: which prompts it read, such as `full`.
        tasks: number of Tasks.
        rollouts: of each.
        unit: of skill, success and pass@k: `expected` over outcomes, where the world states that
            of every reply, or `realised`, as it was paid.
        mean_return: mean return, as it was paid.
        expected: what the replies earn on average over outcomes; `None` where that is unknown.
        skill: 0 is the best input-independent baseline, 1 the oracle; reachable without the answer
            may be less.
        success: share of rollouts that earn no less than the margin below the oracle.
        violations: share of rollouts that broke a rule of the world's; `None` if it has none.
        malformed: share of malformed replies.
        cut_off: share of replies that ran out of tokens.
        repeating: share of replies that repeated themselves until they did.
        refused: share of replies that were refusals.
        failures: by reason, how many rollouts the endpoint ended.
        lost: how many of them are left out of all figures but tokens and cost, since the endpoint
            gave no answer; the rest of a conversation that it refused counts as empty replies.
        other_models: by name, how many replies the endpoint says are of another model than was
            asked for.
        pass_at: by k, the chance that one of k rollouts of a Task succeeds.
        scores: how the world's field scores the policy, by name; see `WorldSpec.scores`.
        prompt_tokens: tokens read; `None` where not counted.
        completion_tokens: tokens written; `None` where not counted.
        cost: dollars; `None` without prices.
        standing: between which reference policies of the level's ladder, in words; empty where that
            is unknown.
    """

    place: str
    world: str
    level: str
    role: str
    policy: str
    temperature: float | None
    max_tokens: int | None
    prompt: str
    tasks: int
    rollouts: int
    unit: str
    mean_return: Estimate
    expected: Estimate | None
    skill: Estimate
    success: Estimate
    violations: Estimate | None
    malformed: Estimate
    cut_off: Estimate
    repeating: Estimate
    refused: Estimate
    failures: Mapping[str, int]
    lost: int
    other_models: Mapping[str, int]
    pass_at: Mapping[int, Estimate]
    scores: Mapping[str, float | Estimate]
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | None
    standing: str = ""

    @property
    def earned(self) -> Estimate:
        """The expected return where it is known, else the return as it was paid."""
        return self.expected or self.mean_return

    @property
    def form_warning(self) -> str:
        """Advice if the policy does not know the form; empty if it does."""
        malformed, cut_off = self.malformed.value, self.cut_off.value
        return form_warning(malformed, cut_off, self.repeating.value, self.prompt)


@dataclass(frozen=True)
class PairResult:
    """Two policies on the same Tasks of one world.

    Attributes:
        place: what the plan calls the setting.
        world: id of the world.
        level: its level.
        first: a policy.
        second: another.
        unit: of the difference: `expected` where both policies' returns are, else `realised`.
        difference: mean return of the first less the second, paired by Task.
        p_value: two-sided.
        p_corrected: the same, corrected by Holm for all comparisons of the evaluation.
        detectable: smallest true difference that the sample finds in four of five cases.
        tasks_needed: about how many Tasks would find a true difference of this size in four of five
            cases, if the sample did not find it; `None` if it did, or there is no difference.
    """

    place: str
    world: str
    level: str
    first: str
    second: str
    unit: str
    difference: Estimate
    p_value: float
    p_corrected: float
    detectable: float
    tasks_needed: int | None


@dataclass(frozen=True)
class Results:
    """All results of an evaluation.

    Attributes:
        policies: by world, then policy, in the order asked.
        pairs: every two policies of every world.
    """

    policies: Sequence[PolicyResult]
    pairs: Sequence[PairResult]

    def of_policy(self, name: str) -> list[PolicyResult]:
        """Return the figures of one policy, by place."""
        return [row for row in self.policies if row.policy == name]


class PolicyReturns(NamedTuple):
    """Result of one policy in one world, level and role.

    Attributes:
        title: what reports call the setting.
        place: the setting.
        policy: who played.
        returns: on each Task.
    """

    title: str
    place: EvaluationPlace
    policy: str
    returns: Returns


def compared(couples: Iterable[tuple[PolicyReturns, PolicyReturns]]) -> list[PairResult]:
    """Compare policies on the Tasks of one place that both played; other couples are left out.

    So are those with fewer than two Tasks in common.
    """
    played = [_first_tasks(*both) for both in couples if both[0].place.test == both[1].place.test]
    pairs = [
        _compare(first, second)
        for first, second in played
        if _shared_tasks(first.returns, second.returns) > 1
    ]
    corrected = holm([pair.p_value for pair in pairs])
    return [
        replace(pair, p_corrected=p_value) for pair, p_value in zip(pairs, corrected, strict=True)
    ]


def _first_tasks(
    first: PolicyReturns, second: PolicyReturns
) -> tuple[PolicyReturns, PolicyReturns]:
    """Return what both policies earned on the Tasks that both have played: the first ones."""
    count = min(len(one.returns.realised_TK) for one in (first, second))
    first, second = (one._replace(returns=one.returns.first(count)) for one in (first, second))
    return first, second


def _shared_tasks(first: Returns, second: Returns) -> int:
    """Return the number of Tasks on which both policies have rollouts."""
    differences_T = task_means(first.realised_TK) - task_means(second.realised_TK)
    return int((~np.isnan(differences_T)).sum())


def _compare(one: PolicyReturns, other: PolicyReturns) -> PairResult:
    first, second = one.returns, other.returns
    unit, pair = "realised", (first.realised_TK, second.realised_TK)
    if first.expected_TK is not None and second.expected_TK is not None:
        unit, pair = "expected", (first.expected_TK, second.expected_TK)
    found = paired_comparison(*pair)
    value, low, high, _ = found.difference
    hidden = value != 0.0 and low <= 0.0 <= high
    return PairResult(
        one.title,
        one.place.world,
        one.place.level,
        one.policy,
        other.policy,
        unit,
        found.difference,
        found.p_value,
        found.p_value,
        found.detectable,
        found.difference.samples_to_show() if hidden else None,
    )


def policy_result(
    table: RolloutTable, world: EvaluatedWorld, title: str, policy: str, plan: EvaluationPlan
) -> PolicyResult:
    """Return the figures of one policy in one place.

    Args:
        table: its rollouts.
        world: the setting.
        title: what the plan calls it.
        policy: who played.
        plan: of the evaluation.
    """
    spec, rollouts, first = world.world.spec, plan.rollouts, table.first
    realised_TK, expected_TK = table.returns(rollouts)
    yardstick, unit, earned_TK = world.scale.realised, "realised", realised_TK
    if expected_TK is not None and world.scale.expected is not None:
        yardstick, unit, earned_TK = world.scale.expected, "expected", expected_TK
    bar_T = np.array(yardstick.oracle_T) - plan.success_margin
    succeeded_TK = np.where(np.isnan(earned_TK), np.nan, earned_TK >= bar_T[:, None])

    def share(name: str) -> Estimate:
        """Return the share of replies, each rollout's own share counting alike."""
        return clustered_share(table.column(name, rollouts))

    read, written = table.count("prompt_tokens"), table.count("completion_tokens")
    cost = None
    if plan.prices is not None and read is not None and written is not None:
        cost = (read * plan.prices[0] + written * plan.prices[1]) / 1e6
    return PolicyResult(
        place=title,
        world=first.world,
        level=first.level,
        role=first.role,
        policy=policy,
        temperature=first.origin.temperature,
        max_tokens=first.origin.max_tokens,
        prompt=str(first.origin.options.get("prompt", "full")),
        tasks=len(realised_TK),
        rollouts=rollouts,
        unit=unit,
        mean_return=clustered_mean(realised_TK),
        expected=None if expected_TK is None else clustered_mean(expected_TK),
        skill=skill_of(yardstick, task_means(earned_TK)),
        success=clustered_share(succeeded_TK),
        violations=share("violations") if spec.violation else None,
        malformed=share("malformed"),
        cut_off=share("cut_off"),
        repeating=share("repeating"),
        refused=share("refused"),
        failures=dict(sorted(table.failures.items())),
        lost=int(sum(table.columns["lost"])),
        other_models=dict(sorted(table.other_models.items())),
        pass_at={k: pass_at_k(succeeded_TK, k) for k in _powers(rollouts)},
        scores=_scores(table, world, rollouts),
        prompt_tokens=read,
        completion_tokens=written,
        cost=cost,
        standing=str(_standing(table, world, rollouts) or ""),
    )


def _standing(table: RolloutTable, world: EvaluatedWorld, rollouts: int) -> Standing | None:
    """Return where a policy stands on the ladder of its level, which its world may not have."""
    ladder = ladder_of(world.world.spec, world.world.level, world.role)
    if ladder is None:
        return None
    worth = map(partial(ladder.value, role=world.role), table.columns["realised"], table.ends)
    values_TK = np.array(list(worth)).reshape(-1, rollouts)
    values_TK[np.isnan(table.column("realised", rollouts))] = np.nan
    return find_standing(rung_values(world.world, world.role, world.scale), task_means(values_TK))


def _scores(
    table: RolloutTable, world: EvaluatedWorld, rollouts: int
) -> Mapping[str, float | Estimate]:
    """Return the scores that are usual in the world's field, of what was not lost."""
    name = world.world.spec.scores
    if not name:
        return {}
    kept: dict[int, list[Mapping[str, float | None]]] = {}
    for place, (ends, lost) in enumerate(zip(table.ends, table.columns["lost"], strict=True)):
        if not lost:
            kept.setdefault(place // rollouts, []).append(ends)
    tasks = world.tasks if len(kept) == len(world.tasks) else [world.tasks[n] for n in kept]
    scores: Mapping[str, float | Estimate] = import_object(name)(
        tasks, list(kept.values()), generator("scores", len(kept))
    )
    return scores


def _powers(most: int) -> list[int]:
    """Return 1, 2, 4, … up to `most`, and `most` itself."""
    powers = [2**n for n in range(most.bit_length()) if 2**n <= most]
    return powers if powers[-1] == most else [*powers, most]
