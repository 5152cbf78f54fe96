"""Published claims about estimators: what follows from each in a small case, and what is measured.

Predictions are formulas written out here; measurements use the package's estimators over all
groups. Each source is summarised in our own words on the page.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from benchmarks.estimators.exact import (
    Batches,
    Floats,
    Moments,
    Replies,
    batches,
    groups,
    moments,
    softmax_replies,
    summed,
)
from benchmarks.estimators.schemes import BY_GROUP, LENGTHS, TURNS, Scheme, by_group
from tokengym.agents.service.engine.losses import LOSSES
from tokengym.rewards import SCORES, group_standardised, leave_one_out

GRID = np.linspace(0.1, 0.9, 9)
"""Forecasts that can be stated."""
_RNG = np.random.default_rng(0)
_CLOSE = 1e-9


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
    tolerance: float = _CLOSE

    @property
    def agrees(self) -> bool:
        """Whether the two are equal within the tolerance."""
        return abs(self.predicted - self.measured) <= self.tolerance


def measured(replies: Replies, scheme: Scheme, size: int) -> Moments:
    """Return a scheme's moments on groups of one prompt."""
    of = batches([replies], size, _RNG)
    return moments(of, scheme(of))


def forecast_after(true: float, scheme: Scheme, size: int, passes: int = 2000) -> float:
    """Follow the expected natural gradient on single outcomes; return the mean forecast.

    Args:
        true: probability of yes.
        scheme: what gives advantages.
        size: rollouts of a group, which share an outcome.
        passes: most steps; fewer once one forecast has all but .001 of the probability.
    """
    logits_K = np.zeros(len(GRID))
    chance_K = np.full(len(GRID), 1.0 / len(GRID))
    members_NG, _ = groups(chance_K, size)
    pulls_NK = np.zeros((len(members_NG), len(GRID)))
    for outcome, chance in (((0.0, 1.0), true), ((1.0, 0.0), 1.0 - true)):
        earned = [SCORES["brier"]((1.0 - p, p), outcome) for p in GRID]
        of = Batches([softmax_replies(chance_K, earned)], members_NG[:, None], chance_K, True)
        pulls_NK += chance * summed(scheme(of)[:, 0], members_NG, np.eye(len(GRID))[:, None])
    for _ in range(passes):
        chance_K = np.exp(logits_K - logits_K.max())
        chance_K = (chance_K / chance_K.sum()).clip(min=1e-300)
        if chance_K.max() > 0.999:
            break
        logits_K += groups(chance_K, size)[1] @ pulls_NK / size / chance_K.clip(min=1e-12)
    return float(chance_K @ GRID)


def overconfidence() -> Iterator[Claim]:
    """Near the end groups differ in one rollout: standardised, it gets the sign of its gain."""
    source = "[2508.11800](https://arxiv.org/abs/2508.11800)"
    for size in (4, 8):
        for name, predicted in (("centred by group", 0.7), ("standardised by group", GRID[-1])):
            found = forecast_after(0.7, BY_GROUP[name], size)
            quantity = f"forecast of an event of probability .7 after training, {name}, G = {size}"
            yield Claim(source, quantity, float(predicted), found, 1e-2)


def length_replies() -> Replies:
    """Return two right and two wrong replies, of 10 and 40 tokens each."""
    return softmax_replies((0.2, 0.2, 0.3, 0.3), (1, 1, 0, 0), (10, 40, 10, 40))


def length_bias() -> Iterator[Claim]:
    """Compare the pull from short to long replies among wrong and among right ones."""
    source, size, replies = "[2503.20783](https://arxiv.org/abs/2503.20783)", 8, length_replies()
    value, usual = 0.4, 25.0
    for name, scheme in LENGTHS.items():
        mean_K = measured(replies, scheme, size).mean_D
        for first, right in ((2, 0.0), (0, 1.0)):
            pull = float(mean_K[first + 1] - mean_K[first])
            per_token = usual / 40 - usual / 10 if "GRPO)" in name and "Dr." not in name else 0.0
            predicted = replies.chance_K[first] * (1 - 1 / size) * (right - value) * per_token
            what = "right" if right else "wrong"
            yield Claim(
                source, f"pull towards length among {what} replies, divided by {name}",
                float(predicted), pull,
            )  # fmt: skip


