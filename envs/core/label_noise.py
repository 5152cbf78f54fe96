"""The option `label` of worlds whose outcomes are drawn: how much noise a score has."""

from tokengym.envs.core.errors import OptionError

OUTCOMES = 64
"""Most outcomes a label averages."""


def outcomes_of_label(label: str) -> int:
    """Return how many drawn outcomes a label averages: 1 of `outcome` and `expected`.

    Args:
        label: `outcome`, what happened; `replay:K`, the mean over K outcomes, and the actual one
            is the first; or `expected`, the exact probabilities.

    Raises:
        OptionError: if there is no such label.
    """
    if label in ("outcome", "expected"):
        return 1
    kind, _, count = label.partition(":")
    if kind == "replay" and count.isascii() and count.isdigit() and 1 <= int(count) <= OUTCOMES:
        return int(count)
    raise OptionError(
        f"label must be 'outcome', 'expected' or 'replay:K' with K in 1..{OUTCOMES}, got {label!r}"
    )
