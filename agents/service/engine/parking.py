"""How training runs that nobody uses give way to others.

Compute thread only.
"""

import re
import secrets
import sys
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import torch

from tokengym.agents.service.engine.adapters import LoraAdapter
from tokengym.atomic_write import replacing

# The name of a file of what does not fit in memory, or of one that was being written.
OURS = re.compile(r"\.?[0-9a-f]{16}(\.|\Z)")


class Parking:
    """Keeps what training runs hold in memory within a limit; the others are in files.

    Those that were used longest ago give way first. A run that comes back is the same to the bit:
    weights, accumulated gradients and moments.

    Args:
        folder: of the files.
        limit: returns the bytes that runs may hold now; the one in use is there whatever its size.
    """

    def __init__(
        self, folder: Path = Path(), limit: Callable[[], int] = lambda: sys.maxsize
    ) -> None:
        self._folder, self._limit = folder, limit
        # The least recently used first.
        self._runs: OrderedDict[str, LoraAdapter] = OrderedDict()
        # The file, the tensors that are empty meanwhile, and their bytes.
        self._parked: dict[str, tuple[Path, dict[str, torch.Tensor], int]] = {}

    @property
    def held(self) -> int:
        """Bytes that runs in memory may come to hold."""
        return sum(run.most for run in list(self._runs.values()))

    @property
    def written(self) -> int:
        """Bytes of the files."""
        return sum(size for _, _, size in list(self._parked.values()))

    def use(self, run_id: str, run: LoraAdapter) -> None:
        """Have a run in memory, with room to grow; it may give way again in the next operation."""
        self._runs.pop(run_id, None)
        self.make_room(run.most)
        self._runs[run_id] = run
        if run_id in self._parked:
            file, tensors, _ = self._parked.pop(run_id)
            for name, saved in torch.load(file, weights_only=True).items():
                tensors[name].data = saved
            file.unlink()

    def make_room(self, more: int = 0) -> None:
        """Let runs give way until the others and `more` bytes fit in the limit."""
        while self._runs and self.held + more > self._limit():
            self._park(*self._runs.popitem(last=False))

    def remove(self, run_id: str) -> None:
        """Forget a run that has ended, if it is known."""
        self._runs.pop(run_id, None)
        if run_id in self._parked:
            self._parked.pop(run_id)[0].unlink(missing_ok=True)

    def _park(self, run_id: str, run: LoraAdapter) -> None:
        file, tensors = self._folder / secrets.token_hex(8), run.held()
        with replacing(file) as part:
            torch.save({name: tensor.detach() for name, tensor in tensors.items()}, part)
        self._parked[run_id] = file, tensors, sum(tensor.nbytes for tensor in tensors.values())
        for tensor in tensors.values():
            # Whoever refers to the tensor finds its numbers there again.
            tensor.data = tensor.new_empty(0)


def clear_spill(folder: Path) -> Path:
    """Return a folder for what does not fit in memory; an earlier service's files in it go."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        if OURS.match(old.name) and not old.is_dir():
            old.unlink()
    return folder
