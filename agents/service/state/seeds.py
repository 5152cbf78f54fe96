"""Seeds for what clients leave unseeded: random, or hashed from the service's own seed.

With a seed, a service that gets the same requests gives the same answers: the seed of a sampling
request is a hash of the service's seed, the weights, the request, and how often it came before.
Requests in progress at once may arrive in any order; those that are equal then swap their samples.
"""

import hashlib
import secrets
import uuid
from collections import OrderedDict
from itertools import count
from pathlib import Path
from typing import Self

from tokengym.agents.service.engine.adapters import random_seed
from tokengym.agents.service.errors import StartupError
from tokengym.agents.service.generation.jobs import SampleRequest

# Requests that are remembered to have come before; one takes about 200 bytes.
REMEMBERED = 1 << 16
_STARTS = "starts"


class SeedSource:
    """Where the seeds of one service process come from.

    Args:
        seed: of the service; `None` for random seeds.
        start: how often the service was started on its state directory before; ids of sessions
            differ from start to start, as checkpoints bear them.
    """

    def __init__(self, seed: int | None, start: int = 0) -> None:
        self._seed = seed
        self._start = start
        self._sessions, self._adapters = count(1), count(1)
        self._asked: OrderedDict[bytes, int] = OrderedDict()

    @classmethod
    def open(cls, seed: int | None, state_dir: Path) -> Self:
        """Return the source of a service that starts now on `state_dir`.

        Raises:
            StartupError: if what counts the starts is a fifo.
        """
        if seed is None:
            return cls(None)
        counter = state_dir / _STARTS
        if counter.is_fifo():  # it would wait for a reader forever
            raise StartupError(f"{counter} is a fifo: remove it")
        # A byte for each start, so that no start has the number of another.
        with counter.open("ab") as file:
            start = file.tell()
            file.write(b".")
        return cls(seed, start)

    def session_id(self) -> str:
        """Return the id of a new session."""
        if self._seed is None:
            return str(uuid.uuid4())
        key = self._hash("session", self._start, next(self._sessions))
        return str(uuid.UUID(bytes=key, version=4))

    def adapter(self) -> int:
        """Return the seed of a new adapter, 63 bits."""
        if self._seed is None:
            return random_seed()
        return int.from_bytes(self._hash("adapter", next(self._adapters))) >> 65

    def request(self, lineage: str, request: SampleRequest) -> int:
        """Return the seed of a sampling request, 64 bits.

        Args:
            lineage: hash of the weights that are sampled from.
            request: what is asked.
        """
        if self._seed is None:
            return secrets.randbits(64)
        key = self._hash(
            lineage,
            request.prompt.tobytes().hex(),
            request.count,
            request.sampling,
            request.max_tokens,
            sorted(request.stop_tokens),
            request.stop_strings,
        )
        times = self._asked.pop(key, 0)
        self._asked[key] = times + 1
        if len(self._asked) > REMEMBERED:
            self._asked.popitem(last=False)
        return int.from_bytes(self._hash(key.hex(), times)) >> 64

    def _hash(self, *key: object) -> bytes:
        text = "\n".join(map(str, (self._seed, *key)))
        return hashlib.blake2b(text.encode(), digest_size=16).digest()
