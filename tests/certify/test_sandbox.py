"""Foreign code that hangs, dies, prints or eats memory does so in a process of its own."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.certify.synthetic import QUICK, Products
from tokengym.agents.certify.certificate import certify, certify_target
from tokengym.agents.certify.finding import Severity, Status
from tokengym.agents.certify.sandbox import Limits, Sandbox
from tokengym.agents.certify.source import SourceFailure, Stopwatch, TaskPlace, Trace, play, say

GRADER = """
import os, socket, sys, time

def reward(prompt, reply, row):
    print("noise on standard output")
    if reply == "sleep":
        time.sleep(60)
    if reply == "nap":
        time.sleep(0.4)
    if reply == "work":
        begun = time.process_time()
        while time.process_time() < begun + 0.4:
            pass
    if reply == "fork" and os.fork() == 0:
        time.sleep(60)
        os._exit(0)
    if reply == "exit":
        sys.exit(3)
    if reply == "input":
        return input()
    if reply == "raise":
        raise KeyError("no such thing")
    if reply == "allocate":
        return float(len(bytearray(3 << 30)))
    if reply == "hash":
        return float(hash("text") % 10**9)
    if reply.startswith("connect"):
        socket.create_connection(("127.0.0.1", int(reply.split()[1])), timeout=2)
    if reply == "serve":
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname(), timeout=2).close()
        return 0.25
    if reply == "number":
        return "a lot"
    return float(reply == row["reference"])

def hangs(prompt, reply):
    time.sleep(60 if reply else 0)
    return 0.0
"""
FIRST = TaskPlace("", 0, 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("grader")
    (made / "grader.py").write_text(GRADER)
    rows = ({"prompt": f"{n} and 1?", "reference": str(n + 1)} for n in range(30))
    (made / "prompts.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return made


@pytest.fixture(scope="module")
def sandbox(folder: Path) -> Iterator[Sandbox]:
    target, options = f"{folder}/grader.py:reward", {"prompts": f"{folder}/prompts.jsonl"}
    made = Sandbox(target, options, Limits(seconds=2.0, memory=2.0))
    yield made
    made.close()


def total(sandbox: Sandbox, reply: str) -> Trace:
    return play(sandbox, FIRST, say(reply))


def test_rewards_prompts_and_lone_surrogates_pass_through(sandbox: Sandbox) -> None:
    assert total(sandbox, "1").total == 1.0
    assert total(sandbox, "\ud800").total == 0.0
    assert total(sandbox, "1").prompt == "0 and 1?"
    assert sandbox.start(FIRST).reference == ("1",)
    assert sandbox.facts.size == 30


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("reply", "words"), [("sleep", "no answer in 2 s"), ("exit", "ended with status")]
)
def test_a_process_that_hangs_or_dies_is_restarted(
    sandbox: Sandbox, reply: str, words: str
) -> None:
    with pytest.raises(SourceFailure, match=words):
        total(sandbox, reply)
    assert total(sandbox, "1").total == 1.0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks")
def test_what_a_reply_forked_ends_with_its_process(sandbox: Sandbox) -> None:
    total(sandbox, "fork")
    begun = time.monotonic()
    sandbox.close()
    assert time.monotonic() - begun < 30
    assert total(sandbox, "1").total == 1.0


OPENING = """
import os, pathlib, signal, threading, time

def interrupted():
    while not pathlib.Path("opening").exists():
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupted).start()
from tokengym.agents.certify.sandbox import Limits, Sandbox
Sandbox("spins.py:reward", {"prompts": "prompts.jsonl"}, Limits())
"""
SPINS = """
import os, pathlib
pathlib.Path("opening").write_text(str(os.getpid()))
while True:
    pass
"""


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signal")
def test_an_interrupted_source_leaves_no_process(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "spins.py").write_text(SPINS)
    shutil.copy(folder / "prompts.jsonl", tmp_path)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", OPENING],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode != 0
    assert "KeyboardInterrupt" in done.stderr
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "opening").read_text()), 0)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ("raise", "KeyError: 'no such thing'"),
        ("allocate", "MemoryError"),
        ("input", "EOFError"),
        ("number", "not a number"),
    ],
)
def test_what_a_reply_raises_is_told(sandbox: Sandbox, reply: str, words: str) -> None:
    assert words in total(sandbox, reply).error


@pytest.mark.nightly
def test_work_counts_whole_and_waiting_a_quarter(sandbox: Sandbox) -> None:
    total(sandbox, "1")
    naps, works = Stopwatch(sandbox), sandbox.spent()
    total(sandbox, "nap")
    assert naps.elapsed() >= 0.1
    assert sandbox.spent() - works < 0.2
    total(sandbox, "work")
    worked = sandbox.spent() - works
    assert worked >= 0.35
    assert naps.elapsed() >= worked
    sandbox.close()
    assert sandbox.spent() - works >= worked
    assert total(sandbox, "1").total == 1.0


def test_a_fresh_process_has_other_hashes(sandbox: Sandbox) -> None:
    other = sandbox.fresh()
    try:
        assert total(other, "hash").total != total(sandbox, "hash").total
    finally:
        other.close()


def test_a_fresh_process_that_does_not_open_decides_nothing() -> None:
    class Closed(Products):
        def fresh(self) -> Products:
            raise SourceFailure("opening: no answer in 180 s")

    (found,) = certify(Closed(), settings=QUICK, only=["semantic.replayability"]).findings
    assert (found.status, found.found) == (Status.UNTOLD, "opening: no answer in 180 s")


def test_the_network_is_out_of_reach_where_possible(sandbox: Sandbox) -> None:
    if not sandbox.isolated:
        pytest.skip("the system offers no network namespaces")
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert "Error" in total(sandbox, f"connect {server.getsockname()[1]}").error


def test_a_server_of_the_environments_own_is_in_reach(sandbox: Sandbox) -> None:
    assert total(sandbox, "serve").total == 0.25


@pytest.mark.nightly
def test_a_hanging_grader_stops_no_other_check(folder: Path) -> None:
    certificate = certify_target(
        f"{folder}/grader.py:hangs",
        {"prompts": f"{folder}/prompts.jsonl"},
        QUICK,
        Limits(seconds=2.0),
        only=["sound.no_reply_raises", "leaked.repeated_prompts"],
    )
    hung, repeated = certificate.findings
    assert (hung.status, hung.severity) == (Status.FAILED, Severity.DEFECT)
    assert "no answer in 2 s" in hung.found
    assert repeated.status is Status.PASSED


@pytest.mark.nightly
def test_what_cannot_be_opened_is_refused_with_the_reason(folder: Path) -> None:
    with pytest.raises(SourceFailure, match="no function or Source called 'absent'"):
        Sandbox(f"{folder}/grader.py:absent", {}, Limits())
