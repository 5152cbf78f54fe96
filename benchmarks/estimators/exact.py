"""Moments of gradient estimates by enumeration: no advantage is computed here.

Of K replies a group of G is a multiset: there are C(G + K - 1, G), each with its multinomial
probability. A batch has one group of each prompt. Replies have T steps, turns or tokens, and the
score of a step is the gradient of its log-probability in D parameters. Prompts have parameters of
their own, so that weighing one more than another shows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MOST, DRAWN = 30_000, 4_000
"""Batches that are enumerated; where there are more, so many are drawn."""
BLOCKS = 20
"""Parts of the drawn batches, whose spread gives an interval."""


@dataclass(frozen=True)
class Replies:
    """All that can be replied to a prompt.

    Attributes:
        chance_K: probability of each reply under the policy.
        rewards_KT: reward of each step.
        scores_KTD: score of each step; 0 of those that were not taken.
        tokens_KT: tokens of each step; 0 of those that were not taken.
        sampled_K: probability that each is sampled with, where that is not the policy's.
        log_ratio_KT: logarithm of the policy's over the sampler's probability of each step.
    """

    chance_K: Floats
    rewards_KT: Floats
    scores_KTD: Floats
    tokens_KT: Floats
    sampled_K: Floats | None = None
    log_ratio_KT: Floats | None = None

    @property
    def gradient_D(self) -> Floats:
        """Gradient of the expected return: each reply's return times its score."""
        found: Floats = np.einsum(
            "k,k,ktd->d", self.chance_K, self.rewards_KT.sum(axis=1), self.scores_KTD
        )
        return found


def softmax_replies(
    chance_K: npt.ArrayLike, rewards_K: npt.ArrayLike, tokens_K: npt.ArrayLike | None = None
) -> Replies:
    """Return replies of one step each, with a logit for each reply."""
    chance, rewards = np.asarray(chance_K, np.float64), np.asarray(rewards_K, np.float64)
    tokens = np.ones(len(chance)) if tokens_K is None else np.asarray(tokens_K, np.float64)
    scores_KD = np.eye(len(chance)) - chance
    return Replies(chance, rewards[:, None], scores_KD[:, None], tokens[:, None])


@dataclass(frozen=True)
class Batches:
    """Batches of one group a prompt.

    Attributes:
        prompts: the replies to each of B prompts.
        members_NBG: the replies in each group.
        chance_N: probability of each batch, or equal weights of those drawn.
        exact: whether these are all batches there are.
    """

    prompts: Sequence[Replies]
    members_NBG: Ints
    chance_N: Floats
    exact: bool

    def of_members(self, name: str) -> npt.NDArray[np.float64]:
        """Return a field of the replies, by batch, prompt and rollout."""
        return np.stack(
            [getattr(of, name)[self.members_NBG[:, b]] for b, of in enumerate(self.prompts)], axis=1
        )


@cache
def multisets(replies: int, size: int) -> tuple[Ints, Ints, Floats]:
    """Return all groups, (N, G), counts of replies, (N, K), and logarithms of multiplicities."""
    members_NG = np.array([*combinations_with_replacement(range(replies), size)], np.int64)
    counts_NK = (members_NG[:, :, None] == np.arange(replies)).sum(axis=1)
    factorials = np.array([math.lgamma(count + 1.0) for count in range(size + 1)])
    return members_NG, counts_NK, factorials[size] - factorials[counts_NK].sum(axis=1)


def groups(sampled_K: Floats, size: int) -> tuple[Ints, Floats]:
    """Return all groups, shape (N, G), and their probabilities."""
    members_NG, counts_NK, logs_N = multisets(len(sampled_K), size)
    return members_NG, np.exp(logs_N + counts_NK @ np.log(sampled_K))


def batches(prompts: Sequence[Replies], size: int) -> Batches:
    """Return all batches if there are at most `MOST`, otherwise `DRAWN` of them."""
    each = [groups(of.chance_K if of.sampled_K is None else of.sampled_K, size) for of in prompts]
    counts = [len(chance_N) for _, chance_N in each]
    exact = math.prod(counts) <= MOST
    if exact:
        picks = np.indices(counts).reshape(len(each), -1)
    else:
        rng = np.random.default_rng(size)
        picks = np.stack([rng.choice(len(c), DRAWN, p=c / c.sum()) for _, c in each])
    members = [group[0][pick] for group, pick in zip(each, picks, strict=True)]
    chances = [group[1][pick] for group, pick in zip(each, picks, strict=True)]
    chance_N = np.prod(chances, axis=0) if exact else np.full(DRAWN, 1.0 / DRAWN)
    return Batches(prompts, np.stack(members, axis=1), chance_N, exact)


