"""Whether any of many hostile replies raises an error or takes long, in every level of every world.

    python benchmarks/hostile_replies.py [--replies 1000000] [--seed 0]

Replies are strung together from hostile texts, near misses of the expected form and random
characters; every two hundredth is made 100 kB long. Each answers the opening of one of a few Tasks,
or what follows one or two replies of the random baseline. Printed are the longest processor times
by level; it exits with 1 if a reply took more than 50 ms.
"""

import argparse
import sys
import time

import numpy as np

from tokengym.envs.core.odd_replies import HOSTILE, near_misses
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World
from tokengym.envs.registry import make_world, policy, specs

TASKS = 4
LONG_EVERY = 200
MOST_TURNS_BEFORE = 2
CHARACTERS = 100_000
MOST_SECONDS = 0.05


def make_reply(world: World, number: int, rng: np.random.Generator) -> str:
    """Return a reply of up to 12 pieces, or one of 100 kB."""
    form = world.expected_form
    strange = "".join(map(chr, rng.integers(1, 0x3000, int(rng.integers(1, 40))).tolist()))
    pieces = (*HOSTILE, *near_misses(form), form, strange, "\n", "`", "> ", "- ", "1. ")
    chosen = [pieces[place] for place in rng.integers(len(pieces), size=int(rng.integers(1, 13)))]
    reply = "".join(chosen)
    if number % LONG_EVERY:
        return reply[: CHARACTERS // 10]
    return (reply * (1 + CHARACTERS // max(1, len(reply))))[:CHARACTERS]


def scripted_replies(world: World, task: Task, rng: np.random.Generator) -> list[str]:
    """Return up to two replies of the random baseline after which the episode still goes on."""
    play = policy(world.spec.id, "random")
    turn = world.start(task)
    replies: list[str] = []
    for _ in range(rng.integers(MOST_TURNS_BEFORE + 1)):
        replies.append(play(world, turn, rng))
        turn = world.reply(replies[-1])
        if turn.done:
            return replies[:-1]
    return replies


def main() -> int:
    """Run the benchmark; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--replies", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    replies = options.replies
    cases = [(row.id, level) for row in specs().values() for level in row.levels]
    rng = np.random.default_rng(options.seed)
    slow = 0
    for case in cases:
        world = make_world(*case)
        tasks = [world.task("train", index) for index in range(TASKS)]
        longest, count = 0.0, -(-replies // len(cases))
        for number in range(count):
            reply, task = make_reply(world, number, rng), tasks[number % TASKS]
            before = scripted_replies(world, task, rng)
            # What else the machine does slows one of them down, and the same again seldom.
            took = _answered(world, task, [*before, reply], 1)
            if took > MOST_SECONDS:
                took = _answered(world, task, [*before, f"{reply}\n"], 3)
            longest = max(longest, took)
            slow += took > MOST_SECONDS
        shown = "/".join(case)
        print(f"{shown}: {count} replies, longest {longest * 1e3:.1f} ms", flush=True)
    print(f"{slow} replies took more than {MOST_SECONDS * 1e3:.0f} ms")
    return int(slow > 0)


def _answered(world: World, task: Task, replies: list[str], times: int) -> float:
    """Return the least processor time of the last reply, in seconds.

    Each time with one more line break: what was read of an equal reply is kept.
    """
    found = []
    for more in range(times):
        world.start(task)
        for reply in replies[:-1]:
            world.reply(reply)
        reply = replies[-1] + "\n" * more
        start = time.thread_time()
        world.reply(reply)
        found.append(time.thread_time() - start)
    return min(found)


if __name__ == "__main__":
    sys.exit(main())
