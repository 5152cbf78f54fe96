"""The results of an evaluation: figures of each policy with intervals, and paired comparisons."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from tokengym.agents.evaluation.config import EvaluationConfig
from tokengym.agents.evaluation.endpoint import REFUSALS
from tokengym.agents.evaluation.worlds import EvaluatedWorld
from tokengym.agents.rollouts import RolloutRecord, TurnRecord
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import expected_return
from tokengym.envs.registry import import_object
from tokengym.rewards.clustered import (
    clustered_mean,
    clustered_share,
    holm,
    paired_comparison,
    pass_at_k,
)
from tokengym.rewards.estimates import Estimate


@dataclass(frozen=True)
class PolicyResult:
    """A policy on the Tasks of one world; intervals are clustered by Task.

    Attributes:
        world: id of the world.
        level: its level.
        role: the evaluated role.
        policy: who played.
        temperature: of sampling; `None` for scripts.
        max_tokens: most tokens of a reply; `None` for scripts.
        tasks: number of Tasks.
        rollouts: of each.
        mean_return: mean return.
        expected: what the replies earn on average over outcomes; `None` where that is unknown.
        skill: 0 is the best blind policy, 1 the oracle; reachable without the answer may be less.
        success: share of rollouts that earn no less than the margin below the oracle.
        violations: share of rollouts that broke a rule of the world's; `None` if it has none.
        malformed: share of malformed replies.
        cut_off: share of replies that ran out of tokens.
        refused: share of replies that were refusals.
        failed: number of rollouts that ended early since the endpoint refused the conversation;
            the rest of each counts as empty replies.
        pass_at: by k, the chance that one of k rollouts of a Task succeeds.
        scores: how the world's field scores the policy, by name; see `WorldSpec.scores`.
        prompt_tokens: tokens read; `None` where not counted.
        completion_tokens: tokens written; `None` where not counted.
        cost: dollars; `None` without prices.
    """

    world: str
    level: str
    role: str
    policy: str
    temperature: float | None
    max_tokens: int | None
    tasks: int
    rollouts: int
    mean_return: Estimate
    expected: Estimate | None
    skill: Estimate
    success: Estimate
    violations: Estimate | None
    malformed: Estimate
    cut_off: Estimate
    refused: Estimate
    failed: int
    pass_at: Mapping[int, Estimate]
    scores: Mapping[str, float | Estimate]
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | None


@dataclass(frozen=True)
class PairResult:
    """Two policies on the same Tasks of one world.

    Attributes:
        world: id of the world.
        level: its level.
        first: a policy.
        second: another.
        difference: mean return of the first less the second, paired by Task.
        p_value: two-sided.
        p_corrected: the same, corrected by Holm for all comparisons of the evaluation.
        detectable: smallest true difference that the sample finds in four of five cases.
    """

    world: str
    level: str
    first: str
    second: str
    difference: Estimate
    p_value: float
    p_corrected: float
    detectable: float


@dataclass(frozen=True)
class Results:
    """All results of an evaluation.

    Attributes:
        policies: by world, then policy, in the order asked.
        pairs: every two policies of every world.
    """

    policies: Sequence[PolicyResult]
    pairs: Sequence[PairResult]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            name: [{key: _plain(value) for key, value in vars(row).items()} for row in rows]
            for name, rows in vars(self).items()
        }

    @classmethod
    def of(cls, policies: Sequence[PolicyResult], returns_of: Mapping[int, npt.ArrayLike]) -> Self:
        """Compare every two policies of a world.

        Args:
            policies: the figures of each.
            returns_of: by position in `policies`, its returns, shape (Tasks, rollouts).
        """
        tests = [
            (a, b, paired_comparison(returns_of[a], returns_of[b]))
            for a, b in combinations(range(len(policies)), 2)
            if (policies[a].world, policies[a].level) == (policies[b].world, policies[b].level)
        ]
        corrected = holm([pair.p_value for _, _, pair in tests])
        pairs = [
            PairResult(
                policies[a].world,
                policies[a].level,
                policies[a].policy,
                policies[b].policy,
                pair.difference,
                pair.p_value,
                p_corrected,
                pair.detectable,
            )
            for (a, b, pair), p_corrected in zip(tests, corrected, strict=True)
        ]
        return cls(tuple(policies), tuple(pairs))


def returns_of(records: Sequence[RolloutRecord], rollouts: int) -> npt.NDArray[np.float64]:
    """Return the returns of rollouts by Task and number, shape (Tasks, rollouts)."""
    return np.array([record.total for record in records]).reshape(-1, rollouts)


def policy_result(
    records: Sequence[RolloutRecord], world: EvaluatedWorld, config: EvaluationConfig
) -> PolicyResult:
    """Return the figures of one policy in one world.

    Args:
        records: its rollouts, by Task and number.
        world: the world.
        config: of the evaluation.
    """
    spec, yardstick, prices = world.world.spec, world.yardstick, config.prices
    rollouts = config.rollouts
    first = records[0]
    shape = (-1, rollouts)
    returns_TK = returns_of(records, rollouts)
    succeeded_TK = returns_TK >= np.array(yardstick.oracle_T)[:, None] - config.success_margin
    rng = generator("evaluation", len(yardstick.oracle_T))
    own = [record.own_turns for record in records]

    def share(of: list[float]) -> Estimate:
        """Return the share of replies, each rollout's own share counting alike."""
        return clustered_share(np.array(of).reshape(shape))

    def per_reply(holds: Callable[[TurnRecord], bool]) -> Estimate:
        return share([sum(map(holds, turns)) / max(len(turns), 1) for turns in own])

    read = _total(turn.prompt_tokens for turns in own for turn in turns)
    said = _total(turn.completion_tokens for turns in own for turn in turns)
    cost = None
    if prices is not None and read is not None and said is not None:
        cost = (read * prices[0] + said * prices[1]) / 1e6
    violation = spec.violation
    return PolicyResult(
        world=first.world,
        level=first.level,
        role=first.role,
        policy=first.origin.policy,
        temperature=first.origin.temperature,
        max_tokens=first.origin.max_tokens,
        tasks=len(returns_TK),
        rollouts=rollouts,
        mean_return=clustered_mean(returns_TK),
        expected=_expected(records, shape),
        skill=yardstick.skill(returns_TK.mean(axis=1), rng),
        success=clustered_share(succeeded_TK),
        violations=share(
            [float((record.metrics.get(violation) or 0.0) > 0.0) for record in records]
        )
        if violation
        else None,
        malformed=per_reply(lambda turn: turn.malformed),
        cut_off=per_reply(lambda turn: not turn.complete),
        refused=per_reply(lambda turn: turn.finish in REFUSALS),
        failed=sum(record.failure is not None for record in records),
        pass_at={k: pass_at_k(succeeded_TK, k) for k in _powers(rollouts)},
        scores=_scores(records, rollouts, spec, world.tasks),
        prompt_tokens=read,
        completion_tokens=said,
        cost=cost,
    )


