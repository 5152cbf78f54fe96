"""Bytes held by requests and results of clients, and bytes left to training runs."""

from collections.abc import Callable

from tokengym.agents.service.errors import BadRequestError, OverloadedError

# The most that one thing may take of all.
LARGEST = 3 / 4


class Ledger:
    """How many bytes are held. Event loop only, but for what others read of it.

    Args:
        capacity: bytes that all may hold.

    Attributes:
        requests: bytes that requests and results hold.
        runs: bytes that each training run may come to hold; others give way to the one in use.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self.runs: dict[str, int] = {}
        self.requests = 0

    @property
    def for_runs(self) -> int:
        """Bytes that training runs may hold in memory."""
        return self._capacity - self.requests

    def take(self, size: int, what: str) -> Callable[[], None]:
        """Count `size` bytes as held by a request, and return what gives them back.

        Args:
            size: bytes.
            what: they are for, as errors name it.

        Raises:
            BadRequestError: if they cannot fit.
            OverloadedError: if they do not fit now.
        """
        self.check(size, what)
        left = max(self.for_runs - max(self.runs.values(), default=0), 0)
        if size > left:
            raise OverloadedError(f"{what} needs {_mib(size)}, and {_mib(left)} are left for now")
        self.requests += size

        def give_back() -> None:
            self.requests -= size

        return give_back

    def check(self, size: int, what: str) -> None:
        """Check that `size` bytes for one thing can fit.

        Raises:
            BadRequestError: if they cannot.
        """
        if size > (most := int(self._capacity * LARGEST)):
            raise BadRequestError(
                f"{what} must take at most {_mib(most)}, got {_mib(size)}; raise --memory"
            )


def _mib(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB"
