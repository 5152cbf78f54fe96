"""The child of a `Sandbox`: opens one source and answers lines of JSON.

It runs as a script that imports Tokengym late: only a process of one thread can leave the network,
and numpy starts threads.
"""

import ctypes
import importlib
import json
import os
import socket
import struct
import sys
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


def main() -> None:
    """Serve one source until the parent closes the pipe."""
    # What the environment reads and prints must not be the parent's pipes.
    asks, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    asked = json.loads(asks.readline())
    isolated = not asked["network"] and _leave_network()
    _limit_memory(asked["memory"])
    sys.path[:] = asked["path"]
    from tokengym.agents.certify.source import in_words
    from tokengym.agents.certify.sources import open_source

    try:
        source = open_source(asked["target"], asked["options"])
        _answer(answers, {"facts": asdict(source.facts), "isolated": isolated})
    except Exception as error:
        _answer(answers, {"error": in_words(error)})
        return
    episodes: OrderedDict[int, SourceEpisode] = OrderedDict()
    for line in asks:
        try:
            said = _do(source, episodes, json.loads(line))
        except Exception as error:
            said = {"error": in_words(error)}
        _answer(answers, said)


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


def _answer(answers: TextIO, said: dict[str, Any]) -> None:
    answers.write(json.dumps({"spent": sum(os.times()[:4]), **said}) + "\n")
    answers.flush()


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


if __name__ == "__main__":
    main()
