"""The child of a `Sandbox`: opens one source and answers lines of JSON.

It runs as a script that imports Tokengym late: only a process of one thread can leave the network,
and numpy starts threads. The process that the parent starts only waits for the one that opens the
source, and then ends whatever that left behind.
"""

import contextlib
import ctypes
import datetime
import gc
import importlib
import json
import os
import signal
import socket
import struct
import sys
import time
from collections import OrderedDict
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from tokengym.agents.certify.source import Source, SourceEpisode

_KEPT = 64
"""Episodes that may be under way side by side."""
_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000
_SET_FLAGS, _UP = 0x8914, 1
"""The system call that sets the flags of a network interface, and the flag that it is up."""
_ADOPT = 36
"""The process option by which orphans of its descendants become children of a process."""


def main() -> None:
    """Serve one source until the parent closes the pipe."""
    # The environment must not read from or print to the parent's pipes.
    asks, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    asked = json.loads(asks.readline())
    isolated = not asked["network"] and _leave_network()
    _limit_memory(asked["memory"])
    ahead = _shift_clock() if asked["clock"] else []
    sys.path[:] = asked["path"]
    from tokengym.agents.certify.source import in_words
    from tokengym.agents.certify.sources import open_source

    try:
        source = open_source(asked["target"], asked["options"])
        _answer(answers, asked, {"facts": asdict(source.facts), "isolated": isolated})
    except Exception as error:
        _answer(answers, asked, {"error": in_words(error)})
        return
    episodes: OrderedDict[int, SourceEpisode] = OrderedDict()
    for line in asks:
        asked = json.loads(line)
        ahead[:] = [asked.get("ahead", 0.0)]
        try:
            said = _do(source, episodes, asked)
        except Exception as error:
            said = {"error": in_words(error)}
        _answer(answers, asked, said)


def _do(
    source: "Source", episodes: "OrderedDict[int, SourceEpisode]", asked: dict[str, Any]
) -> dict[str, Any]:
    from tokengym.agents.certify.source import TaskPlace, measured, plain_reward

    if asked["do"] == "memory":
        return {"bytes": _resident()}
    if asked["do"] == "draw":
        source.draw_random()
        return {}
    if asked["do"] == "batch":
        paid = source.batch([(TaskPlace(*place), reply) for place, reply in asked["asked"]])
        return {"paid": [*map(plain_reward, paid)] if isinstance(paid, list) else repr(paid)}
    if asked["do"] == "reply":
        step = measured(episodes[asked["number"]].reply, asked["text"])
        return {"step": [plain_reward(step.reward), bool(step.done), str(step.text), *step[3:]]}
    episode = source.start(TaskPlace(*asked["place"]))
    episodes[asked["number"]] = episode
    if len(episodes) > _KEPT:
        episodes.popitem(last=False)
    claim = None if episode.claim is None else float(episode.claim)
    return {"prompt": episode.prompt, "reference": list(episode.reference), "claim": claim}


def _answer(answers: TextIO, asked: dict[str, Any], said: dict[str, Any]) -> None:
    spent = {"id": asked["id"], "spent": sum(os.times()[:4]), "queued": queued("/proc/self")}
    answers.write(json.dumps(spent | said) + "\n")
    answers.flush()


def queued(process: str) -> float:
    """Return the seconds for which a process or thread waited for a processor, if that is known."""
    with contextlib.suppress(OSError, ValueError):
        return int(Path(process, "schedstat").read_text().split()[1]) / 1e9
    return 0.0


def _shift_clock() -> list[float]:
    """Let the clock of `time` and `datetime` go ahead by the seconds in the list that is returned.

    Code that imports them later sees it; elapsed and processor time stay as they are. The class of
    dates stays the same one: extensions, such as pandas's, are built on its layout.
    """
    ahead, now = [0.0], time.time

    def given(read: Any) -> Any:
        return lambda at=None: read(time.time() if at is None else at)

    def now_in(cls: Any, tz: Any = None) -> Any:
        return cls.fromtimestamp(time.time(), tz)

    def utcnow(cls: Any) -> Any:
        return cls.fromtimestamp(time.time(), datetime.UTC).replace(tzinfo=None)

    write, shown = time.strftime, time.localtime
    time.time = lambda: now() + ahead[0]
    time.time_ns = lambda: int(1e9 * time.time())
    time.localtime, time.gmtime, time.ctime = map(given, (shown, time.gmtime, time.ctime))
    time.strftime = lambda form, *said: write(form, *(said or (time.localtime(),)))
    # `today` asks `time.time`; other methods are replaced where no assignment reaches.
    (methods,) = gc.get_referents(datetime.datetime.__dict__)
    methods["now"] = classmethod(now_in)
    methods["utcnow"] = classmethod(utcnow)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(datetime.datetime))
    return ahead


def _leave_network() -> bool:
    """Enter a network namespace with a loopback alone; `False` where the system offers none."""
    if not sys.platform.startswith("linux"):
        return False
    left: int = ctypes.CDLL(None).unshare(_NEW_USER | _NEW_NETWORK)
    if left == 0:  # an environment may run a server of its own: its loopback goes up
        fcntl: Any = importlib.import_module("fcntl")
        with socket.socket() as any_socket:
            fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh22x", b"lo", _UP))
    return left == 0


def _limit_memory(most: int) -> None:
    try:
        resource: Any = importlib.import_module("resource")
    except ImportError:  # Windows has none
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most if hard < 0 else min(most, hard), hard))


def _resident() -> int | None:
    """Return the bytes of memory in use now; `None` where the system does not say."""
    held = Path("/proc/self/statm")
    return int(held.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if held.exists() else None


def _guarded() -> None:
    """Run `main` in a child; when that ends or the parent says so, end all that came of it.

    One that left the group is found too: when its parent ends, it becomes a child of this one.
    """
    ctypes.CDLL(None).prctl(_ADOPT, 1)
    parent = os.getppid()
    worker = os.fork()
    if worker == 0:
        main()
        os._exit(0)
    os.close(0)
    os.close(1)
    status = 0

    def end(*_: Any) -> None:
        os.kill(worker, signal.SIGKILL)

    def end_with_parent(*_: Any) -> None:
        if os.getppid() != parent:  # killed: it said nothing, and a reply may never return
            end()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGALRM, end_with_parent)
    signal.setitimer(signal.ITIMER_REAL, 1.0, 1.0)
    with contextlib.suppress(ChildProcessError):
        while True:
            ended, said = os.wait()
            if ended == worker:
                status = os.waitstatus_to_exitcode(said)
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                signal.setitimer(signal.ITIMER_REAL, 0.0)
                break
    with contextlib.suppress(ChildProcessError):
        while True:
            for child in children(os.getpid()):
                with contextlib.suppress(OSError):
                    os.kill(child, signal.SIGKILL)
            os.wait()
    os._exit(status if status >= 0 else 128 - status)


def children(parent: int) -> list[int]:
    """Return the processes whose parent is another one."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(stat.parent.name))
    return found


if __name__ == "__main__":
    _guarded() if sys.platform.startswith("linux") else main()
