"""Ways to damage a model directory."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

WEIGHTS = "model.safetensors"


def _bytes(change: Callable[[bytes], bytes], name: str = WEIGHTS) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        file = folder / name
        file.write_bytes(change(file.read_bytes()))

    return damage


def _header(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """Change the header of the weights, which says where each tensor lies."""

    def rewritten(content: bytes) -> bytes:
        (length,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8 : 8 + length])
        change(header)
        text = json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + content[8 + length :]

    return _bytes(rewritten)


def _config(**fields: Any) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        file = folder / "config.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))

    return damage


def _overlap(header: dict[str, Any]) -> None:
    for name, entry in header.items():
        if "norm" in name:
            entry["data_offsets"] = _first(header)["data_offsets"]


def _cut(header: dict[str, Any]) -> None:
    """Leave the weights in their file, and three of them in the header."""
    for name in list(header)[3:]:
        del header[name]


def _first(header: dict[str, Any]) -> dict[str, Any]:
    return next(entry for name, entry in header.items() if name != "__metadata__")


NESTED = b"[" * 200_000 + b"]" * 200_000
DAMAGES: dict[str, Callable[[Path], None]] = {
    "weights cut in half": _bytes(lambda content: content[: len(content) // 2]),
    "weights without their end": _bytes(lambda content: content[:-1]),
    "weights with more at their end": _bytes(lambda content: content + b"0" * 64),
    "weights cut in their header": _bytes(lambda content: content[:50]),
    "empty weights": _bytes(lambda _: b""),
    "weights of zeros": _bytes(lambda content: bytes(len(content))),
    "a header of 2**60 bytes": _bytes(lambda content: struct.pack("<Q", 1 << 60) + content[8:]),
    "a header that is no JSON": _bytes(lambda content: content[:8] + b"x" * 100 + content[108:]),
    "a nested header": _bytes(lambda _: struct.pack("<Q", len(NESTED)) + NESTED),
    "a tensor of 2**50 numbers": _header(lambda h: _first(h).update(shape=[1 << 25, 1 << 25])),
    "a tensor of negative size": _header(lambda h: _first(h).update(shape=[-1, 64])),
    "an unknown type": _header(lambda h: _first(h).update(dtype="F7")),
    "swapped ends": _header(lambda h: _first(h).update(data_offsets=[100, 0])),
    "overlapping tensors": _header(_overlap),
    "no tensors": _bytes(lambda _: struct.pack("<Q", 2) + b"{}"),
    "only three tensors": _header(_cut),
    "nested tokenizer": _bytes(lambda _: NESTED, "tokenizer.json"),
    "cut tokenizer": _bytes(lambda content: content[: len(content) // 2], "tokenizer.json"),
    "tokenizer of another kind": _bytes(lambda _: b'{"model": {"type": "None"}}', "tokenizer.json"),
    "tokenizer that is a list": _bytes(lambda _: b"[]", "tokenizer.json"),
    "nested configuration": _bytes(lambda _: NESTED, "config.json"),
    "configuration that is a list": _bytes(lambda _: b"[]", "config.json"),
    "binary configuration": _bytes(lambda _: b"\xff\xfe\x00", "config.json"),
    "no layers": _config(num_hidden_layers=0),
    "fewer than no layers": _config(num_hidden_layers=-1),
    "2**40 layers": _config(num_hidden_layers=1 << 40),
    "more layers than weights": _config(num_hidden_layers=3),
    "no heads": _config(num_attention_heads=0),
    "negative heads": _config(num_attention_heads=-4),
    "no key heads": _config(num_key_value_heads=0),
    "heads that do not divide": _config(num_key_value_heads=3),
    "no width": _config(hidden_size=0),
    "negative width": _config(hidden_size=-64),
    "a width of 2**40": _config(hidden_size=1 << 40),
    "2**40 layers of any kind": _config(num_hidden_layers=1 << 40, layer_types=None),
    "more layers than weights, of any kind": _config(num_hidden_layers=3, layer_types=None),
    "another width": _config(hidden_size=128),
    "no context": _config(max_position_embeddings=0),
    "negative context": _config(max_position_embeddings=-1),
    "a vocabulary of 2**40": _config(vocab_size=1 << 40),
    "no vocabulary": _config(vocab_size=0),
    "no inner width": _config(intermediate_size=0),
    "an inner width of 2**40": _config(intermediate_size=1 << 40),
    "a width in words": _config(hidden_size="64"),
    "an unknown model": _config(model_type="nonesuch"),
    "a model that is a number": _config(model_type=7),
    "layers of an unknown kind": _config(layer_types=["none", "none"]),
    "an unknown activation": _config(hidden_act="none"),
    "end tokens in words": _config(eos_token_id="end"),
}
