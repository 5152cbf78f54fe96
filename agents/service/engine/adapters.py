"""LoRA adapters of one base model: attach, activate, export and load."""

from __future__ import annotations

import hashlib
import math
import secrets
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from tokengym.agents.service.engine.linear import Adapter, LoraLinear, classify_modules, lora_layers
from tokengym.agents.service.errors import BadRequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# The hosted service's alpha, as the cookbook's learning-rate rule and exported adapters have it:
# the update is scaled by 32 / rank, so a learning rate means the same at every rank.
LORA_ALPHA = 32
MAX_RANK = 1024


def random_seed() -> int:
    """Return a random seed of 63 bits."""
    return secrets.randbits(63)


@dataclass(frozen=True)
class LoraSpec:
    """An adapter's rank and the parts of the model it acts on."""

    rank: int
    train_attn: bool = True
    train_mlp: bool = True
    train_unembed: bool = True
    seed: int | None = None

    def __post_init__(self) -> None:
        """Check the rank, and that the adapter acts on something."""
        if not 1 <= self.rank <= MAX_RANK:
            raise BadRequestError(f"rank must be between 1 and {MAX_RANK}, got {self.rank}")
        if not self.parts:
            raise BadRequestError("one of train_attn, train_mlp, train_unembed must be true")

    @property
    def parts(self) -> frozenset[str]:
        """The parts of the model it acts on: `attn`, `mlp`, `unembed`."""
        flags = (self.train_attn, self.train_mlp, self.train_unembed)
        return frozenset(p for p, on in zip(("attn", "mlp", "unembed"), flags, strict=True) if on)

    @property
    def scaling(self) -> float:
        """The factor that scales B A."""
        return LORA_ALPHA / self.rank


@dataclass(frozen=True)
class LoraWeights:
    """A copy of one adapter: matrices A [rank, in] and B [out, rank] by module name."""

    spec: LoraSpec
    tensors: Mapping[str, tuple[torch.Tensor, torch.Tensor]]

    @property
    def nbytes(self) -> int:
        """Size of the matrices in bytes."""
        return sum(a.nbytes + b.nbytes for a, b in self.tensors.values())

    def adapters(self) -> dict[str, Adapter]:
        """Return the layers' adapters by module name."""
        scaling = self.spec.scaling
        return {module: Adapter(a, b, scaling) for module, (a, b) in self.tensors.items()}

    @cached_property
    def digest(self) -> str:
        """Hash of the matrices: equal weights have equal digests, wherever they come from."""
        digest = hashlib.blake2b(digest_size=16)
        for name, tensor in sorted(self.to_tensors().items()):
            digest.update(name.encode())
            digest.update(tensor.contiguous().numpy().data)
        return digest.hexdigest()

    def to_tensors(self) -> dict[str, torch.Tensor]:
        """Return the matrices as named tensors, as a checkpoint holds them."""
        pairs = self.tensors.items()
        return {
            f"lora.{m}.{side}": part
            for m, pair in pairs
            for side, part in zip("AB", pair, strict=True)
        }

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, torch.Tensor], spec: LoraSpec) -> LoraWeights:
        """Find an adapter among named tensors; others are ignored.

        Raises:
            BadRequestError: if there is none.
        """
        modules = [
            name.removeprefix("lora.").removesuffix(".A")
            for name in tensors
            if name.startswith("lora.") and name.endswith(".A")
        ]
        if not modules:
            raise BadRequestError("a checkpoint must hold adapter tensors, this one has none")
        pairs = {m: (tensors[f"lora.{m}.A"], tensors[f"lora.{m}.B"]) for m in sorted(modules)}
        return cls(spec, pairs)


class LoraAdapters:
    """All adapters of one base model. Compute thread only.

    Args:
        model: the base model.
        new_seed: gives the seed of an adapter whose specification names none.
    """

    def __init__(self, model: nn.Module, new_seed: Callable[[], int] = random_seed) -> None:
        self._new_seed = new_seed
        self._parts = dict(classify_modules(model))
        self._layers = lora_layers(model)
        self._held: dict[str, dict[str, Adapter]] = {}
        self._active: str | None = None

    def create(self, name: str, spec: LoraSpec) -> None:
        """Add and activate a new adapter: A random from the spec's seed, B zero."""
        targets = [module for module in self._layers if self._parts[module] in spec.parts]
        if not targets:
            raise BadRequestError(
                f"the model has no linear module to train for {sorted(spec.parts)}; "
                f"it has {sorted(set(self._parts.values()))}"
            )
        seed = self._new_seed() if spec.seed is None else spec.seed % (1 << 63)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self._held[name] = {
                module: _new_adapter(self._layers[module], spec) for module in targets
            }
        self.activate(name)

    def nbytes(self, spec: LoraSpec) -> int:
        """Return the size of the matrices of an adapter in bytes."""
        layers = [layer for m, layer in self._layers.items() if self._parts[m] in spec.parts]
        return sum(4 * spec.rank * (layer.in_features + layer.out_features) for layer in layers)

    def activate(self, name: str) -> None:
        """Make `name` the adapter that the model runs with and trains."""
        if self._active != name:
            self._attach(self._held[name])
            self._active = name

    def delete(self, name: str) -> None:
        """Remove an adapter and free its tensors."""
        del self._held[name]
        self._attach({})
        self._active = None

    def parameters(self, name: str) -> dict[str, nn.Parameter]:
        """Return an adapter's trained tensors by name, in a fixed order."""
        parameters: dict[str, Any] = {}
        for module, adapter in self._held[name].items():
            parameters[f"{module}.A"], parameters[f"{module}.B"] = adapter.a, adapter.b
        return parameters

    def export(self, name: str, spec: LoraSpec) -> LoraWeights:
        """Return a copy of an adapter's matrices on the CPU."""
        layers = self._held[name].items()
        return LoraWeights(spec, {module: (_copied(x.a), _copied(x.b)) for module, x in layers})

    def load(self, name: str, weights: LoraWeights) -> None:
        """Overwrite an adapter's matrices.

        Raises:
            BadRequestError: if the modules or shapes differ.
        """
        held = self._held[name]
        if held.keys() != weights.tensors.keys():
            odd = sorted(held.keys() ^ weights.tensors.keys())[:3]
            raise BadRequestError(f"the adapter must have the same modules, differs in {odd}")
        for module, (a, b) in weights.tensors.items():
            for own, new in ((held[module].a, a), (held[module].b, b)):
                if own.shape != new.shape:
                    raise BadRequestError(
                        f"{module} must have shape {tuple(own.shape)}, got {tuple(new.shape)}"
                    )
        with torch.no_grad():
            for module, (a, b) in weights.tensors.items():
                held[module].a.copy_(a)
                held[module].b.copy_(b)

    def _attach(self, adapters: Mapping[str, Adapter]) -> None:
        for name, layer in self._layers.items():
            layer.adapter = adapters.get(name)


def _new_adapter(layer: LoraLinear, spec: LoraSpec) -> Adapter:
    # Random numbers are consumed as in peft, so that a seed gives the same adapter as there.
    a = nn.Linear(layer.in_features, spec.rank, bias=False)
    b = nn.Linear(spec.rank, layer.out_features, bias=False)
    nn.init.kaiming_uniform_(a.weight, a=math.sqrt(5))
    nn.init.zeros_(b.weight)
    device = layer.weight.device
    return Adapter(
        nn.Parameter(a.weight.detach().to(device)),
        nn.Parameter(b.weight.detach().to(device)),
        spec.scaling,
    )


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().to("cpu", torch.float32, copy=True)
