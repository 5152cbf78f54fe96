"""Published claims about estimators: what follows from each in a small case, and what is measured.

Predictions are formulas written out here; measurements use the package's estimators over all
groups. The page says in our own words what each source claims.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from benchmarks.estimators import exact
from benchmarks.estimators.exact import Batches, Replies, softmax_replies
from benchmarks.estimators.schemes import BY_GROUP, LENGTHS, TURNS, Scheme
from tokengym.agents.service.engine.losses import LOSSES
from tokengym.rewards import SCORES, group_standardised, leave_one_out
from tokengym.rewards.arrays import Floats

GRID = np.linspace(0.1, 0.9, 9)
"""Forecasts that can be stated."""
CENTRED, STANDARDISED = (BY_GROUP[f"{name} by group"] for name in ("centred", "standardised"))
_SIZE = 8


class Claim(NamedTuple):
    """A number that a claim predicts beside the one measured.

    Attributes:
        source: what is cited.
        quantity: what is compared.
        predicted: by a formula.
        measured: over all groups.
        tolerance: largest difference that counts as agreement.
    """

    source: str
    quantity: str
    predicted: float
    measured: float
    tolerance: float = 1e-9

    @property
    def agrees(self) -> bool:
        """Whether the two are equal within the tolerance."""
        return abs(self.predicted - self.measured) <= self.tolerance


def measured(replies: Replies, scheme: Scheme, size: int = _SIZE) -> exact.Moments:
    """Return a scheme's moments on groups of one prompt."""
    of = exact.batches([replies], size)
    return exact.moments(of, scheme(of))


def forecast_after(true: float, scheme: Scheme, size: int, passes: int = 2000) -> float:
    """Follow the expected natural gradient on single outcomes; return the mean forecast.

    Args:
        true: probability of yes.
        scheme: what gives advantages.
        size: rollouts of a group, which share an outcome.
        passes: most steps; fewer once one forecast has all but .001 of the probability.
    """
    logits_K, chance_K = np.zeros(len(GRID)), np.full(len(GRID), 1.0 / len(GRID))
    members_NG, chance_N = exact.groups(chance_K, size)
    pulls_NK = np.zeros((len(members_NG), len(GRID)))
    for outcome, chance in (((0.0, 1.0), true), ((1.0, 0.0), 1.0 - true)):
        earned = [SCORES["brier"]((1.0 - p, p), outcome) for p in GRID]
        of = Batches([softmax_replies(chance_K, earned)], members_NG[:, None], chance_N, True)
        pulls_NK += chance * exact.summed(scheme(of)[:, 0], members_NG, np.eye(9)[:, None])
    for _ in range(passes):
        chance_K = np.exp(logits_K - logits_K.max()).clip(min=1e-300)
        chance_K /= chance_K.sum()
        if chance_K.max() > 0.999:
            break
        logits_K += exact.groups(chance_K, size)[1] @ pulls_NK / size / chance_K.clip(min=1e-12)
    return float(chance_K @ GRID)


def overconfidence() -> Iterator[Claim]:
    """Near the end groups differ in one rollout: standardised, it gets the sign of its gain."""
    for size in (4, 8):
        for name, scheme, predicted in (
            ("centred", CENTRED, 0.7),
            ("standardised", STANDARDISED, float(GRID[-1])),
        ):
            quantity = f"forecast after training of an event of probability .7, {name}, G = {size}"
            found = forecast_after(0.7, scheme, size)
            yield Claim("arXiv 2508.11800", quantity, predicted, found, 1e-2)


def length_replies() -> Replies:
    """Return two right and two wrong replies, of 10 and 40 tokens each."""
    return softmax_replies((0.2, 0.2, 0.3, 0.3), (1, 1, 0, 0), (10, 40, 10, 40))


