"""Training runs of one base model: forward, backward, optimizer step and their state.

Compute thread only. A request that fails leaves its run unchanged.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tinker.types import AdamParams

from tokengym.agents.service.engine.adapters import LoraAdapter, LoraSpec
from tokengym.agents.service.engine.compute_thread import Pieces
from tokengym.agents.service.engine.forward import Indices, PackedForward, Tokens, check_ids
from tokengym.agents.service.engine.linear import lora_layers
from tokengym.agents.service.engine.losses import Loss, loss_named
from tokengym.agents.service.engine.parking import Parking
from tokengym.agents.service.errors import BadRequestError, UnknownResourceError

# Within them, and if a step decays weights by no more than themselves, weights stay finite: Adam
# divides by eps where a gradient is zero, and by 1 - beta in its first step.
ADAM_RANGES = {
    "learning_rate": (0.0, 1e3),
    "beta1": (0.0, 1 - 1e-6),
    "beta2": (0.0, 1 - 1e-6),
    "eps": (1e-30, 1e3),
    "weight_decay": (0.0, 1e3),
    "grad_clip_norm": (0.0, 1e30),
}


@dataclass(frozen=True)
class Datum:
    """One training sequence: token ids int32 [n] and loss inputs [n] or [n, k]."""

    tokens: Tokens
    inputs: Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class LossRequest:
    """A forward_backward request."""

    data: Sequence[Datum]
    loss_fn: str
    config: Mapping[str, float | str] = field(default_factory=dict)
    forward_only: bool = False

    @cached_property
    def loss(self) -> Loss:
        """The loss that `loss_fn` names; raises as `loss_named` does."""
        return loss_named(self.loss_fn)

    @cached_property
    def settings(self) -> Mapping[str, float]:
        """The loss's settings under `config`; raises as `Loss.configured` does."""
        return self.loss.configured(self.config)


@dataclass(frozen=True)
class LossResult:
    """Log-probabilities and losses of every datum's target tokens, and the summed metrics."""

    logprobs: list[NDArray[np.float32]]
    losses: list[NDArray[np.float32]]
    metrics: dict[str, float]


