"""Updates that a trainer's settings document, in a form to compare with the measured update."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tokengym.agents.probe.batch import ProbeBatch
from tokengym.rewards.arrays import Flags, Floats


class Part(NamedTuple):
    """One choice.

    Attributes:
        formula: what it comes to.
        setting: which documents it.
        bias: short name of what keeps it from being unbiased; empty if it is.
    """

    formula: str
    setting: str
    bias: str = ""


@dataclass(frozen=True)
class DocumentedUpdate:
    """An update by documentation, up to one positive factor.

    Attributes:
        parts: the choices that it is made of.
        policy_K: weights of tokens by the policy's loss.
        penalty_K: those of a penalty beside it.
        extra_P: a direction beside both that is no weight of tokens.
        seen_N: which rollouts the step was taken on; all if `None`.
    """

    parts: Sequence[Part]
    policy_K: Floats
    penalty_K: Floats
    extra_P: Floats
    seen_N: Flags | None = None

    @property
    def formula(self) -> str:
        """The formulas of its parts."""
        return ", ".join(part.formula for part in self.parts)

    @property
    def biases(self) -> tuple[str, ...]:
        """Short names of its biases."""
        return tuple(dict.fromkeys(part.bias for part in self.parts if part.bias))

    @property
    def settings(self) -> str:
        """The settings that document its biases, or all of them if there are none."""
        known = [part.setting for part in self.parts if part.bias or not self.biases]
        *first, last = dict.fromkeys(known)
        return f"{', '.join(first)} and {last} document" if first else f"{last} documents"

    def at(self, rows_P: Flags) -> "DocumentedUpdate":
        """Return the update at some of the coordinates."""
        return replace(self, extra_P=self.extra_P[rows_P])

    def direction(self, batch: ProbeBatch) -> Floats:
        """Return the update at the coordinates of a batch."""
        return np.asarray(batch.table.scores_PK @ (self.policy_K + self.penalty_K) + self.extra_P)
