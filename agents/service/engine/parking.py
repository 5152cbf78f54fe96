"""Training runs that nobody uses give way to others, and come back from a file when they are used."""

from __future__ import annotations

import pickle
import secrets
import sys
from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import torch

from tokengym.agents.service.errors import DamagedFileError, NoRoomError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

SUFFIX = ".parked"


class Run(Protocol):
    """What is known of a training run.

    Attributes:
        most: bytes that it holds at most.
    """

    most: int

    def held(self) -> Mapping[str, torch.Tensor]:
        """Return all tensors that it holds, by name."""
        ...


class Parking:
    """Keeps what training runs hold in memory within a limit. Compute thread only.

    Those of silent clients give way first, then those that were used longest ago. A run that comes
    back is the same to the bit: weights, accumulated gradients and moments.

    Args:
        folder: of the files.
        limit: returns the bytes that runs may hold now; the one in use is there whatever its size.
        silent: whether the client of a run is silent.

    Attributes:
        held: bytes that the runs in memory hold, the one used last as many as it may.
        written: bytes of the files.
    """

    def __init__(
        self,
        folder: Path | None = None,
        limit: Callable[[], int] = lambda: sys.maxsize,
        silent: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._folder, self._limit, self._silent = folder or Path(), limit, silent
        # The least recently used first.
        self._runs: OrderedDict[str, Run] = OrderedDict()
        self._parked: dict[str, _Parked] = {}
        self._pinned: set[str] = set()
        self.held = self.written = 0
        if folder is not None:
            clear_spill(folder, SUFFIX)

    def use(self, run_id: str, run: Run) -> None:
        """Have a run in memory with room to grow; it may give way again in the next operation.

        Raises:
            NoRoomError: if another one has to give way and its file cannot be written.
            DamagedFileError: if the run's own file cannot be read.
        """
        self.make_room(run_id, run.most)
        self._runs[run_id] = run
        self._runs.move_to_end(run_id)
        if (parked := self._parked.get(run_id)) is not None:
            try:
                for name, saved in torch.load(parked.file, weights_only=True).items():
                    parked.tensors[name].data = saved
            except (OSError, RuntimeError, KeyError, pickle.UnpicklingError) as error:
                raise DamagedFileError(
                    f"training run {run_id!r} gave way to others and its file "
                    f"{str(parked.file)!r} cannot be read: {error}; resume from a checkpoint"
                ) from error
            self._forget_file(run_id)

    @contextmanager
    def using(self, run_id: str, run: Run) -> Iterator[None]:
        """Keep a run in memory within the block, in whose pauses others are used."""
        self.use(run_id, run)
        self._pinned.add(run_id)
        try:
            yield
        finally:
            self._pinned.discard(run_id)

    def make_room(self, run_id: str = "", most: int = 0) -> None:
        """Let runs give way until the others and `most` bytes for `run_id` fit in the limit."""
        sizes = self._sizes(run_id)
        self.held = most + sum(sizes.values())
        for name in sorted(sizes, key=lambda name: not self._silent(name)):
            if self.held > self._limit() and name not in self._pinned:
                self._park(name, sizes[name])
                self.held -= sizes[name]

    def remove(self, run_id: str) -> None:
        """Forget a run that has ended, if it is known."""
        self._runs.pop(run_id, None)
        self._forget_file(run_id)
        self.held = sum(self._sizes().values())

    def _sizes(self, but: str = "") -> dict[str, int]:
        """Return the bytes that each run in memory holds, but one."""
        return {
            name: sum(tensor.nbytes for tensor in run.held().values())
            for name, run in self._runs.items()
            if name != but and name not in self._parked
        }

    def _park(self, run_id: str, size: int) -> None:
        file = self._folder / f"{secrets.token_hex(8)}{SUFFIX}"
        tensors = self._runs[run_id].held()
        try:
            torch.save({name: tensor.detach() for name, tensor in tensors.items()}, file)
        except (OSError, RuntimeError) as error:
            file.unlink(missing_ok=True)
            raise NoRoomError(
                f"training run {run_id!r} must give way, and cannot be written to "
                f"{str(self._folder)!r}: {error}"
            ) from error
        self._parked[run_id] = _Parked(file, tensors, size)
        self.written += size
        for tensor in tensors.values():
            # Whoever refers to the tensor finds its numbers there again.
            tensor.data = tensor.new_empty(0)

    def _forget_file(self, run_id: str) -> None:
        if (parked := self._parked.pop(run_id, None)) is not None:
            self.written -= parked.size
            parked.file.unlink(missing_ok=True)


@dataclass(frozen=True)
class _Parked:
    """A run that gave way: its file, the empty tensors it belongs to, and their bytes."""

    file: Path
    tensors: Mapping[str, torch.Tensor]
    size: int


def clear_spill(folder: Path, suffix: str) -> None:
    """Create a folder for what does not fit in memory; what an earlier service left in it goes."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f"*{suffix}"):
        if old.is_file() or old.is_symlink():
            old.unlink()
