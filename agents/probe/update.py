"""The update between two checkpoints, at the coordinates, and the rounding that is in it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from tokengym.agents.probe.policy import Checkpoint
from tokengym.envs.core.errors import DataError
from tokengym.rewards.arrays import Floats, Ints

WEIGHTS, MOMENTS = "weights", "Adam's first moments"


@dataclass(frozen=True)
class ProbedUpdate:
    """A direction in the space of weights, which follows the gradient.

    Attributes:
        change_P: at each coordinate, up to a positive factor.
        size: its norm; 0 if nothing moved.
        rounding: share of the change that the rounding of stored numbers explains.
        exact: whether everything was stored in float32 or better.
        source: what it was read off: `WEIGHTS` or `MOMENTS`.
    """

    change_P: Floats
    size: float
    rounding: float
    exact: bool
    source: str


def moved(before: Checkpoint, after: Checkpoint) -> tuple[list[str], list[str]]:
    """Return the names of the parameters that moved and of those that did not.

    Raises:
        DataError: if the checkpoints are of different models.
    """
    shared = [name for name in after.weights if name in before.weights]
    if not shared:
        raise DataError("the checkpoints must share parameters, they have no name in common")
    for name in shared:
        shapes = tuple(before.weights[name].shape), tuple(after.weights[name].shape)
        if shapes[0] != shapes[1]:
            raise DataError(f"{name} must keep its shape, got {shapes[0]} and {shapes[1]}")
    still = [name for name in shared if torch.equal(before.weights[name], after.weights[name])]
    return [name for name in shared if name not in still], still


def update(before: Checkpoint, after: Checkpoint, places: Mapping[str, Ints]) -> ProbedUpdate:
    """Return the update at the coordinates.

    Where both the checkpoint after and, unless it is the first step, the one before have Adam's
    first moments, the gradient is read off those: Adam's own step is not proportional to it.

    Args:
        before: the update.
        after: it.
        places: the coordinates in each parameter.
    """
    moved(before, after)
    if after.moments:
        values = {name: _gradient(before, after, name) for name in places}
        tensors, source = list(after.moments.values()), MOMENTS
    else:
        values = {
            name: after.weights[name].double() - before.weights[name].double() for name in places
        }
        tensors, source = [after.weights[name] for name in places], WEIGHTS
    change_P = np.concatenate(
        [values[name].flatten().numpy()[places[name]] for name in places] or [np.zeros(0)]
    )
    size = float(np.linalg.norm(change_P))
    stored = after.moments if after.moments else after.weights
    steps = [_spacing(stored[name]).flatten().numpy()[places[name]] for name in places]
    rounding = float(np.sqrt(sum((step**2).sum() for step in steps) / 12.0))
    exact = all(tensor.dtype in (torch.float32, torch.float64) for tensor in tensors)
    return ProbedUpdate(change_P, size, rounding / size if size else np.inf, exact, source)


def _gradient(before: Checkpoint, after: Checkpoint, name: str) -> torch.Tensor:
    """Return minus the gradient, from Adam's first moments before and after a step."""
    now = after.moments[name].double()
    if name in before.moments:
        now = now - after.beta * before.moments[name].double()
    return -now / (1 - after.beta)


def _spacing(tensor: torch.Tensor) -> torch.Tensor:
    """Return the distance of each number to its neighbour in its own format."""
    bits = torch.finfo(tensor.dtype).eps
    exponents = torch.frexp(tensor.double())[1].double() - 1
    return torch.where(tensor == 0, 0.0, bits * torch.exp2(exponents))
