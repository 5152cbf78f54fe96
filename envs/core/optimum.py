"""The best possible return of a Task."""

from typing import NamedTuple


class Optimum(NamedTuple):
    """The best expected return of a Task, over everything that no policy can know.

    Attributes:
        value: the return, or an upper bound of it.
        exact: `False` if it is a proved bound that no policy need reach.
    """

    value: float
    exact: bool
