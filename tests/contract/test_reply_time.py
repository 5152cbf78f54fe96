"""No reply takes long, whatever it holds: 1 MB less than adding a million integers in Python."""

import time

import pytest

from tests.contract.grammars import OF_EACH_GRAMMAR
from tests.contract.test_form import PROSE
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World
from tokengym.envs.registry import make_world
from tokengym.testing import Subject

HOSTILE = [*' \t-*_a9.(}#\n"\r', *PROSE, "BATTERY ", "BATTERY 1 ", "BATTERY 1,", "> ", "1. ", "- "]
HOSTILE += ["<answer>", "\u2212", "\\boxed{", "(a", "<think>", "</think>", "<think></think>"]
HOSTILE += ["answer: ", " and", "\u00e9", "\u3000", "\nP", "a\n", "_a", "1: ", "\n\n x\n", "1%"]
HOSTILE += ["\uff1a", "<think>\n"]
CHARACTERS = 1_000_000
SAMPLE, MOST_SAMPLES = 50_000, 20
"""Integers that are added beside each reply, and how often as long it may take."""


@pytest.mark.nightly
@pytest.mark.parametrize("case", OF_EACH_GRAMMAR, ids="-".join)
def test_no_reply_takes_long(case: tuple[str, str]) -> None:
    world = make_world(*case)
    task = Subject(case).task("train", 0)
    lines = world.expected_form.splitlines()
    heads = {*(f"{line.split()[0]} " for line in lines), *lines}
    for piece in HOSTILE:
        for head in ("", *heads):
            reply = head + piece * (CHARACTERS // len(piece.encode()))
            # What else the machine does slows some of them down, never all. Each is another reply:
            # what was read of the last ones is kept.
            times = (samples(world, task, reply + "x" * number) for number in range(1, 6))
            assert any(time < MOST_SAMPLES for time in times), piece


def samples(world: World, task: Task, reply: str) -> float:
    world.start(task)
    began, added = time.process_time(), 0
    for number in range(SAMPLE):  # which coverage slows down as it does what reads a reply
        added += number
    started = time.process_time()
    world.reply(reply)
    return (time.process_time() - started) / (started - began)
