"""The update between two checkpoints, at the coordinates, and the rounding that is in it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from tokengym.agents.probe.policy import Checkpoint
from tokengym.envs.core.errors import DataError
from tokengym.rewards.arrays import Flags, Floats, Ints

WEIGHTS, MOMENTS = "weights", "the optimizer's moments"


@dataclass(frozen=True)
class ProbedUpdate:
    """A direction in the space of weights, which follows the gradient.

    Attributes:
        change_P: at each coordinate, up to a positive factor.
        size: its norm; 0 if nothing moved.
        spacing_P: distance of the stored numbers to their neighbours.
        moving_P: which coordinates belong to parameters that moved.
        exact: whether everything was stored in float32 or better.
        source: what it was read off: `WEIGHTS` or `MOMENTS`.
    """

    change_P: Floats
    size: float
    spacing_P: Floats
    moving_P: Flags
    exact: bool
    source: str

    @property
    def rounding(self) -> float:
        """Share of the change that the rounding of stored numbers explains."""
        steps = float(np.linalg.norm(self.spacing_P)) / np.sqrt(12.0)
        return steps / self.size if self.size else np.inf

    def at(self, rows_P: Flags) -> "ProbedUpdate":
        """Return the update at some of the coordinates."""
        change_P = self.change_P[rows_P]
        size = float(np.linalg.norm(change_P))
        parts = size, self.spacing_P[rows_P], self.moving_P[rows_P]
        return ProbedUpdate(change_P, *parts, self.exact, self.source)


def shared(before: Checkpoint, after: Checkpoint) -> list[str]:
    """Return the names of the parameters that two checkpoints have.

    Raises:
        DataError: if the checkpoints are of different models.
    """
    names = [name for name in after.weights if name in before.weights]
    if not names:
        raise DataError("the checkpoints must share parameters, they have no name in common")
    for name in names:
        shapes = tuple(before.weights[name].shape), tuple(after.weights[name].shape)
        if shapes[0] != shapes[1]:
            raise DataError(f"{name} must keep its shape, got {shapes[0]} and {shapes[1]}")
    return names


def update(before: Checkpoint, after: Checkpoint, places: Mapping[str, Ints]) -> ProbedUpdate:
    """Return the update at the coordinates.

    Where both the checkpoint after and, unless it is the first step, the one before have moments,
    the gradient is read off those: steps of Adam, or with momentum, are not proportional to it.

    Args:
        before: the update.
        after: it.
        places: the coordinates in each parameter.
    """
    stored, source = (after.moments, MOMENTS) if after.moments else (after.weights, WEIGHTS)
    changes, steps, moves = [], [], []
    for name, at in places.items():
        if after.moments:
            change = _gradient(before, after, name)
        else:
            change = after.weights[name].double() - before.weights[name].double()
        changes.append(change.flatten().numpy()[at])
        steps.append(_spacing(stored.get(name, torch.zeros_like(change))).flatten().numpy()[at])
        moves.append(np.full(len(at), bool(change.any())))
    change_P = np.concatenate([np.zeros(0), *changes])
    moving_P = np.concatenate([np.zeros(0, np.bool_), *moves])
    exact = all(stored[n].dtype in (torch.float32, torch.float64) for n in places if n in stored)
    size = float(np.linalg.norm(change_P))
    spacing_P = np.concatenate([np.zeros(0), *steps])
    return ProbedUpdate(change_P, size, spacing_P, moving_P, exact, source)


def _gradient(before: Checkpoint, after: Checkpoint, name: str) -> torch.Tensor:
    """Return minus the gradient, from the moments before and after a step; 0 if there are none."""
    if name not in after.moments:
        return torch.zeros_like(after.weights[name], dtype=torch.double)
    now = after.moments[name].double()
    if name in before.moments:
        now = now - after.beta * before.moments[name].double()
    return -now / (1 - after.beta)


def _spacing(tensor: torch.Tensor) -> torch.Tensor:
    """Return the distance of each number to its neighbour in its own format."""
    bits = torch.finfo(tensor.dtype).eps
    exponents = torch.frexp(tensor.double())[1].double() - 1
    return torch.where(tensor == 0, 0.0, bits * torch.exp2(exponents))
