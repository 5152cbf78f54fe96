"""A small policy-gradient trainer in plain torch, with a switch for every fault to plant."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from tokengym.agents.probe.policy import END, PAD, Checkpoint
from tokengym.agents.probe.rollouts import ProbeRollout


@dataclass(frozen=True)
class Settings:
    """What the trainer does; `fault` is what it does wrong."""

    estimator: str = "centred"
    weighting: str = "sum"
    micro_batch: int | None = None
    optimizer: str = "sgd"
    rate: float = 1.0
    epsilon: float = 1e-4
    clip: float | None = None
    norm: float | None = None
    temperature: float = 1.0
    fault: str = ""


CHANGED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sign": torch.neg,
    "negatives dropped": lambda advantages: advantages.clamp(min=0),
    "clipped advantages": lambda advantages: advantages.clamp(-0.7, 0.7),
    "absolute advantages": torch.abs,
    "shuffled": lambda one: one[torch.from_numpy(np.random.default_rng(5).permutation(len(one)))],
}
"""Faults of advantages."""


def advantages_of(rollouts: Sequence[ProbeRollout], s: Settings) -> torch.Tensor:
    rewards = torch.tensor([r.reward for r in rollouts], dtype=torch.float64)
    n, count = len(rollouts), len({r.group for r in rollouts})
    size = n // count
    if s.fault == "next reward":
        rewards = rewards.roll(-1)
    if s.fault == "clipped rewards":
        rewards = rewards.clamp(0, 1)
    groups = torch.arange(n) // size
    if s.fault == "groups mixed over tasks":
        groups = groups.roll(size // 2)
    if s.fault == "groups mixed over workers":
        groups = torch.arange(n) % count
    advantages = torch.zeros_like(rewards)
    for group in range(count):
        here = groups == group
        centred = rewards[here] - rewards[here].mean()
        if s.estimator == "standardised" or s.fault == "ignored setting":
            centred = centred / (rewards[here].std() + s.epsilon)
        if s.fault == "double normalisation":
            centred = centred / (rewards[here].std() + s.epsilon) ** 2
        advantages[here] = centred
    return CHANGED.get(s.fault, torch.Tensor.float)(advantages).float()


def _batch(
    rollouts: Sequence[ProbeRollout], s: Settings
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return ids, attention and mask of the targets, prompts padded left, completions right."""
    before = max(len(r.prompt_ids) for r in rollouts)
    after = max(len(r.completion_ids) for r in rollouts)
    ids, attention, mask = (torch.zeros(len(rollouts), before + after).long() for _ in range(3))
    for n, r in enumerate(rollouts):
        start, end = before - len(r.prompt_ids), before + len(r.completion_ids)
        ids[n] = PAD
        ids[n, start:end] = torch.tensor([*r.prompt_ids, *r.completion_ids])
        attention[n, (0 if s.fault == "left padding" else start) : end] = 1
        own = list(r.mask)
        if s.fault == "observations trained":
            own = [1] * len(own)
        if s.fault == "end untrained":
            own[max(at for at, value in enumerate(own) if value)] = 0
        if s.fault == "only the last turn":
            last = r.turns[-1]
            own = [value if at in last else 0 for at, value in enumerate(own)]
        mask[n, before:end] = torch.tensor(own)
        if s.fault == "padding trained":
            mask[n, end:] = 1
        if s.fault == "first token":
            mask[n, before] = 0
        if s.fault == "every third rollout" and n % 3 == 2:
            mask[n] = 0
        if s.fault == "half batch" and n >= len(rollouts) // 2:
            mask[n] = 0
    if s.fault in ("mask late", "frozen late mask"):
        mask = mask.roll(1, 1)
        mask[:, 0] = 0
    if s.fault == "mask early":
        mask = mask.roll(-1, 1)
        mask[:, -1] = 0
    return ids, attention, mask


