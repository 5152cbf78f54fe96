"""Laws of purity: worlds in the same state behave alike, whatever their history or process."""

import copy
import itertools
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.testing.law import Violation, law, quoted, require
from tokengym.envs.testing.play import CheckedEpisode, play
from tokengym.envs.testing.subject import Subject, pickled
from tokengym.envs.testing.tasks import difference

_ELSEWHERE = """
import pickle, sys
sys.path[:], made, task = pickle.load(sys.stdin.buffer)
if isinstance(made, tuple):
    from tokengym.envs.registry import import_object
    spec, level = made
    world = import_object(spec.class_path(level))(spec, level)
else:
    world = pickle.loads(made)
sys.stdout.buffer.write(world.task(*task).to_json().encode())
"""


@law()
def interleaved_worlds_play_alike(subject: Subject) -> None:
    """Two worlds play the same replies alike, even when interleaved."""
    for task in _some_task(subject):
        world, other = subject.make(), subject.make()
        first, second = CheckedEpisode(world, task), CheckedEpisode(other, task)
        _same(first.turn, second.turn, task)
        policy, rngs = subject.policies["random"], (subject.rng(1), subject.rng(1))
        while not first.turn.done:
            replies = policy(world, first.turn, rngs[0]), policy(other, second.turn, rngs[1])
            require(replies[0] == replies[1], "the policy reads two worlds differently", task)
            _same(first.say(replies[0]), second.say(replies[1]), task)


@law()
def a_used_world_plays_like_a_fresh_one(subject: Subject) -> None:
    """A world that has been used plays like a fresh one."""
    used, policy = subject.make(), subject.policies["random"]
    for before in subject.tasks("train", 1):
        play(used, before, policy, seed=subject.key(8))
    for task in _some_task(subject):
        again = play(used, task, policy, seed=subject.key(9))
        fresh = play(subject.make(), task, policy, seed=subject.key(9))
        for turn, other in zip(again.turns, fresh.turns, strict=False):
            _same(turn, other, task)
        require(again == fresh, "the Records differ", task)


@law()
def a_fork_is_an_independent_twin(subject: Subject) -> None:
    """A fork behaves identically and shares no mutable state."""
    _check_twin(subject, lambda world: world.fork())


@law()
def a_pickled_world_plays_on(subject: Subject) -> None:
    """A world pickled in the middle of an episode continues identically."""
    _check_twin(subject, pickled)


@law()
def an_index_is_one_task_in_every_process(subject: Subject) -> None:
    """An index gives the same Task in another process."""
    for expected in subject.tasks("test", 2)[-1:] or subject.tasks("train", 1):
        made: object = (subject.spec, subject.level)
        if not subject.registered:
            made = pickle.dumps(subject.make())
        sent = pickle.dumps((sys.path, made, (expected.split, expected.index)))
        done = subprocess.run([sys.executable, "-c", _ELSEWHERE], input=sent, capture_output=True)
        require(done.returncode == 0, done.stderr.decode("utf-8", "replace")[-2000:], expected)
        drawn = Task.from_json(done.stdout.decode())
        require(drawn == expected, difference(expected, drawn), expected)


@law()
def the_answer_is_not_shown(subject: Subject) -> None:
    """The opening Turn does not depend on the Task's answer."""
    tasks = subject.tasks("train", 4)
    for task, other in itertools.pairwise(tasks):
        try:
            turn = subject.make().start(replace(task, answer_json=other.answer_json))
        except TaskError:
            continue  # The answer does not fit the instance, and the world says so.
        require(
            turn == subject.make().start(task), "another answer gives another opening Turn", task
        )


def _check_twin(subject: Subject, copied: Callable[[World], World]) -> None:
    """Copy a world before each of the first replies, play on, and let the copies catch up."""
    policy = subject.policies["random"]
    for task in _some_task(subject):
        world, rng = subject.make(), subject.rng(2)
        episode = CheckedEpisode(world, task)
        turns = [episode.turn]
        replies: list[str] = []
        twins: list[tuple[World, np.random.Generator, int]] = []
        while not episode.turn.done:
            if len(twins) < _TWINS:
                twins.append((copied(world), copy.deepcopy(rng), len(replies)))
            replies.append(policy(world, episode.turn, rng))
            turns.append(episode.say(replies[-1]))
        for twin, rng, start in twins:
            turn = turns[start]
            for place in range(start, len(replies)):
                reply = policy(twin, turn, rng)
                require(reply == replies[place], "a policy reads the copy otherwise", task)
                turn = twin.reply(reply)
                _same(turns[place + 1], turn, task)
            require(twin.returns == world.returns, "the returns differ", task)


_TWINS = 2


def _some_task(subject: Subject) -> list[Task]:
    return subject.tasks("train", 5)[-1:]


def _same(turn: Turn, other: Turn, task: Task) -> None:
    if turn == other:
        return
    for name, first, second in zip(Turn._fields, turn, other, strict=True):
        if first != second:
            raise Violation(f"{name}: {quoted(str(first))} against {quoted(str(second))}", task)
