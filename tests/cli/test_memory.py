"""The memory of a command's process."""

import platform
import subprocess
import sys

import pytest

HEAPS = """
import ctypes, threading
from tokengym.agents.memory import set_up_memory

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
