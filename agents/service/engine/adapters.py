"""LoRA adapters of one base model: attach, activate, export, load and merge.

peft provides the layers; this module decides which modules are attention, MLP or unembedding.
"""

from __future__ import annotations

import secrets
import warnings
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch
from peft import LoraConfig, get_peft_model
from peft.tuners.lora import LoraLayer
from torch import nn
from transformers.pytorch_utils import Conv1D

from tokengym.agents.service.errors import BadRequestError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# The hosted service's alpha, as the cookbook's learning-rate rule and exported adapters have it:
# the update is scaled by 32 / rank, so a learning rate means the same at every rank.
LORA_ALPHA = 32
MAX_RANK = 1024


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
        if not (self.train_attn or self.train_mlp or self.train_unembed):
            raise BadRequestError("one of train_attn, train_mlp, train_unembed must be true")

    @property
    def scaling(self) -> float:
        """The factor that scales B A."""
        return LORA_ALPHA / self.rank

    def as_json(self) -> dict[str, Any]:
        """Return the fields as plain data."""
        return asdict(self)


@dataclass(frozen=True)
class LoraWeights:
    """A copy of one adapter: matrices A [rank, in] and B [out, rank] by module name."""

    spec: LoraSpec
    tensors: Mapping[str, tuple[torch.Tensor, torch.Tensor]]

    @property
    def nbytes(self) -> int:
        """Size of the matrices in bytes."""
        return sum(a.nbytes + b.nbytes for a, b in self.tensors.values())

    def to_tensors(self) -> dict[str, torch.Tensor]:
        """Return the matrices as named tensors, as a checkpoint holds them."""
        found: dict[str, torch.Tensor] = {}
        for module, (a, b) in self.tensors.items():
            found[f"lora.{module}.A"], found[f"lora.{module}.B"] = a, b
        return found

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
    """All adapters of one base model. Compute thread only."""

    def __init__(self, model: nn.Module) -> None:
        self._model: Any = model
        self._peft: Any = None
        self._active: str | None = None
        self._parts = dict(classify_modules(model))

    def create(self, name: str, spec: LoraSpec) -> None:
        """Attach a new adapter: A random from the spec's seed, B zero."""
        targets = self._targets(spec)
        config = LoraConfig(
            r=spec.rank,
            lora_alpha=LORA_ALPHA,
            lora_dropout=0.0,
            target_modules=targets,
            task_type="CAUSAL_LM",
        )
        seed = secrets.randbits(63) if spec.seed is None else spec.seed % (1 << 63)
        with warnings.catch_warnings(), torch.random.fork_rng():
            # peft warns about tied embeddings and second adapters; both are meant here.
            warnings.simplefilter("ignore")
            torch.manual_seed(seed)
            if self._peft is None:
                self._peft = get_peft_model(self._model, config, adapter_name=name)
            else:
                self._peft.add_adapter(name, config)
        self._active = None
        self.activate(name)

    def activate(self, name: str) -> None:
        """Make `name` the adapter that the model runs with and trains."""
        if self._active != name:
            self._peft.set_adapter(name)
            self._active = name

    def delete(self, name: str) -> None:
        """Detach an adapter and free its tensors."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._peft.delete_adapter(name)
        self._active = None

    def parameters(self, name: str) -> dict[str, nn.Parameter]:
        """Return an adapter's trained tensors by name, in a fixed order."""
        found: dict[str, nn.Parameter] = {}
        for module, layer in self._layers(name):
            found[f"{module}.A"] = layer.lora_A[name].weight
            found[f"{module}.B"] = layer.lora_B[name].weight
        return found

    def export(self, name: str, spec: LoraSpec) -> LoraWeights:
        """Return a copy of an adapter's matrices on the CPU."""
        return LoraWeights(
            spec,
            {
                module: (_copied(layer.lora_A[name].weight), _copied(layer.lora_B[name].weight))
                for module, layer in self._layers(name)
            },
        )

    def load(self, name: str, weights: LoraWeights) -> None:
        """Overwrite an adapter's matrices.

        Raises:
            BadRequestError: if the modules or shapes differ.
        """
        layers = dict(self._layers(name))
        if layers.keys() != weights.tensors.keys():
            odd = sorted(layers.keys() ^ weights.tensors.keys())[:3]
            raise BadRequestError(f"the adapter must have the same modules, differs in {odd}")
        for module, (a, b) in weights.tensors.items():
            target = layers[module]
            for kept, new in ((target.lora_A[name], a), (target.lora_B[name], b)):
                if kept.weight.shape != new.shape:
                    raise BadRequestError(
                        f"{module} must have shape {tuple(kept.weight.shape)}, "
                        f"got {tuple(new.shape)}"
                    )
        with torch.no_grad():
            for module, (a, b) in weights.tensors.items():
                layers[module].lora_A[name].weight.copy_(a)
                layers[module].lora_B[name].weight.copy_(b)

    def _layers(self, name: str) -> Iterator[tuple[str, Any]]:
        for module_name in self._parts:
            layer = self._model.get_submodule(module_name)
            if isinstance(layer, LoraLayer) and name in layer.lora_A:
                yield module_name, layer

    def _targets(self, spec: LoraSpec) -> list[str]:
        wanted = {
            part
            for part, on in (
                ("attn", spec.train_attn),
                ("mlp", spec.train_mlp),
                ("unembed", spec.train_unembed),
            )
            if on
        }
        targets = [module for module, part in self._parts.items() if part in wanted]
        if not targets:
            raise BadRequestError(
                f"the model has no linear module to train for {sorted(wanted)}; "
                f"it has {sorted(set(self._parts.values()))}"
            )
        return targets


def classify_modules(model: Any) -> Iterator[tuple[str, str]]:
    """Yield every linear module of a model with its part: `attn`, `mlp` or `unembed`."""
    head = model.get_output_embeddings()
    for name, module in model.named_modules():
        if not isinstance(module, nn.Linear | Conv1D):
            continue
        words = name.lower().split(".")
        if module is head:
            yield name, "unembed"
        elif any("attn" in word or "attention" in word for word in words):
            # A router decides which expert sees a token; it is no part of the attention or MLP.
            yield name, "attn"
        elif not any(word in ("gate", "router") for word in words):
            yield name, "mlp"


def merged_parameters(model: Any, weights: LoraWeights) -> dict[str, nn.Parameter]:
    """Return every adapted module's weight matrix with the adapter added, as a new tensor."""
    merged: dict[str, nn.Parameter] = {}
    for name, (a, b) in weights.tensors.items():
        module = model.get_submodule(name)
        base = module.weight
        delta = (b.to(base.device, torch.float32) @ a.to(base.device, torch.float32)).mul_(
            weights.spec.scaling
        )
        # transformers' Conv1D keeps its matrix as [in, out].
        total = base.float() + (delta.T if isinstance(module, Conv1D) else delta)
        merged[name] = nn.Parameter(total.to(base.dtype), requires_grad=False)
    return merged


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().to("cpu", torch.float32, copy=True)