def length_bias() -> Iterator[Claim]:
    """Compare the pull from short to long replies among wrong and among right ones."""
    value, usual = 0.4, 25.0
    for name, scheme in LENGTHS.items():
        mean_K = measured(length_replies(), scheme).mean_D
        per_token = usual / 40 - usual / 10 if scheme is LENGTHS["its own tokens (GRPO)"] else 0.0
        for kind, first, chance, reward in (("wrong", 2, 0.3, 0.0), ("right", 0, 0.2, 1.0)):
            predicted = chance * (1 - 1 / _SIZE) * (reward - value) * per_token
            quantity = f"pull towards length among {kind} replies, divided by {name}"
            pull = float(mean_K[first + 1] - mean_K[first])
            yield Claim("arXiv 2503.20783", quantity, predicted, pull)


def difficulty() -> Iterator[Claim]:
    """Compare how standardising weighs a hard prompt beside an even one."""
    limit = math.sqrt(0.5 * 0.5 / (0.1 * 0.9))
    for size in (4, 8, 16):
        hard, even = (
            measured(softmax_replies((1 - p, p), (0, 1)), STANDARDISED, size).factor
            for p in (0.1, 0.5)
        )
        quantity = f"weight of a prompt solved in .1 to one solved in .5, standardised, G = {size}"
        yield Claim("arXiv 2503.20783", quantity, limit, hard / even, 0.05)


def turn_replies(stopping: float = 0.3) -> Replies:
    """Return the replies: stop and be paid, or go on for a second turn that pays 1 or 0."""
    scores = np.zeros((3, 2, 4))
    scores[:, 0, :2] = np.eye(2)[[0, 1, 1]] - (0.6, 0.4)
    scores[1:, 1, 2:] = np.eye(2) - 0.5
    rewards = np.array([[stopping, 0.0], [0.0, 1.0], [0.0, 0.0]])
    taken = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 1.0]])
    return Replies(np.array([0.6, 0.2, 0.2]), rewards, scores, taken)


def turn_level() -> Iterator[Claim]:
    """Read off what an estimator takes going on to be worth."""
    for stopping in (0.0, 0.3):
        for name, lost in (("turn, centred", 0.0), ("turn rewards centred by index", 0.5)):
            worth = measured(turn_replies(stopping), TURNS[name]).mean_D[1] / (0.6 * 0.4)
            predicted = (1 - 1 / _SIZE) * (0.5 - lost - stopping)
            quantity = f"worth of a turn that pays .5 where stopping pays {stopping:g}, {name}"
            yield Claim("verl#7244", quantity, predicted, float(worth))


def spike() -> Iterator[Claim]:
    """Standardise 0 and seven times .95 by the others' deviation in float32, and as we do."""
    others = np.full(7, 0.95, np.float32)
    mean, squares = others.mean(), (others * others).mean()
    deviation = np.sqrt(np.float32(7 / 6) * (squares - mean * mean))
    alone = float(-mean / (deviation + np.float32(1e-6)))
    ours = float(group_standardised([[0.0, *([0.95] * 7)]])[0, 0])
    quantity = "advantage of 0 among seven rewards of .95"
    yield Claim("NeMo-RL#4158", f"{quantity}, by the others' deviation", -2075.39, alone, 0.1)
    yield Claim("NeMo-RL#4158", f"{quantity}, ours", -7 / math.sqrt(8), ours)


def observed(replies: Replies, paid_K: npt.ArrayLike) -> Replies:
    """Return replies of one step that are paid 1 with some chance each, and otherwise 0."""
    paid = np.asarray(paid_K)
    chance = np.concatenate([replies.chance_K * paid, replies.chance_K * (1 - paid)])
    rewards = np.repeat((1.0, 0.0), len(paid))[:, None]
    return Replies(chance, rewards, np.tile(replies.scores_KTD, (2, 1, 1)), np.ones_like(rewards))


def random_rewards() -> Iterator[Claim]:
    """Pay two replies, of probability .8 and .2, by coin."""
    replies = observed(softmax_replies((0.8, 0.2), (0, 0)), (0.5, 0.5))
    for name, scheme in BY_GROUP.items():
        length = float(np.linalg.norm(measured(replies, scheme).mean_D))
        yield Claim("arXiv 2506.10947", f"expected first update, {name}", 0.0, length)
    for name in ("importance_sampling", "ppo"):
        quantity = f"change of the usual reply's log-odds in 8 passes over a group, `{name}`"
        yield Claim("arXiv 2506.10947", quantity, 0.0, log_odds_after(replies, name), 1e-2)


