"""Windows of a user's time series: they do not overlap, each is in exactly one split."""

from collections.abc import Iterator, Mapping, Sequence

from tokengym.envs.core.errors import DataError
from tokengym.envs.core.immutable import Immutable
from tokengym.envs.core.seeding import SPLITS

_SHARE_HELD_OUT = 0.15


class Windows(Immutable, Mapping[int, str]):
    """The split that each window belongs to, by the number of its first entry, ascending.

    Args:
        starts: first entries of the windows. In this order, the last 15 % go to test, those before
            to validation (at least one each) and the rest to train.
        kind: what a window is, for the error.

    Raises:
        DataError: if there are fewer windows than splits.
    """

    def __init__(self, starts: Sequence[int], kind: str) -> None:
        if len(starts) < len(SPLITS):
            raise DataError(
                f"the data hold {len(starts)} {kind}; {len(SPLITS)} are needed, one for each split"
            )
        held_out = max(1, round(_SHARE_HELD_OUT * len(starts)))
        splits = ["train"] * (len(starts) - 2 * held_out)
        splits += ["validation"] * held_out + ["test"] * held_out
        self._splits = dict(sorted(zip(starts, splits, strict=True)))
        self.starts = tuple(self._splits)

    def __getitem__(self, start: int) -> str:
        """Return the split of the window that begins at entry `start`."""
        return self._splits[start]

    def __iter__(self) -> Iterator[int]:
        """Iterate over the first entries, ascending."""
        return iter(self._splits)

    def __len__(self) -> int:
        """Return the number of windows."""
        return len(self._splits)