def _expected(records: Sequence[RolloutRecord], shape: tuple[int, int]) -> Estimate | None:
    name = expected_return(records[0].role)
    values = [record.metrics.get(name) for record in records]
    means = [value for value in values if value is not None]
    return clustered_mean(np.array(means).reshape(shape)) if len(means) == len(values) else None


def _scores(
    records: Sequence[RolloutRecord], rollouts: int, spec: WorldSpec, tasks: Sequence[Task]
) -> Mapping[str, float | Estimate]:
    """Return the scores that are usual in the world's field."""
    if not spec.scores:
        return {}
    ends_TK = [
        [record.metrics for record in records[first : first + rollouts]]
        for first in range(0, len(records), rollouts)
    ]
    scores: Mapping[str, float | Estimate] = import_object(spec.scores)(
        tasks, ends_TK, generator("scores", len(tasks))
    )
    return scores


def _total(counts: Iterable[int | None]) -> int | None:
    """Return the sum of counts; `None` where there are none, or one is not known."""
    listed = list(counts)
    numbers = [count for count in listed if count is not None]
    return sum(numbers) if numbers and len(numbers) == len(listed) else None


def _powers(most: int) -> list[int]:
    """Return 1, 2, 4, … up to `most`, and `most` itself."""
    powers = [2**n for n in range(most.bit_length()) if 2**n <= most]
    return powers if powers[-1] == most else [*powers, most]


def _plain(value: object) -> object:
    """Return a value of JSON; numbers that are not finite become `None`."""
    if isinstance(value, Estimate):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    return None if isinstance(value, float) and not np.isfinite(value) else value
