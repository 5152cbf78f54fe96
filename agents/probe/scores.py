"""The score of every token: the gradient of its log-probability, by automatic differentiation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch.func import functional_call

from tokengym.agents.probe.policy import PAD
from tokengym.agents.probe.rollouts import ProbeRollout
from tokengym.rewards.arrays import Flags, Floats, Ints

COORDINATES = 50_000
"""Weights that are looked at, drawn at random; far more than there are tokens."""
PROMPT, LAST_PROMPT, COMPLETION, FIRST_PAD, PADS = range(5)
"""Types of columns. Of prompts and padding all but one token are one column together."""


def draw_coordinates(shapes: Mapping[str, int], seed: int = 0) -> dict[str, Ints]:
    """Return the flat places in each parameter that are looked at, given its size."""
    total = sum(shapes.values())
    generator = np.random.default_rng(seed)
    drawn = np.sort(generator.choice(total, min(total, COORDINATES), replace=False))
    places, start = {}, 0
    for name, size in shapes.items():
        inside = drawn[(drawn >= start) & (drawn < start + size)]
        places[name] = inside - start
        start += size
    return places


@dataclass(frozen=True)
class ScoreTable:
    """Scores of a batch at one set of weights: P coordinates, K columns.

    Attributes:
        scores_PK: gradients of log-probabilities, nats per unit of weight.
        rollout_K: which rollout a column belongs to.
        place_K: its place in the completion; meaningless for prompts and padding.
        kind_K: what it is.
        size_K: its tokens.
        logprob_K: log-probability of its tokens, in nats.
        entropy_K: entropy of the distribution that each was chosen from, in nats, summed.
        entropies_NP: gradient of each rollout's summed entropies at the policy's tokens.
        layer_P: number of the parameter that each coordinate belongs to.
        names: of the parameters.
        weights_P: the weights there.
    """

    scores_PK: Floats
    rollout_K: Ints
    place_K: Ints
    kind_K: Ints
    size_K: Floats
    logprob_K: Floats
    entropy_K: Floats
    entropies_NP: Floats
    layer_P: Ints
    names: tuple[str, ...]
    weights_P: Floats

    def at(self, rows_P: Flags) -> "ScoreTable":
        """Return the table at some of the coordinates."""
        some = {name: getattr(self, name)[rows_P] for name in ("scores_PK", "layer_P", "weights_P")}
        return replace(self, **some, entropies_NP=self.entropies_NP[:, rows_P])

    @cached_property
    def gram_KK(self) -> Floats:
        """Products of the scores with each other."""
        return np.asarray(self.scores_PK.T @ self.scores_PK)

    @cached_property
    def inverse_KK(self) -> Floats:
        """Pseudo-inverse of the products: equal tokens in equal contexts share their weight."""
        values, vectors = np.linalg.eigh(self.gram_KK)
        kept = values > values[-1] * 1e-13
        return np.asarray((vectors[:, kept] / values[kept]) @ vectors[:, kept].T)


def score_table(
    model: torch.nn.Module,
    at: Mapping[str, torch.Tensor],
    rollouts: Sequence[ProbeRollout],
    places: Mapping[str, Ints],
    *,
    temperature: float = 1.0,
    left_padding: bool = False,
    padding: bool = False,
) -> ScoreTable:
    """Score every token of a batch, in double precision.

    Args:
        model: gives the architecture.
        at: the weights before the update, by name.
        rollouts: of the batch.
        places: the coordinates, as `draw_coordinates` returns them; none if only log-probabilities
            are wanted.
        temperature: which logits are divided by.
        left_padding: whether prompts are filled up on the left with tokens that are attended.
        padding: whether what follows the end is attended.
    """
    fixed = {name: value.detach().double() for name, value in at.items()}
    parameters = {name: fixed[name].clone().requires_grad_() for name in places}
    widest = max(len(rollout.completion_ids) for rollout in rollouts)
    longest = max(len(rollout.prompt_ids) for rollout in rollouts)
    model = model.double()
    weights = fixed | parameters
    parts = []
    for rollout in rollouts:
        fill = longest - len(rollout.prompt_ids) if left_padding else 0
        layout = _layout(rollout, widest, fill, padding)
        parts.append(_score(model, weights, parameters, rollout, layout, places, temperature))
    layouts, matrices, logprobs, entropies, gradients = zip(*parts, strict=True)
    per_rollout = [matrix.shape[1] for matrix in matrices]
    rollout_K = np.repeat(np.arange(len(rollouts)), per_rollout)
    columns = ((layout.place_K, layout.kind_K, layout.columns_KT.sum(axis=1)) for layout in layouts)
    place_K, kind_K, size_K = map(np.concatenate, zip(*columns, strict=True))
    layer_P = np.repeat(np.arange(len(places)), [len(places[name]) for name in places])
    weights_P = np.concatenate([np.zeros(0), *(_at(fixed[name], places[name]) for name in places)])
    return ScoreTable(
        *(np.concatenate(matrices, axis=1), rollout_K, place_K, kind_K, size_K),
        *(np.concatenate(logprobs), np.concatenate(entropies), np.stack(gradients)),
        *(layer_P, tuple(places), weights_P),
    )


@dataclass(frozen=True)
class _Layout:
    """Where the columns of one rollout come from.

    Attributes:
        ids_T: the sequence, padding included.
        read_T: 1 where a token is attended to.
        columns_KT: which predicted tokens, those after the first, each column sums.
    """

    ids_T: list[int]
    read_T: list[int]
    columns_KT: Floats
    kind_K: Ints
    place_K: Ints


def _layout(rollout: ProbeRollout, widest: int, fill: int, padding: bool) -> _Layout:
    start, length = fill + len(rollout.prompt_ids), len(rollout.completion_ids)
    pads = widest - length
    ids = [PAD] * fill + [*rollout.prompt_ids, *rollout.completion_ids] + [PAD] * pads
    read = [1] * (start + length) + [int(padding)] * pads
    end = start + length
    spans = [
        (PROMPT, 0, range(fill + 1, start - 1)),
        (LAST_PROMPT, 0, range(max(fill + 1, start - 1), start)),
        *((COMPLETION, at, range(start + at, start + at + 1)) for at in range(length)),
        (FIRST_PAD, length, range(end, min(end + 1, end + pads))),
        (PADS, length + 1, range(end + 1, end + pads)),
    ]
    spans = [span for span in spans if len(span[2])]
    columns = np.zeros((len(spans), len(ids) - 1))
    for row, (_, _, tokens) in enumerate(spans):
        columns[row, [token - 1 for token in tokens]] = 1.0
    kinds, places = np.array([kind for kind, *_ in spans]), np.array([at for _, at, _ in spans])
    return _Layout(ids, read, columns, kinds, places)


def _score(
    model: torch.nn.Module,
    weights: Mapping[str, torch.Tensor],
    parameters: Mapping[str, torch.Tensor],
    rollout: ProbeRollout,
    layout: _Layout,
    places: Mapping[str, Ints],
    temperature: float,
) -> tuple[_Layout, Floats, Floats, Floats, Floats]:
    """Return the layout, scores [P, K], log-probabilities and entropies [K], their gradient [P]."""
    ids_1T = torch.tensor([layout.ids_T])
    given = {"input_ids": ids_1T, "attention_mask": torch.tensor([layout.read_T])}
    made = functional_call(model, dict(weights), kwargs=given)
    logps_TV = (made.logits[0, :-1] / temperature).log_softmax(-1)
    chosen_T = logps_TV.gather(-1, ids_1T[0, 1:, None])[:, 0]
    entropy_T = -(logps_TV.exp() * logps_TV).sum(-1)
    logprobs_K, entropy_K = (torch.from_numpy(layout.columns_KT) @ x for x in (chosen_T, entropy_T))
    values = logprobs_K.detach().numpy(), entropy_K.detach().numpy()
    if not parameters:
        return layout, np.zeros((0, len(layout.kind_K))), *values, np.zeros(0)
    kinds = zip(layout.kind_K, layout.place_K, strict=True)
    own_K = torch.tensor([kind == COMPLETION and bool(rollout.mask[at]) for kind, at in kinds])
    outputs = torch.cat([logprobs_K, (own_K * entropy_K).sum()[None]])
    each, how = torch.eye(len(outputs), dtype=torch.double), {"retain_graph": True}
    how |= {"is_grads_batched": True, "materialize_grads": True}
    gradients = torch.autograd.grad(outputs, list(parameters.values()), each, **how)
    rows = [
        gradient.reshape(len(outputs), -1)[:, torch.from_numpy(places[name])].numpy()
        for name, gradient in zip(parameters, gradients, strict=True)
    ]
    scores_KP = np.concatenate(rows, axis=1)
    return layout, scores_KP[:-1].T, *values, scores_KP[-1]


def _at(tensor: torch.Tensor, places: Ints) -> Floats:
    return tensor.double().flatten()[torch.from_numpy(places)].numpy()
