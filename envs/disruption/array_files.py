"""Arrays in `.npy` files, mapped into memory by any number of threads at once."""

import re
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from tokengym.envs.core.errors import DataError

_HEADER = re.compile(
    r"\{'descr': '(?P<dtype>[<>|=][a-z][0-9]+)', 'fortran_order': (?P<fortran>True|False), "
    r"'shape': \((?P<shape>[0-9, ]*)\), \}\s*"
)


def map_array(path: Path) -> npt.NDArray[Any]:
    """Map the array of a `.npy` file into memory, to be read only.

    `np.load` reads a header with `ast.literal_eval`, whose depth of recursion CPython 3.11 counts
    once for all threads: where two read at the same time, one of them may end in "SystemError: AST
    constructor recursion depth mismatch" (python/cpython#106905). So headers are matched here.

    Raises:
        OSError: if the file cannot be read.
        DataError: if it holds no array of numbers or truth values, or is cut off.
    """
    try:
        with path.open("rb") as file:
            length = 2 if npy.read_magic(file) == (1, 0) else 4
            size = int.from_bytes(file.read(length), "little")
            header = _HEADER.fullmatch(file.read(size).decode("latin1"))
            start = file.tell()
        if header is None:
            raise ValueError("its header is not one of a plain array")
        shape = tuple(int(axis) for axis in header["shape"].split(",") if axis.strip())
        order: Literal["C", "F"] = "F" if header["fortran"] == "True" else "C"
        return np.memmap(path, np.dtype(header["dtype"]), "r", start, shape, order)
    except ValueError as error:
        raise DataError(f"{path} holds no array: {error}") from error