def log_odds_after(replies: Replies, loss: str, passes: int = 8, rate: float = 0.5) -> float:
    """Return the expected change of the first reply's log-odds, after passes over each group."""
    chosen, before = LOSSES[loss], math.log(0.8 / 0.2)
    members_NG, chance_N = exact.groups(replies.chance_K, _SIZE)
    first_NG = members_NG % 2 == 0
    signs_NG = np.where(first_NG, 1.0, -1.0)
    advantages = torch.tensor(leave_one_out(replies.rewards_KT[members_NG, 0]).ravel())
    odds_N = np.full(len(members_NG), before)
    for _ in range(passes):
        logs_NG = np.logaddexp(0, -signs_NG * before) - np.logaddexp(0, -signs_NG * odds_N[:, None])
        logprobs = torch.tensor(logs_NG.ravel(), requires_grad=True)
        inputs = {"advantages": advantages, "logprobs": 0.0 * logprobs.detach()}
        losses = chosen.of_tokens(logprobs, inputs, chosen.configured({}))
        (slope,) = torch.autograd.grad(losses.sum(), logprobs)
        score_NG = first_NG - 1 / (1 + np.exp(-odds_N))[:, None]
        # Two logits move apart by twice what either moves.
        odds_N = odds_N - 2 * rate * (slope.numpy().reshape(score_NG.shape) * score_NG).mean(axis=1)
    return float(chance_N @ (odds_N - before))


def noisy_labels() -> Iterator[Claim]:
    """Flip rewards: a wrong reply is paid with probability .1, a right one is not with .2."""
    wrongly, left = 0.1, 1 - 0.1 - 0.2
    truth = softmax_replies((0.7, 0.3), (0, 1))
    raw = observed(truth, (wrongly, 0.8))
    mended = replace(raw, rewards_KT=(raw.rewards_KT - wrongly) / left)
    for name, scheme in (
        ("leave one out", BY_GROUP["leave one out"]),
        ("standardised", STANDARDISED),
    ):
        before, after, clean = (measured(each, scheme).mean_D for each in (raw, mended, truth))
        if scheme is STANDARDISED:
            change = float(np.abs(after - before).max())
            yield Claim("arXiv 2510.18924", f"change by the correction, {name}", 0.0, change)
            continue
        for when, found, predicted in (("flipped", before, left), ("corrected", after, 1.0)):
            factor = float(found @ clean / (clean @ clean))
            yield Claim("arXiv 2510.18924", f"factor, {name}, rewards {when}", predicted, factor)


def constraints() -> Iterator[Claim]:
    """Weigh a rare cost against a reward, λ = 1: by the sum, and by standardised terms."""
    chance, reward, cost = (0.35, 0.6, 0.04, 0.01), (1, 0, 1, 0), (0, 0, 1, 1)
    both, gain, harm = (
        softmax_replies(chance, paid) for paid in (np.subtract(reward, cost), reward, cost)
    )
    basis = np.stack([gain.gradient_D, -harm.gradient_D], axis=1)

    def terms(of: Batches) -> Floats:
        return STANDARDISED(replace(of, prompts=[gain])) - STANDARDISED(replace(of, prompts=[harm]))

    for name, scheme, predicted in (
        ("centred sum", CENTRED, 1.0),
        ("standardised sum", STANDARDISED, 1.0),
        ("sum of standardised terms", terms, math.sqrt(0.39 * 0.61 / (0.05 * 0.95))),
    ):
        found = measured(both, scheme, 16).mean_D
        (of_gain, of_harm), *_ = np.linalg.lstsq(basis, found, rcond=None)
        quantity = f"weight of the cost relative to the reward's, λ = 1, {name}, G = 16"
        yield Claim("arXiv 2602.05863", quantity, predicted, float(of_harm / of_gain), 0.05)


CLAIMS: tuple[Callable[[], Iterator[Claim]], ...] = (
    *(overconfidence, length_bias, difficulty, turn_level),
    *(spike, random_rewards, noisy_labels, constraints),
)