def difficulty() -> Iterator[Claim]:
    """Compare how standardising weighs a hard prompt beside an even one."""
    source = "[2503.20783](https://arxiv.org/abs/2503.20783)"
    limit = math.sqrt(0.5 * 0.5 / (0.1 * 0.9))
    for size in (4, 8, 16):
        factors = [
            measured(softmax_replies((1 - p, p), (0, 1)), BY_GROUP["standardised by group"], size)
            for p in (0.1, 0.5)
        ]
        quantity = f"weight of a prompt solved in .1 to one solved in .5, standardised, G = {size}"
        yield Claim(source, quantity, limit, factors[0].factor / factors[1].factor, 0.05)


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
    source, size = "[verl#7244](https://github.com/verl-project/verl/issues/7244)", 8
    for stopping in (0.0, 0.3):
        replies = turn_replies(stopping)
        for name, lost in (("turn, centred", 0.0), ([*TURNS][-1], 0.5)):
            worth = measured(replies, TURNS[name], size).mean_D[1] / (0.6 * 0.4)
            predicted = (1 - 1 / size) * (0.5 - lost - stopping)
            quantity = (
                f"worth of a further turn that pays .5 where stopping pays {stopping:g}, by {name}"
            )
            yield Claim(source, quantity, predicted, float(worth))


def spike() -> Iterator[Claim]:
    """Standardise [0, .95 × 7] by the others' deviation in float32, and as the package does."""
    source = "[NeMo-RL#4158](https://github.com/NVIDIA-NeMo/RL/pull/4158)"
    others = np.full(7, 0.95, np.float32)
    mean, squares = others.mean(), (others * others).mean()
    deviation = np.sqrt(np.float32(7 / 6) * (squares - mean * mean))
    quantity = "advantage of 0 among seven rewards of .95"
    alone = float(-mean / (deviation + np.float32(1e-6)))
    yield Claim(source, f"{quantity}, by the others' mean and deviation", -2075.39, alone, 0.1)
    ours = float(group_standardised([[0.0, *([0.95] * 7)]])[0, 0])
    yield Claim(source, f"{quantity}, ours", -7 / math.sqrt(8), ours)


def random_rewards() -> Iterator[Claim]:
    """Pay by coin: replies that occur .8 and .2 of the time, in both cases 1 or 0."""
    source, size = "[2506.10947](https://arxiv.org/abs/2506.10947)", 8
    replies = coin_replies(0.8)
    for name, scheme in BY_GROUP.items():
        length = float(np.linalg.norm(measured(replies, scheme, size).mean_D))
        yield Claim(source, f"length of the expected first update, {name}", 0.0, length)
    for name in ("importance_sampling", "ppo"):
        found = log_odds_after(0.8, name, size)
        quantity = f"change of the usual reply's log-odds in 8 passes over a group, `{name}`"
        yield Claim(source, quantity, 0.0, found, 1e-2)


def coin_replies(usual: float) -> Replies:
    """Return two replies, each paid 1 or 0 by coin."""
    both = softmax_replies((usual, 1 - usual), (0, 0))
    twice = np.array([0, 0, 1, 1])
    rewards = np.array([1.0, 0.0, 1.0, 0.0])[:, None]
    return Replies(both.chance_K[twice] / 2, rewards, both.scores_KTD[twice], np.ones((4, 1)))


def log_odds_after(usual: float, loss: str, size: int, passes: int = 8, rate: float = 0.5) -> float:
    """Return the expected change of log-odds after several passes over each group."""
    replies, chosen = coin_replies(usual), LOSSES[loss]
    members_NG, chance_N = groups(replies.chance_K, size)
    of_usual_NG = members_NG < 2
    advantages = torch.tensor(leave_one_out(replies.rewards_KT[members_NG, 0]).ravel())
    before = math.log(usual / (1 - usual))
    odds_N = np.full(len(members_NG), before)
    for _ in range(passes):
        logs_NG = _log_chance(odds_N, of_usual_NG) - _log_chance(odds_N * 0 + before, of_usual_NG)
        logprobs = torch.tensor(logs_NG.ravel(), requires_grad=True)
        inputs = {"advantages": advantages, "logprobs": torch.zeros_like(logprobs)}
        losses = chosen.of_tokens(logprobs, inputs, chosen.configured({}))
        (slope,) = torch.autograd.grad(losses.sum(), logprobs)
        # Two logits move apart by twice what either moves.
        away_NG = of_usual_NG - 1.0 / (1.0 + np.exp(-odds_N))[:, None]
        odds_N = odds_N - 2 * rate * (slope.numpy().reshape(away_NG.shape) * away_NG).mean(axis=1)
    return float(chance_N @ (odds_N - before))


