"""LoRA adapters of one base model: train, export, load, and write as PEFT does."""

import hashlib
import json
import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import torch
from safetensors.torch import save
from torch import nn

from tokengym.agents.service.engine.linear import Adapter, LoraLinear, classify_modules, lora_layers
from tokengym.agents.service.errors import BadRequestError

# The hosted service's alpha, as the cookbook's learning-rate rule and exported adapters have it:
# the update is scaled by 32 / rank, so a learning rate means the same at every rank.
LORA_ALPHA = 32
MAX_RANK = 1024
STATES = 5
"""Tensors of an adapter's size that a run may hold: weights, two gradients and two moments."""
ADAM_STATE = ("step", "exp_avg", "exp_avg_sq")
_PREFIX = "lora."


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
    """A copy of one adapter: A [rank, in] and B [out, rank] of each module, as `module.A`."""

    spec: LoraSpec
    tensors: Mapping[str, torch.Tensor]

    @property
    def nbytes(self) -> int:
        """Size of the matrices in bytes."""
        return sum(tensor.nbytes for tensor in self.tensors.values())

    def adapters(self) -> dict[str, Adapter]:
        """Return the layers' adapters by module name."""
        modules = dict.fromkeys(name.rpartition(".")[0] for name in self.tensors)
        pairs = ((m, self.tensors[f"{m}.A"], self.tensors[f"{m}.B"]) for m in modules)
        return {module: Adapter(a, b, self.spec.scaling) for module, a, b in pairs}

    @cached_property
    def digest(self) -> str:
        """Hash of the matrices: equal weights have equal digests, wherever they come from."""
        return checksum(self.tensors)

    def to_tensors(self) -> dict[str, torch.Tensor]:
        """Return the matrices as named tensors, as a checkpoint holds them."""
        return {f"{_PREFIX}{name}": tensor for name, tensor in self.tensors.items()}

    def peft_files(self, model: str) -> dict[str, bytes]:
        """Return the adapter by file name, as `peft.PeftModel.from_pretrained` and vLLM read it.

        Args:
            model: name or directory of the model it belongs to.
        """
        tensors: dict[str, torch.Tensor] = {}
        for name, matrix in self.tensors.items():
            module, _, side = name.rpartition(".")
            tensors[f"base_model.model.{module}.lora_{side}.weight"] = matrix.contiguous()
        config = {
            "peft_type": "LORA",
            "task_type": "CAUSAL_LM",
            "base_model_name_or_path": model,
            "r": self.spec.rank,
            "lora_alpha": LORA_ALPHA,
            "lora_dropout": 0.0,
            "bias": "none",
            "inference_mode": True,
            "target_modules": sorted(self.adapters()),
        }
        return {
            "adapter_model.safetensors": save(tensors, metadata={"format": "pt"}),
            "adapter_config.json": (json.dumps(config, indent=1) + "\n").encode(),
        }

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, torch.Tensor], spec: LoraSpec) -> Self:
        """Find an adapter among named tensors; others are ignored.

        Raises:
            BadRequestError: if there is none.
        """
        names = [name for name in sorted(tensors) if name.startswith(_PREFIX)]
        if not names:
            raise BadRequestError("a checkpoint must hold adapter tensors, this one has none")
        return cls(spec, {name.removeprefix(_PREFIX): tensors[name] for name in names})


class LoraAdapter:
    """An adapter of a model, which it runs with while attached, and its optimizer.

    Compute thread only. A is random from the seed of the specification, B zero.

    Args:
        model: the base model.
        spec: what the adapter acts on.

    Attributes:
        spec: the same.
        parameters: the tensors that are trained by name, in a fixed order.
        former: gradients that were accumulated before the request in progress, by parameter.
        most: bytes that it holds at most.

    Raises:
        BadRequestError: if the model has no such modules.
    """

    optimizer: torch.optim.AdamW

    def __init__(self, model: nn.Module, spec: LoraSpec) -> None:
        self.spec = spec
        self._layers = lora_layers(model)
        targets = _targets(model, spec)
        if not targets:
            raise BadRequestError(
                f"the model has no linear module to train for {sorted(spec.parts)}; "
                f"it has {sorted({part for _, part in classify_modules(model)})}"
            )
        seed = random_seed() if spec.seed is None else spec.seed % (1 << 63)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self._held = {module: _new_adapter(layer, spec) for module, layer in targets.items()}
        self.parameters: dict[str, Any] = {}
        for module, adapter in self._held.items():
            self.parameters |= {f"{module}.A": adapter.a, f"{module}.B": adapter.b}
        self.former: dict[str, torch.Tensor | None] = {}
        self.most = STATES * sum(parameter.nbytes for parameter in self.parameters.values())
        self.reset_optimizer({})

    def attach(self) -> None:
        """Let the model run with this adapter and no other."""
        for name, layer in self._layers.items():
            layer.adapter = self._held.get(name)

    def export(self) -> LoraWeights:
        """Return a copy of the matrices on the CPU."""
        held = self.parameters.items()
        copies = {n: p.detach().to("cpu", torch.float32, copy=True) for n, p in held}
        return LoraWeights(self.spec, copies)

    def load(self, weights: LoraWeights) -> None:
        """Overwrite the matrices.

        Raises:
            BadRequestError: if the modules or shapes differ.
        """
        held = self.parameters
        if held.keys() != weights.tensors.keys():
            odd = sorted(held.keys() ^ weights.tensors.keys())[:3]
            raise BadRequestError(f"the adapter must have the same modules, differs in {odd}")
        for part, new in weights.tensors.items():
            if (shape := held[part].shape) != new.shape:
                raise BadRequestError(
                    f"{part} must have shape {tuple(shape)}, got {tuple(new.shape)}"
                )
        with torch.no_grad():
            for part, new in weights.tensors.items():
                held[part].copy_(new)

    def held(self) -> dict[str, torch.Tensor]:
        """Return all tensors that it holds, by parameter and part."""
        tensors: dict[str, torch.Tensor] = {}
        for name, parameter in self.parameters.items():
            parts = {"gradient": parameter.grad, "former": self.former.get(name)}
            parts |= {"weight": parameter, **self.optimizer.state.get(parameter, {})}
            tensors |= {f"{name}.{part}": one for part, one in parts.items() if one is not None}
        return tensors

    def reset_optimizer(self, tensors: Mapping[str, torch.Tensor]) -> None:
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


def checksum(tensors: Mapping[str, torch.Tensor], text: str = "") -> str:
    """Return a hash of a text and of named tensors."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f"\n{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def adapter_bytes(model: nn.Module, spec: LoraSpec) -> int:
    """Return the size of the matrices of an adapter in bytes."""
    layers = _targets(model, spec).values()
    return sum(4 * spec.rank * (layer.in_features + layer.out_features) for layer in layers)


def _targets(model: nn.Module, spec: LoraSpec) -> dict[str, LoraLinear]:
    parts = dict(classify_modules(model))
    return {name: layer for name, layer in lora_layers(model).items() if parts[name] in spec.parts}


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
