"""Where an update differs from what is due, in a trainer's terms, if no known fault explains it."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from tokengym.agents.probe.batch import ProbeBatch
from tokengym.agents.probe.fit import Fit
from tokengym.agents.probe.scores import FIRST_PAD, LAST_PROMPT, PADS
from tokengym.agents.probe.verdict import percent
from tokengym.rewards.arrays import Flags, Floats

_TRAINED, _UNTRAINED = "should not be trained, and is", "is not trained"
_NOTHING = 0.01
"""Share of the weight that is due below which a token or a rollout counts as not trained."""
_WEAK = 1e-3
"""Least weight of a rollout that is described, as a share of the largest rollout's."""
_ENOUGH = 0.1
"""Least share of the update that must follow the loss before the rest counts as a difference."""


class Difference(NamedTuple):
    """A part of the batch; outside it the update follows the loss.

    Attributes:
        name: a short one.
        sentence: what is done with that part.
        base: what is due.
        share: of the update that should not be there, or is missing.
    """

    name: str
    sentence: str
    base: str
    share: float


def differing(
    batch: ProbeBatch, fit: Fit, bases: Mapping[str, Floats], allowed: float
) -> Difference | None:
    """Return the smallest part of a batch that explains the update, its weights being free.

    Args:
        batch: the batch.
        fit: the update.
        bases: weights of tokens that would be right, by name, the plainest first.
        allowed: share of the update that may be left.
    """
    found: list[Any] = []
    for base, weights_K in bases.items():
        if not weights_K.any():
            continue
        for name, noun, free_K in (*_kinds(batch), *_untrained(batch, fit, weights_K)):
            if not free_K.any() or not np.any(weights_K[~free_K]):
                continue
            factor, left, kept = fit.outside(weights_K, free_K)
            if left <= allowed and kept >= _ENOUGH and factor > 0:
                found.append((int(free_K.sum()), len(found), name, noun, free_K, base, factor))
    if not found:
        return None
    _, _, name, noun, free_K, base, factor = min(found)
    weights_K = factor * bases[base]
    share = float(np.linalg.norm(fit.change_P - fit.table.scores_PK @ weights_K))
    done = _done(fit, weights_K, free_K)
    name = name if done in (_TRAINED, _UNTRAINED) else "token weights"
    return Difference(name, f"{noun} {done}", base, min(share, 1.0))


def _done(fit: Fit, due_K: Floats, free_K: Flags) -> str:
    """Say what became of columns, beside what is due there."""
    scores_PK = fit.table.scores_PK
    due_P = scores_PK[:, free_K] @ due_K[free_K]
    size = float(due_P @ due_P)
    if size == 0.0:
        return _TRAINED
    found_P = fit.change_P - scores_PK[:, ~free_K] @ due_K[~free_K]
    factor = float(found_P @ due_P) / size
    if abs(factor) < _NOTHING:
        return _UNTRAINED
    rest = np.linalg.norm(found_P - factor * due_P) / np.linalg.norm(found_P)
    return f"counts {factor:.2g} times" if rest < _NOTHING else "has other weights than it is due"


def _kinds(batch: ProbeBatch) -> Iterator[tuple[str, str, Flags]]:
    """Yield parts of a batch by what its tokens are: short name, noun, columns."""
    kind_K, own_K, turn_K = batch.table.kind_K, batch.own_K, batch.turn_K
    rollout_K = batch.table.rollout_K
    ends_K = own_K & ~np.append(own_K[1:] & (np.diff(rollout_K) == 0), False)
    last_K = batch.last_turn_N[rollout_K]
    final_K = ends_K & (turn_K == last_K)
    yield "padding trained", "padding", (kind_K == FIRST_PAD) | (kind_K == PADS)
    yield "prompts trained", "the prompt", kind_K <= LAST_PROMPT
    yield "observations trained", "text of the environment", batch.read_K
    yield "end untrained", "the end token", final_K & ~batch.cut_N[rollout_K]
    yield "end untrained", "the last token of a reply", final_K
    yield "end untrained", "the last token of each turn", ends_K
    yield "first token", "the first token of a reply", own_K & (batch.table.place_K == 0)
    yield "only the last turn", "every turn but the last", own_K & (turn_K < last_K)
    yield "only the first turn", "every turn but the first", turn_K > 0
    yield "cut replies", "a reply that was cut off", own_K & batch.cut_N[rollout_K]


