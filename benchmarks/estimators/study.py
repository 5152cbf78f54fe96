"""The rows of the study: estimators, what they are tried on, and group sizes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.estimators.claims import length_replies, turn_replies
from benchmarks.estimators.exact import Moments, Replies, batches, mixed, moments, softmax_replies
from benchmarks.estimators.policy import SmallPolicy, paying, sampled_by
from benchmarks.estimators.schemes import (
    BY_BATCH,
    BY_GROUP,
    LENGTHS,
    LOSSES_OFF_POLICY,
    TURNS,
    Scheme,
)

Data = Mapping[str, Any]
"""A row: `table`, `replies`, `estimator`, `G`, and figures of the moments by name."""
SIZES = (4, 8, 16)
STEP = 0.05
"""Length of the step in all weights by which the small policy leaves its sampler."""
RARE = softmax_replies((0.7, 0.25, 0.05), (0.1, 0.2, 5.0))
"""Replies with a great one that is rare."""
GRADED = softmax_replies((0.3, 0.4, 0.2, 0.1), (0, 1 / 3, 2 / 3, 1))


def binary(each: int, *chances: float) -> list[Replies]:
    """Return prompts that are answered right with a chance, by several replies of either kind."""
    rewards = np.repeat((0.0, 1.0), each)
    return [softmax_replies(np.repeat((1 - p, p), each) / each, rewards) for p in chances]


def row(table: str, replies: str, estimator: str, size: int, found: Moments) -> Data:
    """Return a row, numbers to ten digits."""
    names = ("factor", "cosine", "bias", "variance", "needed")
    numbers = {name: getattr(found, name) for name in names}
    numbers |= dict(zip(("factor error", "cosine error"), found.error, strict=True))
    rounded = {name: float(f"{value:.10g}") for name, value in numbers.items()}
    return {"table": table, "replies": replies, "estimator": estimator, "G": size, **rounded}


def rows_of(
    table: str, prompts: Mapping[str, Sequence[Replies]], schemes: Mapping[str, Scheme], *sizes: int
) -> Iterator[Data]:
    """Try every scheme on every batch of prompts."""
    for name, tried in prompts.items():
        for size in sizes or SIZES:
            of = batches(tried, size)
            for estimator, scheme in schemes.items():
                yield row(table, name, estimator, size, found_by(estimator, scheme, of))


def found_by(estimator: str, scheme: Scheme, of: Any) -> Moments:
    """Return a scheme's moments; ReMax plays each prompt once more, greedily."""
    return moments(of, scheme(of), extra=int(estimator == "ReMax"))


def enumerated() -> Iterator[Data]:
    """Return the rows of replies of one step."""
    one = {
        "right in .1": binary(3, 0.1),
        "right in .5": binary(3, 0.5),
        "right in .9": binary(3, 0.9),
        "graded 0, ⅓, ⅔, 1": [GRADED],
        "rare: .1, .2, and 5 in .05": [RARE],
    }
    several = {
        "2 prompts, right in .1 and .5": binary(2, 0.1, 0.5),
        "2 prompts, rare": [RARE] * 2,
        "16 prompts, rare": [RARE] * 16,
    }
    moved = softmax_replies((0.6, 0.2, 0.2), RARE.rewards_KT[:, 0])
    ratios = np.log(moved.chance_K / RARE.chance_K)[:, None]
    off = replace(moved, sampled_K=RARE.chance_K, log_ratio_KT=ratios)
    yield from rows_of("one prompt", one, BY_GROUP)
    yield from rows_of("several prompts", several, BY_BATCH)
    yield from rows_of("lengths", {"10 and 40 tokens": [length_replies()]}, LENGTHS)
    yield from rows_of("off the policy", {"rare, from .05 to .2": [off]}, LOSSES_OFF_POLICY, 8)


def turns() -> Iterator[Data]:
    """Return credit by turn, with the factor of each turn's part."""
    for size in SIZES:
        of = batches([turn_replies()], size)
        for estimator, scheme in TURNS.items():
            found = moments(of, scheme(of))
            parts = {
                f"factor {n + 1}": Moments(found.exact_D[part], found.mean_D[part], 0, 0).factor
                for n, part in enumerate((slice(0, 2), slice(2, 4)))
            }
            yield {**row("turns", "stop or go on", estimator, size, found), **parts}


def small_policy(questions: int = 3) -> Iterator[Data]:
    """Return the small policy on exact labels, on outcomes, and off the policy."""
    for index in range(questions):
        policy = SmallPolicy(index)
        replies, yes = policy.replies(), float(policy.task.answer["p_bayes"][1])
        cooler, same = (policy.log_steps(at).detach().numpy() for at in (0.7, 1.0))
        label = {"exact probability": ((1.0, replies),)} | {
            "one outcome": tuple(
                (chance, paying(replies, policy.earned(outcome)))
                for outcome, chance in (("0", 1 - yes), ("1", yes))
            )
        }
        for name, parts in label.items():
            for size in SIZES:
                tried = [(chance, batches([on], size)) for chance, on in parts]
                for estimator, scheme in BY_GROUP.items():
                    found = mixed([(c, found_by(estimator, scheme, of)) for c, of in tried])
                    yield row("small policy", f"question {index}, {name}", estimator, size, found)
        off = {f"question {index}, sampled at temperature .7": [sampled_by(replies, same, cooler)]}
        policy.move(STEP)
        after = policy.log_steps().detach().numpy()
        off[f"question {index}, one step behind"] = [sampled_by(policy.replies(), after, same)]
        yield from rows_of("off the policy", off, LOSSES_OFF_POLICY, 8)


PARTS: tuple[Callable[[], Iterator[Data]], ...] = (enumerated, turns, small_policy)