class _Targets:
    """The targets of one batch, all data in a row, [M] each."""

    def __init__(self, request: LossRequest, node_of: Mapping[int, Indices]) -> None:
        data = {member: request.data[member] for member in node_of}
        names = {name for datum in data.values() for name in datum.inputs} - {"target_tokens"}
        names.add(scale := request.loss.scale)
        nodes = [
            np.repeat(node_of[m], datum.inputs["target_tokens"].size // len(datum.tokens))
            for m, datum in data.items()
        ]
        counts = list(map(len, nodes))
        self.nodes = np.concatenate(nodes)
        self.members = np.repeat(np.arange(len(data)), counts)
        self.tokens = np.concatenate([d.inputs["target_tokens"].ravel() for d in data.values()])
        self.inputs = {
            name: np.concatenate([_input(datum, name, scale) for datum in data.values()])
            for name in names
        }
        self.logprobs, self.losses = np.empty((2, sum(counts)), np.float32)


class Trainer:
    """All training runs of one base model.

    Args:
        forward: runs the model.
        vocabulary: tokens it knows.
        context: tokens it can read.

    Attributes:
        runs: the runs by id.
        parking: by which they give way to others.
    """

    def __init__(self, forward: PackedForward, vocabulary: int, context: int) -> None:
        self._forward = forward
        self.parking = Parking()
        self._vocabulary = vocabulary
        self._context = context
        self.runs: dict[str, LoraAdapter] = {}

    def create(self, run_id: str, spec: LoraSpec) -> None:
        """Create a run with a fresh adapter."""
        if run_id in self.runs:
            raise BadRequestError(f"training run must be new, {run_id!r} exists")
        self.parking.use(run_id, run := LoraAdapter(self._forward.model, spec))
        self.runs[run_id] = run

    def delete(self, run_id: str) -> None:
        """Free a run, if it is held."""
        self.runs.pop(run_id, None)
        self.parking.remove(run_id)
        # It may be the one whose tensors they hold.
        for layer in lora_layers(self._forward.model).values():
            layer.adapter = None

    def run(self, run_id: str) -> LoraAdapter:
        """Return a run, which is in memory until the operation ends or pauses.

        Raises:
            UnknownResourceError: if there is none.
        """
        if run_id not in self.runs:
            raise UnknownResourceError(f"training run {run_id!r} is not held by this service")
        self.parking.use(run_id, self.runs[run_id])
        return self.runs[run_id]

    def forward_backward(self, run_id: str, request: LossRequest) -> Pieces[LossResult]:
        """Compute the targets' log-probabilities and losses; unless forward_only, add gradients.

        A piece is a batch that fits into the memory. Operations on other runs may come in between.
        """
        run = self.run(run_id)
        self._check(request)
        held = run.parameters.items()
        run.former = {n: None if p.grad is None else p.grad.clone() for n, p in held}
        try:
            return (yield from self._compute(run_id, run, request))
        except BaseException:
            for name, parameter in held:
                parameter.grad = run.former[name]
            raise
        finally:
            run.former = {}

    def optim_step(self, run_id: str, step: AdamParams) -> dict[str, float]:
        """Take one AdamW step with the accumulated gradients, then clear them.

        Raises:
            BadRequestError: if a setting is out of range or the gradient is not finite; weights
                and optimizer stay as they were.
        """
        # One bad step would ruin the weights for good.
        for name, (low, high) in ADAM_RANGES.items():
            if not low <= (value := getattr(step, name)) <= high:
                raise BadRequestError(f"{name} must be from {low:g} to {high:g}, got {value}")
        if (decay := step.learning_rate * step.weight_decay) > 1:
            raise BadRequestError(
                f"learning_rate times weight_decay must be at most 1, got {decay:g}"
            )
        run = self.run(run_id)
        gradients = [p.grad for p in run.parameters.values() if p.grad is not None]
        norm = float(torch.nn.utils.get_total_norm(gradients)) if gradients else 0.0
        if not np.isfinite(norm):
            run.optimizer.zero_grad(set_to_none=True)
            raise BadRequestError(
                f"optim_step needs a finite gradient, its norm is {norm}; the gradient was "
                "cleared and the weights were left as they were"
            )
        if step.grad_clip_norm > 0.0 and norm > step.grad_clip_norm:
            for gradient in gradients:
                gradient.mul_(step.grad_clip_norm / norm)
        for group in run.optimizer.param_groups:
            group.update(
                lr=step.learning_rate,
                betas=(step.beta1, step.beta2),
                eps=step.eps,
                weight_decay=step.weight_decay,
            )
        run.optimizer.step()
        run.optimizer.zero_grad(set_to_none=True)
        return {"optim/grad_norm": norm}

    def _check(self, request: LossRequest) -> None:
        loss, _ = request.loss, request.settings
        if not request.data:
            raise BadRequestError("data must hold at least one datum, got none")
        for index, datum in enumerate(request.data):
            length = len(datum.tokens)
            if not 1 <= length <= self._context:
                raise BadRequestError(
                    f"datum {index}: model_input must have 1 to {self._context} tokens, "
                    f"got {length}"
                )
            loss.check(datum.inputs, length, index)
            for name, ids in (
                ("model_input", datum.tokens),
                ("target_tokens", datum.inputs["target_tokens"]),
            ):
                check_ids(f"datum {index}: {name}", ids, self._vocabulary)

    def _compute(self, run_id: str, run: LoraAdapter, request: LossRequest) -> Pieces[LossResult]:
        count = len(request.data)
        logprobs: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * count
        losses: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * count
        total = 0.0
        learning = partial(torch.set_grad_enabled, not request.forward_only)
        sequences = [datum.tokens for datum in request.data]
        with learning():
            batches = self._forward.plan(sequences)
        for groups in batches:
            yield
            self.parking.use(run_id, run)
            with learning():
                run.attach()
                with self._forward.running(groups, sequences) as (node_of, hidden):
                    targets = _Targets(request, node_of)
                    self._add_gradients(request, targets, hidden)
                total += float(targets.losses.sum(dtype=np.float64))
                at = 0
                for member in node_of:
                    shape = request.data[member].inputs["target_tokens"].shape
                    end = at + int(np.prod(shape))
                    logprobs[member] = targets.logprobs[at:end].reshape(shape)
                    losses[member] = targets.losses[at:end].reshape(shape)
                    at = end
        return LossResult(logprobs, losses, {"loss:sum": total})

    def _add_gradients(self, request: LossRequest, targets: _Targets, hidden: torch.Tensor) -> None:
        """Fill in the targets' log-probabilities and losses; add the gradients of their sum."""
        # The layers' backward pass runs once, after that of all pieces of the logits.
        leaf = hidden.detach().requires_grad_(hidden.requires_grad)
        if request.loss.of_sequences is not None:
            with torch.no_grad():
                list(self._log_probabilities(targets, leaf, np.arange(len(targets.nodes))))
            targets.inputs |= request.loss.of_sequences(
                targets.logprobs, targets.inputs, targets.members
            )
        learned = request.loss.has_gradient(targets.inputs)
        with torch.set_grad_enabled(hidden.requires_grad):
            self._add_losses(request, targets, leaf, np.flatnonzero(learned))
        if leaf.grad is not None:
            hidden.backward(leaf.grad)
        # After the backward pass, which frees the activations.
        with torch.no_grad():
            self._add_losses(request, targets, leaf, np.flatnonzero(~learned))

    def _add_losses(
        self, request: LossRequest, targets: _Targets, hidden: torch.Tensor, chosen: Indices
    ) -> None:
        """Fill in the chosen targets' log-probabilities and losses; add gradients if enabled."""
        for at, picked in self._log_probabilities(targets, hidden, chosen):
            inputs = {
                name: torch.from_numpy(values[at]).to(picked)
                for name, values in targets.inputs.items()
            }
            each = request.loss.of_tokens(picked, inputs, request.settings)
            if each.requires_grad:
                each.sum().backward()
            targets.losses[at] = each.detach().cpu().numpy()

    def _log_probabilities(
        self, targets: _Targets, hidden: torch.Tensor, chosen: Indices
    ) -> Iterator[tuple[Indices, torch.Tensor]]:
        """Fill in the chosen targets' log-probabilities; yields them in pieces with their place."""
        for index, rows, logits in self._forward.logits(hidden, targets.nodes[chosen]):
            at = chosen[index]
            picked = torch.log_softmax(logits, dim=-1)[rows, targets.tokens[at]]
            targets.logprobs[at] = picked.detach().cpu().numpy()
            yield at, picked


def _input(datum: Datum, name: str, scale: str) -> NDArray[Any]:
    if name in datum.inputs:
        return datum.inputs[name].ravel()
    if name == scale:
        return np.ones(datum.inputs["target_tokens"].size, np.float32)
    raise BadRequestError(f"{name} must be in every datum's loss_fn_inputs or in none")
