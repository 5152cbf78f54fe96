"""Foreign code that hangs, dies, prints or eats memory does so in a process of its own."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.certify.synthetic import QUICK, Products
from tests.every import quick_first
from tokengym.agents.certify.certificate import certify, certify_target
from tokengym.agents.certify.finding import Severity, Status
from tokengym.agents.certify.sandbox import Limits, Sandbox
from tokengym.agents.certify.source import SourceFailure, TaskPlace, Trace, play, say
from tokengym.agents.certify.stopwatch import Stopwatch

GRADER = """
import datetime, os, socket, sys, time
from datetime import datetime as of_dates

def reward(prompt, reply, row):
    print("noise on standard output")
    if reply == "leave" and os.fork() == 0:
        os.setsid()
        os.execve(sys.executable, [sys.executable, "-c", "import time; time.sleep(617)"], {})
    if reply.startswith("write "):
        for pipe in range(3, 12):
            try:
                os.write(pipe, reply[6:].encode() + b"\\xff\\n")
            except OSError:
                pass
    if reply.startswith("forge "):
        for pipe in range(3, 12):
            try:
                os.write(pipe, b'{"id": ' + reply[6:].encode() + b"}\\n")
            except OSError:
                pass
    if reply == "environment":
        return float(sum(name in os.environ for name in ("SECRET_KEY", "SSH_AUTH_SOCK", "PASSED")))
    if reply == "hour":
        (hour,) = {datetime.datetime.now().hour, of_dates.today().hour, time.localtime().tm_hour}
        return float(hour if of_dates.__base__ is datetime.date else -1)
    if reply == "sleep":
        time.sleep(60)
    if reply == "nap":
        time.sleep(2.0)
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
    made = Sandbox(target, options, Limits(seconds=2.0, waiting=2.0, memory=2.0))
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
    ("reply", "words"), [("sleep", "no answer in 2 s of waiting"), ("exit", "ended with status")]
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


def lives(word: str) -> bool:
    """Whether a process of this machine has a word in its command line."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if word in file.read_text():
                return True
    return False


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
@pytest.mark.parametrize("end", ["close", "exit"])
def test_a_child_that_left_its_group_ends_too(sandbox: Sandbox, end: str) -> None:
    total(sandbox, "leave")
    until = time.monotonic() + 60
    while not lives("time.sleep(617)") and time.monotonic() < until:
        time.sleep(0.1)
    assert lives("time.sleep(617)")
    if end == "close":
        sandbox.close()
    else:
        with pytest.raises(SourceFailure, match="status 3"):
            total(sandbox, "exit")
    assert not lives("time.sleep(617)")


@quick_first("words", ["noise", "", '{"step": [1.0, true]}', '{"id": 1}'])
def test_to_write_into_the_pipe_of_answers_is_a_failure(sandbox: Sandbox, words: str) -> None:
    with pytest.raises(SourceFailure, match="into certify's own pipe") as failure:
        total(sandbox, f"write {words}")
    assert failure.value.hung
    assert total(sandbox, "1").total == 1.0


@pytest.mark.nightly
def test_answers_with_a_guessed_number_are_failures(sandbox: Sandbox) -> None:
    for ahead in range(1, 5):
        with pytest.raises(SourceFailure, match="into certify's own pipe"):
            total(sandbox, f"forge {sandbox._asked + ahead}")


def test_variables_of_the_environment_are_passed_by_name_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SECRET_KEY", "SSH_AUTH_SOCK", "PASSED"):
        monkeypatch.setenv(name, "x")
    options = {"prompts": f"{folder}/prompts.jsonl"}
    for passed, seen in ((), 0.0), (("PASSED",), 1.0):
        limits = Limits(pass_env=passed)
        with closing(Sandbox(f"{folder}/grader.py:reward", options, limits)) as made:
            assert total(made, "environment").total == seen


def test_a_clock_that_goes_ahead_shows_other_hours(sandbox: Sandbox) -> None:
    with closing(sandbox.fresh(ahead=0.0)) as other:
        now = total(other, "hour").total
        other.ahead = 7 * 3600.0
        assert (total(other, "hour").total - now) % 24 in (7, 8)


def test_words_of_an_unopened_grader_are_cleaned_and_cut(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("raise ValueError('\\x1b[31m\\x00' + 'long ' * 10_000)\n")
    (tmp_path / "rows.jsonl").write_text('{"prompt": "1?"}\n' * 4)
    with pytest.raises(SourceFailure) as failure:
        Sandbox(f"{tmp_path}/bad.py:r", {"prompts": f"{tmp_path}/rows.jsonl"}, Limits())
    words = str(failure.value)
    assert words.isprintable()
    assert "ValueError: \\x1b[31m" in words
    assert len(words) < 2200


@quick_first("code", ["while True: pass", "import time; time.sleep(99)"])
def test_a_grader_that_hangs_while_it_opens_is_a_finding(code: str, tmp_path: Path) -> None:
    (tmp_path / "hangs.py").write_text(f"{code}\ndef r(prompt, reply): return 0.0\n")
    rows = (json.dumps({"prompt": f"{n}?", "answer": "1"}) + "\n" for n in range(30))
    (tmp_path / "rows.jsonl").write_text("".join(rows))
    target, options = f"{tmp_path}/hangs.py:r", {"prompts": f"{tmp_path}/rows.jsonl"}
    certificate = certify_target(target, options, QUICK, Limits(opening=1.0))
    failed = [one for one in certificate.findings if one.status is Status.FAILED]
    assert [one.severity for one in failed] == [Severity.DEFECT]
    assert re.search("opening .*no answer in 1 s of (processor time|waiting)", failed[0].found)
    passed = {one.check for one in certificate.findings if one.status is Status.PASSED}
    assert "leaked.repeated_prompts" in passed


@pytest.mark.nightly
def test_waiting_is_bounded_apart_from_work(folder: Path) -> None:
    limits = Limits(seconds=0.2, waiting=30.0)
    options = {"prompts": f"{folder}/prompts.jsonl"}
    with closing(Sandbox(f"{folder}/grader.py:reward", options, limits)) as made:
        assert total(made, "nap").total == 0.0
        with pytest.raises(SourceFailure, match=r"no answer in 0\.2 s of processor time"):
            total(made, "work")


OPENING = """
import os, pathlib, signal, sys, threading, time

signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background ignores it

def interrupted():
    while not pathlib.Path("opening").exists():
        time.sleep(0.05)
    os.kill(os.getpid(), int(sys.argv[1]))

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
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux names a process's orphans")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_source_leaves_no_process(
    folder: Path, tmp_path: Path, sent: signal.Signals
) -> None:
    (tmp_path / "spins.py").write_text(SPINS)
    shutil.copy(folder / "prompts.jsonl", tmp_path)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", OPENING, str(int(sent))],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode != 0
    assert ("KeyboardInterrupt" in done.stderr) == (sent == signal.SIGINT)
    worker = Path("/proc") / (tmp_path / "opening").read_text()
    until = time.monotonic() + 30 * (sent == signal.SIGKILL)
    while worker.exists() and time.monotonic() < until:
        time.sleep(0.1)
    assert not worker.exists()


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
    naps, works = Stopwatch(sandbox), sandbox.spent().worked
    total(sandbox, "nap")
    assert naps.elapsed() >= 0.1
    assert sandbox.spent().worked - works < 0.2
    total(sandbox, "work")
    worked = sandbox.spent().worked - works
    assert worked >= 0.35
    assert naps.elapsed() >= worked
    sandbox.close()
    assert sandbox.spent().worked - works >= worked
    assert total(sandbox, "1").total == 1.0


def test_a_fresh_process_has_other_hashes(sandbox: Sandbox) -> None:
    other = sandbox.fresh()
    try:
        assert total(other, "hash").total != total(sandbox, "hash").total
    finally:
        other.close()


@pytest.mark.nightly
def test_a_fresh_process_that_does_not_open_decides_nothing() -> None:
    class Closed(Products):
        def fresh(self, **how: Any) -> Products:
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
        Limits(waiting=2.0),
        only=["sound.no_reply_raises", "leaked.repeated_prompts"],
    )
    hung, repeated = certificate.findings
    assert (hung.status, hung.severity) == (Status.FAILED, Severity.DEFECT)
    assert "no answer in 2 s of waiting" in hung.found
    assert repeated.status is Status.PASSED
