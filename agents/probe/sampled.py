"""Whether replies were sampled from the distribution that is trained, by exact martingales.

The ratio of a token's probability at another temperature to that at the trained one has mean 1
whatever was sampled before, and so has a tail's being empty over its probability. Products of
such ratios exceed a bound b with probability 1/b at most, however few tokens there are. Tokens that
end replies belong to the sample: what is left without them is none.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from tokengym.agents.probe.verdict import ProbeVerdict, VerdictKind
from tokengym.rewards.arrays import Floats, Ints

ALARM = 10.0
"""Logarithm of the product from which on it is no accident: exp(-10) = 5e-5."""
_TEMPERATURES = (0.1, 0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.05, 1.1, 1.2, 1.3, 1.5, 2.0)
_TOP_K = tuple(2**power * base for base in (1, 5) for power in range(8))
_TOP_P = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995)
_SMALLEST_STEP = 1e-6

Reply = tuple[Sequence[int], Sequence[int], Sequence[int]]
"""Prompt, completion, and a mask of it that is 1 at the policy's tokens."""


class TokenSample(NamedTuple):
    """The distribution of each of N tokens, and which of it was sampled.

    Attributes:
        logprobs_NV: natural logarithms of the trained distribution, temperature included.
        tokens_N: what was sampled.
    """

    logprobs_NV: Floats
    tokens_N: Ints

    @property
    def chosen_N(self) -> Floats:
        """Log-probability of each token."""
        return np.asarray(self.logprobs_NV[np.arange(len(self.tokens_N)), self.tokens_N])


def sample_of(model: Any, replies: Iterable[Reply], temperature: float = 1.0) -> TokenSample:
    """Return the distributions of the policy's tokens under a model.

    Args:
        model: a causal language model, at the weights that sampled.
        replies: with at least one token of the policy, ends included.
        temperature: that training divides logits by.
    """
    rows, tokens = [], []
    for prompt, completion, mask in replies:
        ids, own = torch.tensor([[*prompt, *completion]]), torch.tensor(mask, dtype=torch.bool)
        with torch.no_grad():
            logits_TV = model(input_ids=ids).logits[0, len(prompt) - 1 : -1]
        rows.append((logits_TV.double() / temperature).log_softmax(-1)[own].numpy())
        tokens.append(ids[0, len(prompt) :][own].numpy())
    return TokenSample(np.concatenate(rows), np.concatenate(tokens))


def judge_sample(sample: TokenSample) -> ProbeVerdict:
    """Say whether tokens were sampled from the distributions given, whole and as they are."""
    count, evidence = len(sample.tokens_N), _evidence(sample)
    gain, expected, tail = max(_truncated(sample))
    if expected > ALARM and gain > evidence:
        text = f"no token of {count} lies beyond {tail}, where {expected:.0f} are expected"
        text = f"replies are truncated: {text}"
        return ProbeVerdict(VerdictKind.WRONG, text, "truncated", expected / count)
    z, temperature = temperature_of(sample)
    text = f"temperature {temperature:.2g} times what is trained (z {z:.1f}, {count} tokens)"
    if evidence > ALARM:
        off = abs(1 - temperature)
        return ProbeVerdict(VerdictKind.WRONG, f"sampled at {text}", "temperature", off)
    text = f"what is sampled is what is trained: {text}"
    return ProbeVerdict(VerdictKind.FOLLOWS, text, "sampled")


def temperature_of(sample: TokenSample) -> tuple[float, float]:
    """Return the standard score of temperature 1, and the likeliest temperature."""
    logps_NV = sample.logprobs_NV
    first, inverse = 0.0, 1.0
    for number in range(50):
        scaled_NV = inverse * logps_NV
        scaled_NV -= np.logaddexp.reduce(scaled_NV, axis=1, keepdims=True)
        p_NV = np.exp(scaled_NV)
        mean_N = (p_NV * logps_NV).sum(axis=1)
        variance = float((p_NV * (logps_NV - mean_N[:, None]) ** 2).sum())
        score = float((sample.chosen_N - mean_N).sum())
        if number == 0:
            first = score / np.sqrt(variance) if variance else 0.0
        step = score / variance if variance else 0.0
        # Where all tokens are the likeliest ones, the temperature is 0.
        inverse = min(max(inverse + step, inverse / 2), inverse * 2)
        if abs(step) < _SMALLEST_STEP or inverse > 1e3:
            break
    return first, 1 / inverse


def _evidence(sample: TokenSample) -> float:
    """Return the logarithm of the mean likelihood ratio of other temperatures."""
    scaled = ((sample.chosen_N / t, sample.logprobs_NV / t) for t in _TEMPERATURES)
    ratios = [one.sum() - np.logaddexp.reduce(all_NV, axis=1).sum() for one, all_NV in scaled]
    whole = float(np.logaddexp.reduce(ratios) - sample.chosen_N.sum())
    return whole - float(np.log(len(_TEMPERATURES)))


def _truncated(sample: TokenSample) -> Iterator[tuple[float, float, str]]:
    """Yield the tails in which there is no token.

    For each the logarithm of the likelihood ratio of sampling without it, how many tokens are
    expected in it, and where it begins.
    """
    yield 0.0, 0.0, ""
    p_NV = np.exp(sample.logprobs_NV)
    order_NV = np.argsort(-p_NV, axis=1)
    sorted_NV = np.take_along_axis(p_NV, order_NV, axis=1)
    before_NV = sorted_NV.cumsum(axis=1) - sorted_NV
    rank_N = (order_NV == sample.tokens_N[:, None]).argmax(axis=1)
    before_N = before_NV[np.arange(len(rank_N)), rank_N]
    for k in _TOP_K:
        if k < p_NV.shape[1] and (rank_N < k).all():
            yield *_without(sorted_NV[:, k:].sum(axis=1)), f"the {k} likeliest (top_k)"
    for p in _TOP_P:
        if (before_N < p).all():
            tail_N = np.where(before_NV >= p, sorted_NV, 0.0).sum(axis=1)
            yield *_without(tail_N), f"the likeliest {p:g} (top_p)"


def _without(tail_N: Floats) -> tuple[float, float]:
    """Return the log-likelihood ratio of empty tails, and the tokens expected in them."""
    return -float(np.log1p(-tail_N).sum()), float(tail_N.sum())