@dataclass(frozen=True)
class Moments:
    """An estimator's mean and square, against the exact gradient.

    Attributes:
        exact_D: the exact gradient.
        mean_D: the expected estimate.
        square: expected squared length of the estimate.
        spent: rollouts of a batch.
        error: half width of the 95 % interval of factor and cosine; 0 by enumeration.
    """

    exact_D: Floats
    mean_D: Floats
    square: float
    spent: float
    error: tuple[float, ...] = (0.0, 0.0)

    @property
    def factor(self) -> float:
        """Share of the exact gradient in the expected estimate."""
        return float(self.mean_D @ self.exact_D / (self.exact_D @ self.exact_D))

    @property
    def cosine(self) -> float:
        """Cosine of the expected estimate to the exact gradient; 0 if there is no estimate."""
        lengths = float(np.linalg.norm(self.mean_D) * np.linalg.norm(self.exact_D))
        return float(self.mean_D @ self.exact_D) / lengths if lengths else 0.0

    @property
    def bias(self) -> float:
        """Distance of the expected estimate from the exact gradient, relative to the latter."""
        away = np.linalg.norm(self.mean_D - self.exact_D)
        return float(away / np.linalg.norm(self.exact_D))

    @property
    def variance(self) -> float:
        """Trace of the covariance of a batch's estimate, relative to the exact square."""
        return float((self.square - self.mean_D @ self.mean_D) / (self.exact_D @ self.exact_D))

    @property
    def needed(self) -> float:
        """Rollouts until the estimate's part along the exact gradient is as large as its noise."""
        return self.spent * self.variance / self.factor**2 if self.factor else math.inf


def moments(of: Batches, weights_NBGT: Floats, extra: int = 0) -> Moments:
    """Return the moments of the mean over a batch's rollouts of weights times scores.

    Args:
        of: the batches.
        weights_NBGT: what the score of each step is multiplied by.
        extra: rollouts of each prompt that are spent and not trained on.
    """
    prompts, size = weights_NBGT.shape[1:3]
    sums = [
        summed(weights_NBGT[:, b], of.members_NBG[:, b], each.scores_KTD)
        for b, each in enumerate(of.prompts)
    ]
    estimates = np.concatenate(sums, axis=1) / (prompts * size)
    exact_D = np.concatenate([each.gradient_D for each in of.prompts]) / prompts

    def over(part: slice, error: tuple[float, ...] = (0.0, 0.0)) -> Moments:
        chance_N = of.chance_N[part] / of.chance_N[part].sum()
        square = float(chance_N @ (estimates[part] ** 2).sum(axis=1))
        spent = prompts * (size + extra)
        return Moments(exact_D, chance_N @ estimates[part], square, spent, error)

    if of.exact:
        return over(slice(None))
    parts = [over(slice(block, None, BLOCKS)) for block in range(BLOCKS)]
    spread = np.std([(part.factor, part.cosine) for part in parts], axis=0, ddof=1)
    return over(slice(None), tuple(1.96 * spread / math.sqrt(BLOCKS)))


def mixed(parts: Sequence[tuple[float, Moments]]) -> Moments:
    """Return the moments where chance decides, before any reply, which of several holds."""
    exact_D, mean_D, square = (
        sum(chance * getattr(part, name) for chance, part in parts)
        for name in ("exact_D", "mean_D", "square")
    )
    return Moments(exact_D, mean_D, square, parts[0][1].spent)


def summed(weights_NGT: Floats, members_NG: Ints, scores_KTD: Floats) -> Floats:
    """Sum weights times scores over a group's rollouts and their steps, shape (N, D)."""
    by_reply_NKT = np.zeros((len(members_NG), *scores_KTD.shape[:2]))
    for g in range(members_NG.shape[1]):
        by_reply_NKT[np.arange(len(members_NG)), members_NG[:, g]] += weights_NGT[:, g]
    return np.tensordot(by_reply_NKT, scores_KTD, 2)
