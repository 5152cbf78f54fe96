"""Garbage collection and heap settings for processes that run for hours."""

import atexit
import ctypes
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_COLLECTIONS = (50_000, 20, 50)
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
_APART, _LARGEST = 1 << 22, 1 << 25
"""Bytes from which blocks are taken from the system, within `large_blocks_apart` and after it."""


def set_up_memory() -> None:
    """Collect garbage rarely, and take all memory from one heap.

    The objects that imports create are never freed, so collecting rarely saves a second or two.
    """
    gc.set_threshold(*_COLLECTIONS)
    atexit.register(gc.freeze)  # No collection at the end.
    use_one_heap()


def use_one_heap() -> None:
    """Take all memory from one heap where the C library is glibc; call it before threads start.

    Each thread otherwise has a heap of its own, which keeps what was freed in it: a quarter of the
    memory of thousands of episodes, and a seventh of that of a service.
    """
    if (mallopt := _function("mallopt")) is not None:
        mallopt(_M_ARENA_MAX, 1)


def return_free_pages() -> None:
    """Return the pages of freed blocks to the system where the C library is glibc.

    It keeps those that lie between blocks in use. Large batches of changing sizes leave ever more
    of them: a service whose blocks took 2 GiB grew to 5.6 GiB within an hour.
    """
    if (malloc_trim := _function("malloc_trim")) is not None:
        malloc_trim(0)


@contextmanager
def large_blocks_apart() -> Iterator[None]:
    """Within the block, take blocks of 4 MiB and more from the system, where they return at once.

    For glibc, which otherwise takes them from its heap and fills the gaps badly: a backward pass
    of SmolLM2 that needs 0.6 GiB grew the heap by 3.4. Fresh pages cost an eighth more time there.
    """
    mallopt = _function("mallopt") or (lambda *_: 0)
    mallopt(_M_MMAP_THRESHOLD, _APART)
    try:
        yield
    finally:
        mallopt(_M_MMAP_THRESHOLD, _LARGEST)


def _function(name: str) -> Callable[..., int] | None:
    """Return a function that only glibc has, or None with another C library."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