def _untrained(batch: ProbeBatch, fit: Fit, weights_K: Floats) -> Iterator[tuple[str, str, Flags]]:
    """Yield the rollouts that are trained too little, if there are some."""
    sizes_N = np.bincount(batch.table.rollout_K, np.abs(weights_K), len(batch.rollouts))
    due_N = sizes_N > _WEAK * sizes_N.max()
    factors_N, _ = rollout_factors(batch, fit, weights_K)
    lost_N = due_N & (np.abs(factors_N) < _NOTHING * np.abs(factors_N[due_N]).max())
    if not lost_N.any():
        return
    texts = [(tuple(one.prompt_ids), tuple(one.completion_ids)) for one in batch.rollouts]
    twins = [n for n, text in enumerate(texts) if texts.count(text) > 1 and not lost_N[n]]
    # Of rollouts with equal tokens only the sum is known: any one of them may be left out.
    ways = lost_N, *(lost_N | (np.arange(len(texts)) == n) for n in twins)
    kept = [np.where(which_N[batch.table.rollout_K], 0.0, weights_K) for which_N in ways]
    left_out_N = ways[int(np.argmin(fit.misfits(kept)))]
    yield "rollouts left out", _left_out(left_out_N, due_N), left_out_N[batch.table.rollout_K]


def _left_out(lost_N: Flags, due_N: Flags) -> str:
    """Name rollouts that are left out of those that are due."""
    half = len(lost_N) // 2
    halves = {"first": slice(half), "second": slice(half, None)}
    for name, rest in zip(halves, reversed(halves.values()), strict=True):
        if lost_N[halves[name]][due_N[halves[name]]].all() and not lost_N[rest].any():
            return f"only one micro-batch of two counts: the {name} half of the rollouts"
    return f"{lost_N.sum()} of {due_N.sum()} rollouts, {_listed(lost_N)}: each of them"


def _listed(which_N: Flags) -> str:
    numbers = [str(number + 1) for number in np.flatnonzero(which_N)]
    return f"numbers {', '.join(numbers[:6])}{', ...' if len(numbers) > 6 else ''}"


def rollout_factors(batch: ProbeBatch, fit: Fit, weights_K: Floats) -> tuple[Floats, float]:
    """Return one factor of given weights for each rollout, and the share of the update left."""
    rows_NK = (batch.table.rollout_K == np.arange(len(batch.rollouts))[:, None]) * weights_K
    gram_NN = rows_NK @ batch.table.gram_KK @ rows_NK.T
    factors_N = np.linalg.pinv(gram_NN, rcond=1e-12) @ (rows_NK @ fit.product_K)
    left = 1.0 - float(factors_N @ rows_NK @ fit.product_K)
    return factors_N, float(np.sqrt(max(left, 0.0)))


def described(batch: ProbeBatch, fit: Fit, due_K: Floats, allowed: float) -> Iterator[str]:
    """Yield whether the weights of tokens, or of whole rollouts, are wrong."""
    unexplained = fit.unexplained
    if unexplained > allowed:
        yield (
            f"{percent(unexplained)} of the update is none of these tokens' gradient: a term that "
            "looks at no single token, other contexts or probabilities than those given, or "
            "momentum of earlier steps"
        )
        return
    ratio_K = np.where(batch.own_K, np.exp(batch.log_ratio_K), 0.0)
    factors_N, left = rollout_factors(batch, fit, ratio_K)
    if left <= allowed:
        yield "all tokens of a rollout weigh the same: rewards, baselines or advantages are wrong"
        yield from _rollouts(batch, factors_N, due_K)
        return
    yield (
        f"tokens of a rollout weigh differently ({percent(left)} of the update): the mask, the "
        "ratio or the average over tokens is wrong"
    )


def _rollouts(batch: ProbeBatch, factors_N: Floats, due_K: Floats) -> Iterator[str]:
    """Yield the rollouts whose weight is farthest from what is due, beside the median."""
    due_N = np.zeros(len(factors_N))
    due_N[batch.table.rollout_K[batch.own_K]] = due_K[batch.own_K]
    large_N = np.abs(due_N) > _NOTHING * np.abs(due_N).max()
    relative_N = np.divide(factors_N, due_N, out=np.zeros_like(due_N), where=large_N)
    relative_N /= np.median(np.abs(relative_N[large_N])) or 1.0
    far_N = np.where(large_N, np.abs(relative_N - 1.0), 0.0)
    for n in np.argsort(-far_N)[:3]:
        one = batch.rollouts[n]
        name = f"rollout {n + 1} (group {one.group!r}, reward {one.reward:g})"
        yield f"{name} counts {relative_N[n]:.2g} times"
