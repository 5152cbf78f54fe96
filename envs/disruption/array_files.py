"""Arrays in files: `.npy` files mapped into memory, and temporary ones of growing length."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import SpooledTemporaryFile
from threading import Lock
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from tokengym.envs.core.errors import DataError
from tokengym.rewards.arrays import Flags, Ints

_HEADERS = Lock()


def map_array(path: Path) -> npt.NDArray[Any]:
    """Map the array of a `.npy` file into memory, to be read only.

    `np.load` reads a header with `ast.literal_eval`, whose depth of recursion CPython 3.11 counts
    once for all threads: where two read at the same time, one of them may end in "SystemError: AST
    constructor recursion depth mismatch" (python/cpython#106905). So headers are read in turns.

    Raises:
        OSError: if the file cannot be read.
        DataError: if it holds no array of numbers or truth values, or is cut off.
    """
    try:
        with _HEADERS:
            array: npt.NDArray[Any] = np.load(path, mmap_mode="r")
        if array.dtype.kind not in "biuf":
            raise ValueError(f"it holds {array.dtype}")
    except (ValueError, EOFError) as error:
        raise DataError(f"{path} holds no array: {error}") from error
    return array


_HELD = 1 << 20
"""Bytes of a temporary array that are still held in memory."""


class ScratchArray:
    """A growing one-dimensional array in a temporary file, of which only slices are in memory."""

    def __init__(self, file: IO[bytes], dtype: npt.DTypeLike) -> None:
        self._file = file
        self._dtype = np.dtype(dtype)
        self._length = 0

    def __len__(self) -> int:
        """Return how many entries there are."""
        return self._length

    def __getitem__(self, run: slice) -> npt.NDArray[Any]:
        """Return entries `run.start` to `run.stop`, to be read only."""
        size = self._dtype.itemsize
        self._file.seek(int(run.start) * size)
        return np.frombuffer(self._file.read(int(run.stop - run.start) * size), self._dtype)

    def __setitem__(self, run: slice, values: npt.NDArray[Any]) -> None:
        """Write entries from `run.start` on."""
        self._file.seek(int(run.start) * self._dtype.itemsize)
        self._file.write(np.ascontiguousarray(values, self._dtype).data)
        self._length = max(self._length, int(run.start) + len(values))

    def append(self, values: npt.NDArray[Any]) -> None:
        """Write entries after the last."""
        self[self._length :] = values

    def read_runs(self, runs: Sequence[slice]) -> npt.NDArray[Any]:
        """Return the entries of several slices one after the other."""
        return np.concatenate([np.zeros(0, self._dtype), *(self[run] for run in runs)])

    def write_runs(self, runs: Sequence[slice], values: npt.NDArray[Any]) -> None:
        """Write entries, one after the other, into several slices."""
        at = 0
        for run in runs:
            self[run] = values[at : at + run.stop - run.start]
            at += run.stop - run.start

    def slices(self, most: int) -> list[slice]:
        """Return slices of at most `most` entries that make up the whole."""
        return slices_of(0, self._length, most)


Column = npt.NDArray[Any] | ScratchArray
"""Numbers that are read by slices."""
NewArray = Callable[[npt.DTypeLike], ScratchArray]
"""Returns an empty array of a type."""


@contextmanager
def scratch_arrays(folder: Path | None = None) -> Iterator[NewArray]:
    """Return a maker of temporary arrays, whose files go when the context ends.

    Args:
        folder: where the files lie; the system's place for temporary files if `None`.
    """
    place = None if folder is None else str(folder)
    with ExitStack() as files:
        yield lambda dtype: ScratchArray(
            files.enter_context(SpooledTemporaryFile(_HELD, dir=place)), dtype
        )


def slices_of(begin: int, end: int, most: int) -> list[slice]:
    """Return slices of at most `most` entries that make up a range."""
    return [slice(at, min(at + most, end)) for at in range(begin, end, most)]


def group_runs(begins: Ints, group: npt.NDArray[Any]) -> tuple[Ints, list[slice], Ints]:
    """Find the places of entries in a file that holds those of one group after the other's.

    Args:
        begins: where the next entry of each group goes, shape (g,).
        group: number of each entry's group, shape (n,).

    Returns:
        the order that puts entries by group, shape (n,); the slices of the file that they then
        fill; where each group goes on, shape (g,).
    """
    ends: Ints = begins + np.bincount(group, minlength=len(begins))
    ranges = zip(begins.tolist(), ends.tolist(), strict=True)
    runs = [slice(begin, end) for begin, end in ranges if begin < end]
    return np.argsort(group, kind="stable"), runs, ends


def sort_distinct(values: Ints) -> Ints:
    """Return the distinct values, ascending; `np.unique` would hash them first, which is slow."""
    ascending = np.sort(values)
    return ascending[np.diff(ascending, prepend=-1) > 0]


def find_sorted(values: Ints, wanted: Ints) -> tuple[Ints, Flags]:
    """Return the position of each of `wanted` among ascending values, and whether it is there."""
    if not len(values):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
    place = np.minimum(np.searchsorted(values, wanted), len(values) - 1)
    return place, values[place] == wanted
