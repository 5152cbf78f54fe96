"""A GGUF file as a Hugging Face model directory, without torch or transformers.

Weights are dequantised to float32 one tensor at a time, so that memory stays at that of the largest
tensor. Nothing is approximated: every tensor has its place in the architecture, or the file is
refused.
"""

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tokengym.agents.models.errors import ModelError
from tokengym.agents.models.tokenizer import special_ids, write_tokenizer

_TOP = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
}
_HEAD = {"output.weight": "lm_head.weight"}
_BLOCK = {
    "attn_norm.weight": "input_layernorm.weight",
    "attn_q.weight": "self_attn.q_proj.weight",
    "attn_k.weight": "self_attn.k_proj.weight",
    "attn_v.weight": "self_attn.v_proj.weight",
    "attn_output.weight": "self_attn.o_proj.weight",
    "ffn_norm.weight": "post_attention_layernorm.weight",
    "ffn_gate.weight": "mlp.gate_proj.weight",
    "ffn_up.weight": "mlp.up_proj.weight",
    "ffn_down.weight": "mlp.down_proj.weight",
}
_BIASES = {f"attn_{name}.bias": f"self_attn.{name}_proj.bias" for name in "qkv"}
_NORMS = {f"attn_{name}_norm.weight": f"self_attn.{name}_norm.weight" for name in "qk"}


@dataclass(frozen=True)
class Architecture:
    """How one architecture is laid out in GGUF.

    Attributes:
        model_class: the class of transformers.
        block: tensors of a layer, by their names in GGUF.
        interleaved: whether rows of queries and keys are stored pairwise interleaved.
    """

    model_class: str
    block: Mapping[str, str]
    interleaved: bool = False


ARCHITECTURES: Mapping[str, Architecture] = {
    "llama": Architecture("LlamaForCausalLM", _BLOCK, interleaved=True),
    "qwen2": Architecture("Qwen2ForCausalLM", _BLOCK | _BIASES),
    "qwen3": Architecture("Qwen3ForCausalLM", _BLOCK | _NORMS),
}


@dataclass(frozen=True)
class GGUF:
    """What a GGUF file holds.

    Attributes:
        path: the file.
        metadata: its key-value pairs.
        tensors: by name; still quantised, and read from the file when they are used.
    """

    path: Path
    metadata: Mapping[str, Any]
    tensors: Mapping[str, Any]

    @property
    def architecture(self) -> str:
        """The architecture's name in GGUF, such as `llama`."""
        return str(self.metadata.get("general.architecture"))

    def field(self, name: str, default: Any = None) -> Any:
        """Return a field of the architecture, such as `block_count`.

        Raises:
            ModelError: if it is missing and has no default.
        """
        value = self.metadata.get(f"{self.architecture}.{name}", default)
        if value is None:
            raise ModelError(f"{str(self.path)!r} has no field {self.architecture}.{name}")
        return value


def read_gguf(path: Path) -> GGUF:
    """Read a GGUF file of an architecture known here.

    Raises:
        ModelError: if the file is damaged, or of another architecture.
    """
    from gguf import GGUFReader

    try:
        reader = GGUFReader(path)
        metadata = {name: field.contents() for name, field in reader.fields.items()}
    except (ValueError, LookupError, OverflowError, MemoryError) as error:
        raise ModelError(f"{str(path)!r} cannot be read as GGUF: {error}") from error
    read = GGUF(path, metadata, {tensor.name: tensor for tensor in reader.tensors})
    if read.architecture not in ARCHITECTURES:
        raise ModelError(
            f"{str(path)!r} is of the architecture {read.architecture!r}; "
            f"only {', '.join(ARCHITECTURES)} can be read from GGUF"
        )
    return read


def convert(path: Path, directory: Path) -> None:
    """Write the model of a GGUF file into an empty folder.

    Raises:
        ModelError: if the file cannot be converted exactly.
    """
    read = read_gguf(path)
    config = model_config(read)
    names = tensor_names(read)
    write_tokenizer(read.metadata, directory, config["max_position_embeddings"])
    generation = {
        key: value
        for key, value in config.items()
        if key in ("bos_token_id", "eos_token_id", "pad_token_id")
    }
    _write_json(directory / "generation_config.json", generation)
    try:
        write_tensors(read, names, directory / "model.safetensors")
    except (ValueError, NotImplementedError) as error:
        raise ModelError(f"a tensor of {str(path)!r} cannot be converted: {error}") from error
    _write_json(directory / "config.json", config)


