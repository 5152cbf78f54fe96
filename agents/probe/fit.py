"""How far an update is from what weights of tokens would have made of it, in the update's space."""

from collections.abc import Sequence

import numpy as np

from tokengym.agents.probe.scores import ScoreTable
from tokengym.rewards.arrays import Flags, Floats

FITS = 0.002
"""Share of an update that a hypothesis that holds may leave."""


def misfit_of(change: Floats, direction: Floats) -> float:
    """Return the share of a vector of norm 1 that a positive multiple of a direction leaves."""
    size, along = float(direction @ direction), float(change @ direction)
    if size == 0.0 or along <= 0.0:
        return 1.0
    return float(np.linalg.norm(change - along / size * direction))


class Fit:
    """An update, compared with scores.

    Args:
        table: scores, [P, K].
        change_P: the update, of any size but 0.
    """

    def __init__(self, table: ScoreTable, change_P: Floats) -> None:
        self.table = table
        self.change_P = change_P / np.linalg.norm(change_P)
        self.product_K = table.scores_PK.T @ self.change_P

    def weights_K(self) -> Floats:
        """Return the weights of tokens by least squares, of an update of size 1."""
        return np.asarray(self.table.inverse_KK @ self.product_K)

    @property
    def unexplained(self) -> float:
        """The share of the update that no weights of these tokens explain."""
        rest_P = self.change_P - self.table.scores_PK @ self.weights_K()
        return float(np.linalg.norm(rest_P))

    def misfit(self, direction_P: Floats) -> float:
        """Return the share of the update that a direction leaves; 1 if it points away or is 0."""
        return misfit_of(self.change_P, direction_P)

    def misfits(self, weights: Sequence[Floats]) -> Floats:
        """Return the share of the update that each vector of weights, times a factor, leaves.

        It is 1 where the factor that fits best is not positive.
        """
        weights_KH = np.stack(weights, axis=1)
        along_H = self.product_K @ weights_KH
        sizes_H = (weights_KH * (self.table.gram_KK @ weights_KH)).sum(axis=0)
        safe_H = np.where(sizes_H > 0, sizes_H, 1.0)
        left_H = np.where((sizes_H > 0) & (along_H > 0), 1.0 - along_H**2 / safe_H, 1.0)
        return np.asarray(np.sqrt(np.maximum(left_H, 0.0)))

    def outside(self, weights_K: Floats, free_K: Flags) -> tuple[float, float, float]:
        """Fit a factor of given weights where those of some columns may be anything.

        Returns:
            The factor, the share of the update that is left, and the share that the factor's part
            carries, apart from what the free columns could have made.
        """
        gram_KK, held_K = self.table.gram_KK, ~free_K
        inside_CC = np.linalg.pinv(gram_KK[np.ix_(free_K, free_K)], rcond=1e-13, hermitian=True)
        image_K = gram_KK[:, held_K] @ weights_K[held_K]
        along = float(self.product_K[held_K] @ weights_K[held_K])
        along -= float(self.product_K[free_K] @ inside_CC @ image_K[free_K])
        size = float(image_K[held_K] @ weights_K[held_K])
        size -= float(image_K[free_K] @ inside_CC @ image_K[free_K])
        rest = 1.0 - float(self.product_K[free_K] @ inside_CC @ self.product_K[free_K])
        if size <= 0.0:
            return 0.0, 1.0, 0.0
        left = float(np.sqrt(max(rest - along**2 / size, 0.0)))
        return along / size, left, float(np.sqrt(along**2 / size))

    def misfits_beside(
        self, weights: Sequence[Floats], extra_P: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Return misfits beside a direction (not 0), its factors, and those of the weights."""
        weights_KH = np.stack(weights, axis=1)
        size = float(extra_P @ extra_P)
        with_change = float(extra_P @ self.change_P)
        with_K = self.table.scores_PK.T @ extra_P
        across_H = with_K @ weights_KH
        along_H = self.product_K @ weights_KH - across_H * with_change / size
        sizes_H = (weights_KH * (self.table.gram_KK @ weights_KH)).sum(axis=0) - across_H**2 / size
        apart_H = sizes_H > 1e-12 * max(1.0, float(np.abs(sizes_H).max(initial=0.0)))
        factor_H = np.where(apart_H, along_H / np.where(apart_H, sizes_H, 1.0), 0.0)
        left_H = 1.0 - with_change**2 / size - factor_H * along_H
        extra_H = (with_change - factor_H * across_H) / size
        return np.sqrt(np.maximum(left_H, 0.0)), extra_H, factor_H

    def cosine(self, weights_K: Floats) -> float:
        """Return the cosine of the update and the one that weights would make."""
        direction_P = self.table.scores_PK @ weights_K
        size = float(np.linalg.norm(direction_P))
        return float(direction_P @ self.change_P / size) if size else 0.0
