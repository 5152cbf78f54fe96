"""What the requests and results of clients hold, in bytes, and what they leave to training runs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tokengym.agents.service.errors import NoRoomError, OverloadedError

if TYPE_CHECKING:
    from collections.abc import Callable

# What a client may hold, as a multiple of what it leaves free.
SHARE = 3


class Ledger:
    """Who holds how many bytes. Event loop only, but for what others read of it.

    Args:
        capacity: bytes that all may hold.

    Attributes:
        requests: bytes that requests and results hold.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._held: Counter[str] = Counter()
        # Most bytes of each training run: others give way to the one in use.
        self._runs: dict[str, int] = {}
        self.requests = 0

    @property
    def for_runs(self) -> int:
        """Bytes that training runs may hold in memory."""
        return self._capacity - self.requests

    def add_run(self, run_id: str, size: int, what: str) -> None:
        """Note a training run, of which requests leave room for one at a time.

        Args:
            run_id: of the run.
            size: bytes that it may come to hold.
            what: it is, as errors name it.

        Raises:
            NoRoomError: if it cannot fit.
            OverloadedError: if it does not fit now.
        """
        self._check(size, what)
        if size > self.for_runs:
            raise OverloadedError(
                f"{what} needs {_mib(size)}, and requests leave {_mib(self.for_runs)} for now"
            )
        self._runs[run_id] = size

    def end_run(self, run_id: str) -> None:
        """Forget a training run."""
        self._runs.pop(run_id, None)

    def take(self, client: str, size: int, what: str) -> Callable[[], None]:
        """Count `size` bytes as held by a client's request, and return what gives them back.

        Args:
            client: who holds them; it leaves a quarter of what is free to others.
            size: bytes.
            what: they are for, as errors name it.

        Raises:
            NoRoomError: if they cannot fit.
            OverloadedError: if they do not fit now.
        """
        self._check(size, what)
        free = self.for_runs - max(self._runs.values(), default=0)
        left = max((SHARE * free - self._held[client]) // (SHARE + 1), 0)
        if size > left:
            raise OverloadedError(
                f"{what} needs {_mib(size)}, and {_mib(left)} are left to this client for now"
            )
        self._held[client] += size
        self.requests += size

        def give_back() -> None:
            self.requests -= size
            self._held[client] -= size
            if not self._held[client]:
                del self._held[client]

        return give_back

    def _check(self, size: int, what: str) -> None:
        most = self._capacity * SHARE // (SHARE + 1)
        if size > most:
            raise NoRoomError(
                f"{what} must take at most {_mib(most)}, got {_mib(size)}; raise --memory"
            )


def _mib(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB"
