"""Errors for a caller's mistake. Each names the value and the rule, and is also a built-in error.

A model's bad reply is never an error: it is data, answered by the next observation and the reward.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


class TokengymError(Exception):
    """The base of every error this package raises on purpose."""


class UnknownWorldError(TokengymError, LookupError):
    """No world is registered under the id."""


class OptionError(TokengymError, ValueError):
    """A level, split, index or option that the world does not take."""


class TaskError(TokengymError, ValueError):
    """A Task that is damaged, or that belongs to another world."""


class EpisodeStateError(TokengymError, RuntimeError):
    """A reply before the start or after the end of an episode."""


class RoleError(TokengymError, ValueError):
    """A role that the world does not have, or one whose turn it is not."""


class TokenError(TokengymError, ValueError):
    """An action that is not a one-dimensional integer array over the codec's vocabulary."""


class DataError(TokengymError, ValueError):
    """Input data that cannot be used; the message names file, row and reason."""


def did_you_mean(value: object, known: Iterable[object], alike: float = 0.5) -> str:
    """Return ` (did you mean 'easy'?)` of the known name that is most like a value, if one is."""
    near = get_close_matches(str(value), [*map(str, known)], n=1, cutoff=alike)
    return f" (did you mean {near[0]!r}?)" if near else ""


def require_one_of(name: str, value: object, known: Sequence[object]) -> None:
    """Refuse an argument that is not one of the known values.

    Raises:
        OptionError: naming the argument, its value and the known ones.
    """
    if value not in known:
        raise OptionError(
            f"{name} must be one of {[*known]}, got {value!r}{did_you_mean(value, known)}"
        )
