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


def _first(header: dict[str, Any]) -> dict[str, Any]:
    return next(entry for name, entry in header.items() if name != "__metadata__")


DAMAGES: dict[str, Callable[[Path], None]] = {
    "weights cut in half": _bytes(lambda content: content[: len(content) // 2]),
    "a header of 2**60 bytes": _bytes(lambda content: struct.pack("<Q", 1 << 60) + content[8:]),
    "a tensor of 2**50 numbers": _header(lambda h: _first(h).update(shape=[1 << 25, 1 << 25])),
    "an unknown type": _header(lambda h: _first(h).update(dtype="F7")),
    "no tensors": _bytes(lambda _: struct.pack("<Q", 2) + b"{}"),
    "cut tokenizer": _bytes(lambda content: content[: len(content) // 2], "tokenizer.json"),
    "tokenizer that is a list": _bytes(lambda _: b"[]", "tokenizer.json"),
    "configuration that is a list": _bytes(lambda _: b"[]", "config.json"),
    "binary configuration": _bytes(lambda _: b"\xff\xfe\x00", "config.json"),
    "2**40 layers": _config(num_hidden_layers=1 << 40),
    "no heads": _config(num_attention_heads=0),
    "a width of 2**40": _config(hidden_size=1 << 40),
    "an unknown model": _config(model_type="nonesuch"),
    "end tokens in words": _config(eos_token_id="end"),
}
