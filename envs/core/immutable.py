"""`Immutable`: a mixin for data that copies of a world share."""

from typing import Any, Self


class Immutable:
    """A value that never changes once made, all the way down: a deep copy is the value itself."""

    __slots__ = ()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the value itself."""
        return self
