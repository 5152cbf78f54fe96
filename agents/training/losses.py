"""The registry of the losses on rollouts: one entry each, from which everything else follows.

The choices of `--loss`, the check of `--loss-option`, the table in docs/training.md and the tests
are derived from `LOSSES`. With p the log-probability of a token, q the one it was sampled with, A
its advantage and r = exp(p - q), the service computes them; see `agents/service/engine/losses.py`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from tokengym.envs.core.errors import OptionError

IMITATION: Final = "cross_entropy"
"""The loss on existing data, which has no advantages."""

_BOUNDS = {"clip_low_threshold": 0.8, "clip_high_threshold": 1.2}


@dataclass(frozen=True)
class TokenLoss:
    """A loss of Tinker's on sampled tokens.

    Attributes:
        formula: the loss of a token.
        off_policy: whether it bounds what samples of earlier weights do.
        arguments: names of its settings with the service's defaults, numbers of at least 0; `None`
            for one that must be given.
    """

    formula: str
    off_policy: bool = False
    arguments: Mapping[str, float | None] = field(default_factory=dict)

    def check(self, name: str, given: Mapping[str, Any]) -> None:
        """Refuse arguments that it does not take.

        Args:
            name: its own, for the message.
            given: by name.

        Raises:
            OptionError: if one is unknown, missing, or no number of at least 0.
        """
        for argument, value in given.items():
            if argument not in self.arguments:
                known = list(self.arguments) or "none"
                raise OptionError(f"--loss-option of {name} must be one of {known}, got {argument}")
            number = isinstance(value, int | float) and math.isfinite(value)
            if not number or value < 0:
                raise OptionError(f"--loss-option {argument} must be at least 0, got {value!r}")
        for argument, usual in self.arguments.items():
            if usual is None and argument not in given:
                raise OptionError(f"--loss {name} needs --loss-option {argument}=NUMBER, got none")


LOSSES: Mapping[str, TokenLoss] = MappingProxyType(
    {
        "importance_sampling": TokenLoss("-r A"),
        "ppo": TokenLoss("-min(r A, clip(r) A)", off_policy=True, arguments=_BOUNDS),
        "cispo": TokenLoss("-stop_gradient(clip(r)) p A", off_policy=True, arguments=_BOUNDS),
        "dro": TokenLoss("-p A + beta / 2 (p - q)^2", off_policy=True, arguments={"beta": None}),
    }
)
"""All losses by the name that options take; the first is the default for samples of the policy as
it is, the first that bounds ratios for samples of earlier weights."""


def default_loss(*, off_policy: bool) -> str:
    """Return the loss that a job takes where none is named."""
    return next(name for name, loss in LOSSES.items() if loss.off_policy or not off_policy)
