"""The tokenizer of the reference model's GGUF file, written as the files transformers reads.

transformers' own conversion loses the byte-level decoder and the splitting rules when it is saved,
so the tokenizer is built here from the file's tokens and merges. Numbers are split into digits.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

_CONTROL = 3
"""Value of `tokenizer.ggml.token_type` for special tokens."""
_ROLES = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
"""Roles of tokens in transformers, and their names in GGUF."""


def write_tokenizer(metadata: Mapping[str, Any], directory: Path, context: int) -> None:
    """Write `tokenizer.json`, `tokenizer_config.json` and the chat template of a GGUF file.

    Args:
        metadata: the file's key-value pairs.
        directory: where the files go.
        context: longest sequence of the model, in tokens.
    """
    build_tokenizer(metadata).save(str(directory / "tokenizer.json"))
    tokens = metadata["tokenizer.ggml.tokens"]
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_max_length": context,
        **{f"{role}_token": tokens[token] for role, token in special_ids(metadata).items()},
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
    template = metadata["tokenizer.chat_template"]
    (directory / "chat_template.jinja").write_text(template, encoding="utf-8")


def build_tokenizer(metadata: Mapping[str, Any]) -> Tokenizer:
    """Return the tokenizer that a GGUF file describes, byte-level BPE."""
    tokens = metadata["tokenizer.ggml.tokens"]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    merges = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    digits = pre_tokenizers.Digits(individual_digits=True)
    words = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, words])
    tokenizer.decoder = decoders.ByteLevel()
    for token, kind in zip(tokens, metadata["tokenizer.ggml.token_type"], strict=True):
        if kind == _CONTROL:
            tokenizer.add_tokens([AddedToken(token, normalized=False, special=True)])
    return tokenizer


def special_ids(metadata: Mapping[str, Any]) -> dict[str, int]:
    """Return the ids of the tokens with a role: any of bos, eos, unk and pad."""
    ids = {role: metadata.get(f"tokenizer.ggml.{name}_token_id") for role, name in _ROLES.items()}
    return {role: token for role, token in ids.items() if token is not None}