def model_config(read: GGUF) -> dict[str, Any]:
    """Return the contents of `config.json`.

    Raises:
        ModelError: for mixtures of experts and scaled rotary embeddings, which GGUF does not
            describe as transformers does.
    """
    for name in ("expert_count", "rope.scaling.factor"):
        if read.field(name, 0):
            raise ModelError(f"{str(read.path)!r} cannot be read: it has {name}")
    if "token_embd.weight" not in read.tensors:
        raise ModelError(f"{str(read.path)!r} has no tensor 'token_embd.weight'")
    width, heads = int(read.field("embedding_length")), int(read.field("attention.head_count"))
    config = {
        "architectures": [ARCHITECTURES[read.architecture].model_class],
        "model_type": read.architecture,
        "dtype": "float32",
        "hidden_act": "silu",
        "vocab_size": int(read.tensors["token_embd.weight"].shape[1]),
        "hidden_size": width,
        "intermediate_size": int(read.field("feed_forward_length")),
        "num_hidden_layers": int(read.field("block_count")),
        "num_attention_heads": heads,
        "num_key_value_heads": int(read.field("attention.head_count_kv", heads)),
        "head_dim": int(read.field("attention.key_length", width // heads)),
        "max_position_embeddings": int(read.field("context_length")),
        "rms_norm_eps": _shortest(read.field("attention.layer_norm_rms_epsilon")),
        "rope_theta": _shortest(read.field("rope.freq_base", 10000.0)),
        "tie_word_embeddings": "output.weight" not in read.tensors,
    }
    tokens = special_ids(read.metadata)
    return config | {f"{r}_token_id": tokens.get(r) for r in ("bos", "eos", "pad")}


def tensor_names(read: GGUF) -> dict[str, str]:
    """Return the name in transformers of every tensor of the file.

    Raises:
        ModelError: if the file lacks a tensor, or has one that the architecture has no place for.
    """
    architecture = ARCHITECTURES[read.architecture]
    names = dict(_TOP)
    for layer in range(int(read.field("block_count"))):
        for old, new in architecture.block.items():
            names[f"blk.{layer}.{old}"] = f"model.layers.{layer}.{new}"
    missing = [name for name in names if name not in read.tensors]
    if missing:
        raise ModelError(f"{str(read.path)!r} has no tensor {missing[0]!r}")
    names |= {name: new for name, new in _HEAD.items() if name in read.tensors}
    unknown = [name for name in read.tensors if name not in names]
    if unknown:
        raise ModelError(
            f"{str(read.path)!r} holds a tensor {unknown[0]!r}, for which a "
            f"{architecture.model_class} has no place"
        )
    return names


def write_tensors(read: GGUF, names: Mapping[str, str], path: Path) -> None:
    """Write the tensors as float32 safetensors, one after the other.

    Args:
        read: the GGUF file.
        names: names of its tensors in transformers.
        path: the file to write.
    """
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for old, new in names.items():
        shape = [int(length) for length in reversed(read.tensors[old].shape)]
        end = offset + 4 * int(np.prod(shape))
        header[new] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the format aligns the data to eight bytes
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in _arrays(read, names):
            file.write(np.ascontiguousarray(array, "<f4").data)


def _arrays(read: GGUF, names: Mapping[str, str]) -> Iterator[npt.NDArray[np.float32]]:
    """Yield the dequantised tensors in order."""
    from gguf.quants import dequantize

    heads = int(read.field("attention.head_count"))
    rows = {
        "attn_q.weight": heads,
        "attn_k.weight": int(read.field("attention.head_count_kv", heads)),
    }
    interleaved = ARCHITECTURES[read.architecture].interleaved
    for name in names:
        tensor = read.tensors[name]
        array = dequantize(tensor.data, tensor.tensor_type)
        part = name.split(".", 2)[-1]
        yield _separate_halves(array, rows[part]) if interleaved and part in rows else array


def _separate_halves(array: npt.NDArray[np.float32], heads: int) -> npt.NDArray[np.float32]:
    """Undo the interleaving of each head's rows: GGUF rotates pairs, transformers halves."""
    return array.reshape(heads, -1, 2, array.shape[1]).swapaxes(1, 2).reshape(array.shape)


def _shortest(value: float) -> float:
    """Return the shortest decimal of a float32: 1e-05, not 9.999999747378752e-06."""
    return float(str(np.float32(value)))


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")
