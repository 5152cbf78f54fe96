"""Training runs, and how those that nobody uses give way to others.

Compute thread only.
"""

import re
import secrets
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from tokengym.agents.service.engine.adapters import LoraAdapter
from tokengym.atomic_write import replacing

# The name of a file of what does not fit in memory, or of one that was being written.
OURS = re.compile(r"\.?[0-9a-f]{16}(\.|\Z)")
STATES = 5
"""Tensors of an adapter's size that a run may hold: weights, two gradients and two moments."""
ADAM_STATE = ("step", "exp_avg", "exp_avg_sq")


class AdapterTraining(LoraAdapter):
    """One training run: an adapter and its optimizer.

    Attributes:
        former: gradients that were accumulated before the request in progress, by parameter.
        most: bytes that it holds at most.
    """

    optimizer: torch.optim.AdamW

    def __init__(self, *adapter: Any) -> None:
        super().__init__(*adapter)
        self.former: dict[str, torch.Tensor | None] = {}
        self.most = STATES * sum(parameter.nbytes for parameter in self.parameters.values())
        self.reset_optimizer()

    @property
    def nbytes(self) -> int:
        """Bytes that it holds in memory."""
        return sum(tensor.nbytes for tensor in self.held().values())

    def held(self) -> dict[str, torch.Tensor]:
        """Return all tensors that it holds, by parameter and part."""
        tensors: dict[str, torch.Tensor] = {}
        for name, parameter in self.parameters.items():
            parts = {"gradient": parameter.grad, "former": self.former.get(name)}
            parts |= {"weight": parameter, **self.optimizer.state.get(parameter, {})}
            tensors |= {f"{name}.{part}": one for part, one in parts.items() if one is not None}
        return tensors

    def reset_optimizer(self, tensors: Mapping[str, torch.Tensor] = MappingProxyType({})) -> None:
        """Clear gradients and moments, then load the moments that are among `tensors`."""
        for parameter in self.parameters.values():
            parameter.grad = None
        self.optimizer = torch.optim.AdamW(self.parameters.values(), lr=0.0)
        for name, parameter in self.parameters.items():
            state = {
                # AdamW wants its step counter on the CPU.
                part: tensors[key] if part == "step" else tensors[key].to(parameter)
                for part in ADAM_STATE
                if (key := f"adam.{name}.{part}") in tensors
            }
            if state:
                self.optimizer.state[parameter] = state

    def optimizer_tensors(self) -> dict[str, torch.Tensor]:
        """Return the optimizer's state on the CPU, by parameter and part."""
        return {
            f"adam.{name}.{part}": value.detach().cpu().contiguous()
            for name, parameter in self.parameters.items()
            for part, value in self.optimizer.state.get(parameter, {}).items()
        }


class Parking:
    """Keeps what training runs hold in memory within a limit; the others are in files.

    Those of silent clients give way first, then those that were used longest ago. A run that comes
    back is the same to the bit: weights, accumulated gradients and moments.

    Args:
        folder: of the files.
        limit: returns the bytes that runs may hold now; the one in use is there whatever its size.
        silent: whether the client of a run is silent.

    Attributes:
        written: bytes of the files.
    """

    def __init__(
        self,
        folder: Path = Path(),
        limit: Callable[[], int] = lambda: sys.maxsize,
        silent: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._folder, self._limit, self._silent = folder, limit, silent
        # The least recently used first.
        self._runs: OrderedDict[str, AdapterTraining] = OrderedDict()
        # The file, the tensors that are empty meanwhile, and their bytes.
        self._parked: dict[str, tuple[Path, dict[str, torch.Tensor], int]] = {}
        self._sizes: dict[str, int] = {}
        self.written = 0

    @property
    def held(self) -> int:
        """Bytes that runs hold in memory."""
        return sum(self._sizes.values())

    def use(self, run_id: str, run: AdapterTraining) -> None:
        """Have a run in memory, with room to grow; it may give way again in the next operation."""
        self.make_room(run_id, run.most)
        self._runs[run_id] = run
        self._runs.move_to_end(run_id)
        if run_id in self._parked:
            file, tensors, _ = self._parked[run_id]
            for name, saved in torch.load(file, weights_only=True).items():
                tensors[name].data = saved
            self._forget_file(run_id)
        self._sizes[run_id] = run.nbytes

    @contextmanager
    def using(self, run_id: str, run: AdapterTraining) -> Iterator[None]:
        """Keep a run in memory within the block, in which it may grow."""
        self.use(run_id, run)
        try:
            yield
        finally:
            self._sizes[run_id] = run.nbytes

    def make_room(self, run_id: str = "", most: int = 0) -> None:
        """Let runs give way until the others and `most` bytes for `run_id` fit in the limit."""
        over = most + self.held - self._sizes.get(run_id, 0) - self._limit()
        if over <= 0:
            return
        spare = self._runs.keys() - self._parked.keys() - {run_id}
        used = [name for name in self._runs if name in spare]
        for name in sorted(used, key=lambda name: not self._silent(name)):
            if over > 0:
                over -= self._sizes[name]
                self._park(name)

    def remove(self, run_id: str) -> None:
        """Forget a run that has ended, if it is known."""
        self._runs.pop(run_id, None)
        self._sizes.pop(run_id, None)
        self._forget_file(run_id)

    def _park(self, run_id: str) -> None:
        file, tensors = self._folder / secrets.token_hex(8), self._runs[run_id].held()
        with replacing(file) as part:
            torch.save({name: tensor.detach() for name, tensor in tensors.items()}, part)
        self._parked[run_id] = file, tensors, self._sizes[run_id]
        self.written += self._sizes[run_id]
        self._sizes[run_id] = 0
        for tensor in tensors.values():
            # Whoever refers to the tensor finds its numbers there again.
            tensor.data = tensor.new_empty(0)

    def _forget_file(self, run_id: str) -> None:
        if run_id in self._parked:
            file, _, size = self._parked.pop(run_id)
            file.unlink(missing_ok=True)
            self.written -= size


def clear_spill(folder: Path) -> Path:
    """Return a folder for what does not fit in memory; an earlier service's files in it go."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        if OURS.match(old.name) and not old.is_dir():
            old.unlink()
    return folder
