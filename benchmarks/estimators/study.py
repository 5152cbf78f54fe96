"""The rows of the study: estimators, what they are tried on, and group sizes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.estimators.claims import length_replies, turn_replies
from benchmarks.estimators.exact import (
    Floats,
    Moments,
    Replies,
    batches,
    mixed,
    moments,
    softmax_replies,
)
from benchmarks.estimators.policy import SmallPolicy, paying
from benchmarks.estimators.schemes import (
    BY_BATCH,
    BY_GROUP,
    LENGTHS,
    LOSSES_OFF_POLICY,
    TURNS,
    Scheme,
)

SIZES = (4, 8, 16)
STEP = 0.05
"""Length of the step in all weights by which the small policy leaves its sampler."""


@dataclass(frozen=True)
class Row:
    """An estimator on some replies, in groups of one size.

    Attributes:
        table: the table that it is in.
        replies: what it is tried on.
        estimator: its name.
        size: rollouts of a group, G.
        figures: the moments' figures by name; `factor 1` and `factor 2` are those of two turns.
    """

    table: str
    replies: str
    estimator: str
    size: int
    figures: Mapping[str, float]


def figures(found: Moments) -> dict[str, float]:
    """Return what is published of an estimator's moments."""
    names = ("factor", "cosine", "bias", "variance", "needed")
    return {name: getattr(found, name) for name in names} | {
        "factor error": found.error[0], "cosine error": found.error[1],
    }  # fmt: skip


def binary(each: int, *chances: float) -> list[Replies]:
    """Return prompts that are answered right with a chance, by several replies of either kind."""
    rewards = np.repeat((0.0, 1.0), each)
    return [softmax_replies(np.repeat((1 - p, p), each) / each, rewards) for p in chances]


def rare() -> Replies:
    """Return replies with a great one that is rare."""
    return softmax_replies((0.7, 0.25, 0.05), (0.1, 0.2, 5.0))


def rows_of(
    table: str, tried: Mapping[str, Sequence[Replies]], schemes: Mapping[str, Scheme],
    sizes: Sequence[int] = SIZES,
) -> Iterator[Row]:  # fmt: skip
    """Try every scheme on every batch of prompts."""
    for name, prompts in tried.items():
        for size in sizes:
            of = batches(prompts, size, np.random.default_rng(size))
            for estimator, scheme in schemes.items():
                # ReMax plays each prompt once more, greedily.
                found = moments(of, scheme(of), extra=int(estimator == "ReMax"))
                yield Row(table, name, estimator, size, figures(found))


def one_prompt(sizes: Sequence[int] = SIZES) -> Iterator[Row]:
    """Return the estimators that look at one group."""
    tried = {
        "right in .1": binary(3, 0.1),
        "right in .5": binary(3, 0.5),
        "right in .9": binary(3, 0.9),
        "graded 0, ⅓, ⅔, 1": [softmax_replies((0.3, 0.4, 0.2, 0.1), (0, 1 / 3, 2 / 3, 1))],
        "rare: .1, .2, and 5 in .05": [rare()],
    }
    return rows_of("one prompt", tried, BY_GROUP, sizes)


def several_prompts(sizes: Sequence[int] = SIZES) -> Iterator[Row]:
    """Return the estimators that look at a batch."""
    tried = {
        "2 prompts, right in .1 and .5": binary(2, 0.1, 0.5),
        "2 prompts, rare": [rare()] * 2,
        "16 prompts, rare": [rare()] * 16,
    }
    return rows_of("several prompts", tried, BY_BATCH, sizes)


def lengths(sizes: Sequence[int] = SIZES) -> Iterator[Row]:
    """Return means over lengths."""
    tried = {"right and wrong, 10 and 40 tokens": [length_replies()]}
    return rows_of("lengths", tried, LENGTHS, sizes)


def turns(sizes: Sequence[int] = SIZES) -> Iterator[Row]:
    """Return credit by turn, with the factor of each turn's part."""
    for size in sizes:
        of = batches([turn_replies()], size, np.random.default_rng(size))
        for estimator, scheme in TURNS.items():
            found = moments(of, scheme(of))
            parts = {
                f"factor {turn + 1}": Moments(found.exact_D[part], found.mean_D[part], 0, 0).factor
                for turn, part in enumerate((slice(0, 2), slice(2, 4)))
            }
            yield Row("turns", "stop or go on", estimator, size, figures(found) | parts)


def small_policy(sizes: Sequence[int] = SIZES, tasks: int = 4) -> Iterator[Row]:
    """Return the small policy on exact labels, on outcomes, and off the policy."""
    for index in range(tasks):
        policy = SmallPolicy(index)
        replies, yes = policy.replies(), float(policy.task.answer["p_bayes"][1])
        cooler, same = (policy.log_steps(at).detach().numpy() for at in (0.7, 1.0))
        sampled = {"sampled at temperature .7": policy.replies(cooler)}
        by_outcome = [(1 - yes, paying(replies, policy.earned("0"))),
                      (yes, paying(replies, policy.earned("1")))]  # fmt: skip
        for size in sizes:
            for name, scheme in BY_GROUP.items():
                yield Row("small policy", f"question {index}, exact probability", name, size,
                          figures(_found(replies, scheme, size, name == "ReMax")))  # fmt: skip
                parts = [
                    (chance, _found(on, scheme, size, name == "ReMax")) for chance, on in by_outcome
                ]
                yield Row("small policy", f"question {index}, one outcome", name, size,
                          figures(mixed(parts)))  # fmt: skip
        policy.move(STEP)
        sampled["one step behind"] = policy.replies(same)
        for name, off in sampled.items():
            yield from rows_of(
                "off the policy", {f"question {index}, {name}": [off]}, LOSSES_OFF_POLICY, (8,)
            )


def moved() -> Iterator[Row]:
    """Return losses where the policy has come to like the rare reply."""
    chance = np.array([0.6, 0.2, 0.2])
    sampled = rare().chance_K
    replies = softmax_replies(chance, (0.1, 0.2, 5.0))
    off = Replies(
        replies.chance_K, replies.rewards_KT, replies.scores_KTD, replies.tokens_KT,
        sampled, np.log(chance / sampled)[:, None],
    )  # fmt: skip
    return rows_of("off the policy", {"rare, from .05 to .2": [off]}, LOSSES_OFF_POLICY, (8,))


def _found(replies: Replies, scheme: Scheme, size: int, greedy: bool) -> Moments:
    of = batches([replies], size, np.random.default_rng(size))
    return moments(of, scheme(of), extra=int(greedy))


PARTS: tuple[Callable[[], Iterator[Row]], ...] = (
    *(one_prompt, several_prompts, lengths, turns),
    *(moved, small_policy),
)


def as_json(row: Row) -> dict[str, Any]:
    """Return a row as plain data, numbers to ten digits."""
    rounded = {name: float(f"{value:.10g}") for name, value in row.figures.items()}
    return {"table": row.table, "replies": row.replies, "estimator": row.estimator,
            "G": row.size, **rounded}  # fmt: skip
