"""The memory of a command's process."""

import platform
import subprocess
import sys

import pytest

pytestmark = pytest.mark.nightly

HEAPS = """
import ctypes, threading
from tokengym.agents.execution.memory import set_up_memory

{setting}
ready = threading.Barrier(5)

def draw():
    kept = [bytes(2000) for _ in range(100)]
    ready.wait()

threads = [threading.Thread(target=draw) for _ in range(4)]
for thread in threads:
    thread.start()
ready.wait()
library = ctypes.CDLL(None)
library.fdopen.restype = ctypes.c_void_p
library.malloc_info(0, ctypes.c_void_p(library.fdopen(1, b"w")))
library.fflush(None)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the heaps of threads are glibc's")
@pytest.mark.parametrize(("setting", "one"), [("set_up_memory()", True), ("", False)])
def test_threads_of_a_command_share_one_heap(setting: str, one: bool) -> None:
    code = HEAPS.format(setting=setting)
    ran = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    assert (ran.stdout.count("<heap nr=") == 1) is one, ran.stdout


PAGES = """
import resource
from pathlib import Path
from tokengym.agents.execution.memory import return_free_pages, use_one_heap

def held():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() >> 20

use_one_heap()
at_first = held()
pairs = [(bytearray(100_000), bytes(2000)) for _ in range(2000)]
kept = [small for _, small in pairs]
del pairs
freed = held()
return_free_pages()
print(at_first, freed, held())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the heap is glibc's")
def test_pages_between_blocks_in_use_are_returned() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PAGES], check=True, capture_output=True, text=True, timeout=60
    )
    at_first, freed, returned = map(int, ran.stdout.split())
    # The large blocks took 190 MiB and are free; the small ones between them hold 4.
    assert freed > at_first + 150
    assert returned < at_first + 40
