"""How a process that runs for hours keeps its memory."""

import atexit
import ctypes
import gc
import sys

_COLLECTIONS = (50_000, 20, 50)
_M_ARENA_MAX = -8


def set_up_memory() -> None:
    """Collect garbage rarely, and take all memory from one heap where the C library is glibc.

    What a command imports stays: rare collections save a second or two. Each thread that draws
    Tasks otherwise has a heap of its own, which keeps what was freed in it: a quarter of the
    memory of thousands of episodes. Call it before threads start.
    """
    gc.set_threshold(*_COLLECTIONS)
    atexit.register(gc.freeze)  # No collection at the end.
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none
        if mallopt is not None:
            mallopt(_M_ARENA_MAX, 1)
