"""Policies that ignore the paper: the same label, probabilities and claim every time."""

from collections.abc import Mapping
from itertools import product

import numpy as np

from tokengym.envs.core.play import Policy
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.disruption.labels import LABELS
from tokengym.envs.disruption.world import CHALLENGER, DisruptionWorld

_SHARES = (1 / 3, 0.5, 0.7)
_CLAIMS = ("", "CLAIM n_k >= 0", "CLAIM references >= 12")


def blind(world: World) -> Mapping[str, Policy]:
    """Return policies by their answer: a label, the probability on it, and perhaps a claim."""
    return {
        f"label {place + 1} at {share:.2f}, {claim or 'no claim'}": _saying(place, share, claim)
        for place, share, claim in product(range(3), _SHARES, _CLAIMS)
    }


def _saying(place: int, share: float, claim: str) -> Policy:
    report = " ".join(f"{share if k == place else (1 - share) / 2:.3f}" for k in range(3))

    def play(world: World, turn: Turn, rng: np.random.Generator) -> str:
        labels = [LABELS[target][place] for target in DisruptionWorld.cast(world).targets]
        if turn.role == CHALLENGER:
            return f"ARGUE {labels[0]}\n{claim}".strip()
        numbers = " ".join([report] * len(labels))
        return f"LABEL {' '.join(labels)}\nP {numbers}\n{claim}".strip()

    return play
