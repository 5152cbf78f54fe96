"""How a process that runs for hours keeps its memory."""

import atexit
import ctypes
import gc
import sys

_COLLECTIONS = (50_000, 20, 50)
_M_ARENA_MAX, _M_MMAP_THRESHOLD, _M_TRIM_THRESHOLD = -8, -3, -1
_LARGEST_KEPT = 1 << 30


def set_up_memory() -> None:
    """Collect garbage rarely, and take all memory from one heap.

    What a command imports stays: rare collections save a second or two.
    """
    gc.set_threshold(*_COLLECTIONS)
    atexit.register(gc.freeze)  # No collection at the end.
    use_one_heap()


def use_one_heap() -> None:
    """Take all memory from one heap where the C library is glibc; call it before threads start.

    Each thread otherwise has a heap of its own, which keeps what was freed in it: a quarter of the
    memory of thousands of episodes, and a seventh of that of a service.
    """
    _set((_M_ARENA_MAX, 1))


def keep_freed_memory() -> None:
    """Keep freed memory for later where the C library is glibc: for a process that computes.

    A step of training allocates and frees gigabytes. Taken from the system anew, every page costs a
    fault: a tenth of the step's time on a virtual machine.
    """
    _set((_M_MMAP_THRESHOLD, _LARGEST_KEPT), (_M_TRIM_THRESHOLD, (1 << 31) - 1))


def _set(*parameters: tuple[int, int]) -> None:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:  # Other C libraries have none.
        for name, value in parameters:
            mallopt(name, value)
