"""What the requests, results and training runs of clients hold, in bytes, within one limit."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tokengym.agents.service.errors import NoRoomError, OverloadedError

if TYPE_CHECKING:
    from collections.abc import Callable

# What a client may hold, as a multiple of what it leaves free.
SHARE = 3


class Ledger:
    """Who holds how many bytes. Event loop only.

    Args:
        capacity: bytes that all may hold.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        # By client: what requests hold until they are done, and what training runs do.
        self._held: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}

    @property
    def held(self) -> int:
        """Bytes that are held."""
        return sum(held.total() for held in self._held.values())

    def take(self, client: str, size: int, what: str, *, waits: bool) -> Callable[[], None]:
        """Count `size` bytes as held by a client, and return what gives them back.

        Args:
            client: who holds them; it leaves a quarter of what is free to others.
            size: bytes.
            what: they are for, as errors name it.
            waits: whether room for them comes by itself, as for a request. The others leave a
                quarter of it all to those: who has a training run can use it.

        Raises:
            NoRoomError: if they cannot fit, or do not fit now and it is no use to wait.
            OverloadedError: if they do not fit now.
        """
        kind, part = self._held[waits], self._capacity
        if not waits:
            part = part * SHARE // (SHARE + 1)
        most = part * SHARE // (SHARE + 1)
        if size > most:
            raise NoRoomError(
                f"{what} must take at most {_mib(most)}, got {_mib(size)}; raise --memory"
            )
        free = min(self._capacity - self.held, part - kind.total())
        left = max((SHARE * free - kind[client]) // (SHARE + 1), 0)
        if size > left:
            said = f"{what} needs {_mib(size)}, and {_mib(left)} are left to this client"
            if waits:
                raise OverloadedError(f"{said} for now")
            raise NoRoomError(f"{said}; end others, or raise --memory")
        kind[client] += size

        def give_back() -> None:
            kind[client] -= size
            if not kind[client]:
                del kind[client]

        return give_back


def _mib(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB"
