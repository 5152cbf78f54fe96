"""The time that a source takes, which other work on the machine does not lengthen."""

import time

from tokengym.agents.certify.source import Source
from tokengym.agents.certify.worker import queued


class Stopwatch:
    """The time that a source takes from now on, which a busy machine does not lengthen.

    Args:
        source: what is timed, with the thread that certifies it.
    """

    WAITED = 4.0
    """Seconds of waiting that count as one of work."""

    def __init__(self, source: Source) -> None:
        self._source, self._begun = source, (0.0, 0.0)
        self._begun = self.read()

    def read(self) -> tuple[float, float]:
        """Return seconds of processor time, and those of waiting, as for a network."""
        work, queue = self._source.spent()
        work, queue = work + time.thread_time(), queue + queued("/proc/thread-self")
        waited = time.monotonic() - work - queue
        return work - self._begun[0], waited - self._begun[1]

    def elapsed(self) -> float:
        """Return seconds of processor time, or a quarter of those of waiting, whichever is more."""
        worked, waited = self.read()
        return max(worked, waited / self.WAITED)