def logprobs(
    model: torch.nn.Module, rollouts: Sequence[ProbeRollout], s: Settings
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return log-probabilities of targets, their mask, and the entropies there, [B, T - 1]."""
    ids, attention, mask = _batch(rollouts, s)
    logits = model(input_ids=ids, attention_mask=attention).logits[:, :-1]
    temperature = 1.0 if s.fault == "temperature" else s.temperature
    logps = (logits / temperature).log_softmax(-1)
    entropy = -(logps.exp() * logps).sum(-1)
    return logps.gather(-1, ids[:, 1:, None])[..., 0], mask[:, 1:].float(), entropy


class PlainTrainer:
    """Trains a model in place.

    Args:
        model: the model.
        settings: what it does.
    """

    def __init__(self, model: torch.nn.Module, settings: Settings) -> None:
        self.model, self.settings = model, settings
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(not ("frozen" in settings.fault and "layers.0" in name))
        kinds = {"sgd": torch.optim.SGD, "momentum": torch.optim.SGD, "adamw": torch.optim.AdamW}
        options = {"momentum": 0.9} if settings.optimizer == "momentum" else {}
        decay = 0.05 if settings.fault == "weight decay" else 0.0
        self.optimizer = kinds[settings.optimizer](
            model.parameters(), lr=settings.rate, weight_decay=decay, **options
        )

    def checkpoint(self) -> Checkpoint:
        weights = {n: p.detach().clone() for n, p in self.model.named_parameters()}
        moments = {}
        if self.settings.optimizer == "adamw" and self.optimizer.state:
            moments = {
                name: self.optimizer.state[parameter]["exp_avg"].clone()
                for name, parameter in self.model.named_parameters()
            }
        return Checkpoint(weights, moments)

    def step(
        self,
        rollouts: Sequence[ProbeRollout],
        old: torch.Tensor | None = None,
        rows: Sequence[int] | None = None,
    ) -> None:
        """Take one optimizer step on some rows of a batch.

        Args:
            rollouts: the whole batch.
            old: log-probabilities of its targets when it was sampled; `None` if on policy.
            rows: which rows; all if `None`.
        """
        s = self.settings
        rows = list(range(len(rollouts))) if rows is None else list(rows)
        advantages = advantages_of(rollouts, s)
        size = s.micro_batch or len(rows)
        self.optimizer.zero_grad()
        for start in range(0, len(rows), size):
            here = rows[start : start + size]
            self._loss(rollouts, here, advantages[here], old).backward()
        if s.norm is not None:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), s.norm)
        self.optimizer.step()

    def _loss(
        self,
        rollouts: Sequence[ProbeRollout],
        rows: list[int],
        advantages: torch.Tensor,
        old: torch.Tensor | None,
    ) -> torch.Tensor:
        s = self.settings
        everything, masks, entropies = logprobs(self.model, rollouts, s)
        p, mask, entropy = everything[rows], masks[rows], entropies[rows]
        q = p.detach() if old is None or s.fault == "stale without ratio" else old[rows]
        ratio = torch.exp(p - q)
        each = ratio * advantages[:, None]
        if s.clip is not None:
            bounded = ratio.clamp(1 - s.clip, 1 + s.clip) * advantages[:, None]
            each = torch.minimum(each, bounded)
        if s.fault == "entropy bonus":
            each = each + 0.05 * entropy
        each = each * mask
        if s.fault == "end twice":
            final = torch.tensor([rollouts[n].completion_ids[-1] == END for n in rows])
            last = mask.flip(1).cumsum(1).flip(1) == 1
            each = each * (1 + (last * mask * final[:, None]))
        if s.fault == "discounted":
            each = each * 0.5 ** (mask.cumsum(1) - 1).clamp(min=0)
        if s.weighting == "own mean":
            total = (each.sum(1) / mask.sum(1)).sum()
        elif s.weighting == "micro mean":
            total = each.sum() / mask.sum()
        else:
            total = each.sum()
        return -total / len(rollouts)
