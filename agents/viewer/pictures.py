"""The world's picture of a rollout, drawn from its record."""

import threading
from pathlib import Path
from tempfile import TemporaryDirectory

from tokengym.agents.rollouts import RolloutRecord
from tokengym.envs.core.errors import DataError, OptionError
from tokengym.envs.core.grammar import ended_lines
from tokengym.envs.core.play import record_replies
from tokengym.envs.core.rendering import save_picture
from tokengym.envs.registry import make_world

_drawing = threading.Lock()


def draw(record: RolloutRecord) -> bytes:
    """Return the picture of a rollout as PNG: its replies are replayed.

    Raises:
        OptionError: if its world has no picture, or was played on a user's files, which the viewer
            does not open.
        DataError: if its index is that of another Task in this version.
    """
    options = dict(record.origin.options)
    if options.get("data") is not None:
        raise OptionError("rollouts on files of your own have no picture here")
    world = make_world(record.world, record.level, **options)
    task = world.task(record.split, record.index)
    if task.fingerprint != record.fingerprint:
        raise DataError(f"{record.split} Task {record.index} of {record.world} has changed since")
    # The last line of a reply that was cut off can read like a whole one.
    said = ((turn.said or "", turn.complete) for turn in record.turns)
    replies = [text if complete else ended_lines(text) for text, complete in said]
    with _drawing, TemporaryDirectory() as folder:
        path = Path(folder) / "picture.png"
        played = record_replies(world, task, replies, finish=True)
        save_picture(world, played, path, record.origin.policy.rpartition("/")[2])
        return path.read_bytes()