def noisy_labels() -> Iterator[Claim]:
    """Flip rewards: a wrong reply is paid with probability .1, a right one is not with .2."""
    source, size = "[2510.18924](https://arxiv.org/abs/2510.18924)", 8
    wrongly, missed = 0.1, 0.2
    left = 1 - wrongly - missed
    prompts = [softmax_replies((1 - p, p), (0, 1)) for p in (0.1, 0.5, 0.8)]
    exact_D = np.concatenate([each.gradient_D for each in prompts]) / len(prompts)
    raw, mended = (
        [_flipped(each, wrongly, missed, *to) for each in prompts]
        for to in ((1.0, 0.0), ((1 - wrongly) / left, -wrongly / left))
    )
    for name in ("leave one out", "standardised by group"):
        found = [_over_prompts(each, BY_GROUP[name], size, exact_D) for each in (raw, mended)]
        clean = _over_prompts(prompts, BY_GROUP[name], size, exact_D)
        if name == "leave one out":
            yield Claim(source, f"factor under flipped rewards, {name}", left, found[0].factor)
            yield Claim(source, f"factor after the correction, {name}", 1.0, found[1].factor)
        same = float(np.abs(found[1].mean_D - found[0].mean_D).max())
        expected = 0.0 if name != "leave one out" else (1 / left - 1) * float(
            np.abs(found[0].mean_D).max()
        )
        yield Claim(source, f"most that the correction changes, {name}", expected, same)
        yield Claim(source, f"cosine under flips to that without, {name}", 1.0,
                    _cosine(found[0].mean_D, clean.mean_D))  # fmt: skip


def constraints() -> Iterator[Claim]:
    """Weigh a rare cost against a reward, λ = 1: by the sum, and by standardised terms."""
    source, size = "[2602.05863](https://arxiv.org/abs/2602.05863)", 16
    chance, reward, cost = (0.35, 0.6, 0.04, 0.01), (1, 0, 1, 0), (0, 0, 1, 1)
    both, gain, harm = (
        softmax_replies(chance, paid) for paid in (np.subtract(reward, cost), reward, cost)
    )
    basis = np.stack([gain.gradient_D, -harm.gradient_D], axis=1)
    spread = math.sqrt(0.39 * 0.61 / (0.05 * 0.95))

    def terms(scheme: Scheme) -> Callable[[Batches], Floats]:
        return lambda of: scheme(replace(of, prompts=[gain])) - scheme(replace(of, prompts=[harm]))

    whole = by_group(estimator="group_standardised")
    exact_D = both.gradient_D
    for name, scheme, predicted in (
        ("centred sum", by_group(), 1.0),
        ("standardised sum", whole, 1.0),
        ("sum of standardised terms", terms(whole), spread),
    ):
        found = measured(both, scheme, size)
        (of_gain, of_harm), *_ = np.linalg.lstsq(basis, found.mean_D, rcond=None)
        yield Claim(source, f"weight of the cost to that of the reward, {name}", predicted,
                    float(of_harm / of_gain), 0.15)  # fmt: skip
        expected = _cosine(basis @ (1.0, predicted), exact_D)
        yield Claim(source, f"cosine to the gradient of reward less cost, {name}", expected,
                    found.cosine, 0.01)  # fmt: skip


CLAIMS: tuple[Callable[[], Iterator[Claim]], ...] = (
    *(overconfidence, length_bias, difficulty, turn_level),
    *(spike, random_rewards, noisy_labels, constraints),
)


def _log_chance(odds_N: Floats, of_usual_NG: npt.NDArray[np.bool_]) -> Floats:
    """Return the log-probability of each rollout's reply."""
    return -np.logaddexp(0.0, np.where(of_usual_NG, -1.0, 1.0) * odds_N[:, None])


def _flipped(
    replies: Replies, wrongly: float, missed: float, right: float, wrong: float
) -> Replies:
    """Return replies (wrong, right) with observed rewards: each is paid as right or as wrong."""
    twice = np.array([0, 0, 1, 1])
    paid = np.array([wrongly, 1 - wrongly, 1 - missed, missed])
    rewards = np.array([right, wrong, right, wrong])[:, None]
    return Replies(
        replies.chance_K[twice] * paid, rewards, replies.scores_KTD[twice], np.ones((4, 1))
    )


def _over_prompts(
    prompts: list[Replies], scheme: Scheme, size: int, exact_D: Floats
) -> Moments:
    """Return the expectation over prompts whose groups do not depend on each other."""
    mean = [measured(each, scheme, size).mean_D for each in prompts]
    return Moments(exact_D, np.concatenate(mean) / len(prompts), 0.0, 0.0)


def _cosine(a: Floats, b: Floats) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
