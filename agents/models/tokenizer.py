"""The tokenizer of a GGUF file, written as the files transformers reads.

transformers' own conversion loses the byte-level decoder and the splitting rules when it is saved,
so the tokenizer is built here from the file's tokens and merges.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers.processors import TemplateProcessing

from tokengym.agents.models.files import ModelError

CONTROL, USER_DEFINED = 3, 4
"""Values of `tokenizer.ggml.token_type`: special tokens, and added tokens that are plain text."""

_QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _smollm() -> Any:
    digits = pre_tokenizers.Digits(individual_digits=True)
    return pre_tokenizers.Sequence([digits, _byte_level(use_regex=True)])


def _pattern(regex: str) -> Any:
    split = pre_tokenizers.Split(Regex(regex), "isolated")
    return pre_tokenizers.Sequence([split, _byte_level(use_regex=False)])


def _byte_level(*, use_regex: bool) -> Any:
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)


SPLITTERS: Mapping[str, Callable[[], Any]] = {
    "gpt-2": lambda: _byte_level(use_regex=True),
    "smollm": _smollm,
    "qwen2": lambda: _pattern(_QWEN2),
    "llama-bpe": lambda: _pattern(_LLAMA3),
}
"""How text is split into words, by `tokenizer.ggml.pre`."""


def write_tokenizer(metadata: Mapping[str, Any], directory: Path, context: int) -> None:
    """Write `tokenizer.json`, `tokenizer_config.json` and the chat template of a GGUF file.

    Args:
        metadata: the file's key-value pairs.
        directory: where the files go.
        context: longest sequence of the model, in tokens.

    Raises:
        ModelError: for a kind of tokenizer that is not byte-level BPE, or one whose splitting
            rules are not known here.
    """
    tokenizer = build_tokenizer(metadata)
    tokenizer.save(str(directory / "tokenizer.json"))
    tokens = metadata["tokenizer.ggml.tokens"]
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_max_length": context,
        **{f"{role}_token": tokens[token] for role, token in special_ids(metadata).items()},
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
    template = metadata.get("tokenizer.chat_template")
    if template:
        (directory / "chat_template.jinja").write_text(template, encoding="utf-8")


def build_tokenizer(metadata: Mapping[str, Any]) -> Tokenizer:
    """Return the tokenizer that a GGUF file describes.

    Raises:
        ModelError: see `write_tokenizer`.
    """
    kind = metadata.get("tokenizer.ggml.model")
    splitter: Any = metadata.get("tokenizer.ggml.pre")
    if kind != "gpt2":
        raise ModelError(f"only byte-level BPE tokenizers ('gpt2') can be read, got {kind!r}")
    if splitter not in SPLITTERS:
        raise ModelError(
            f"the tokenizer's pre-tokenizer must be one of {sorted(SPLITTERS)}, got {splitter!r}"
        )
    tokens = metadata["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(
        models.BPE(
            vocab={token: number for number, token in enumerate(tokens)},
            merges=merges,
            ignore_merges=splitter == "llama-bpe",
        )
    )
    if splitter == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = SPLITTERS[splitter]()
    tokenizer.decoder = decoders.ByteLevel()
    kinds = metadata.get("tokenizer.ggml.token_type", [])
    for token, token_kind in zip(tokens, kinds, strict=False):
        if token_kind in (CONTROL, USER_DEFINED):
            special = token_kind == CONTROL
            tokenizer.add_tokens([AddedToken(token, normalized=False, special=special)])
    begin = special_ids(metadata).get("bos")
    if metadata.get("tokenizer.ggml.add_bos_token") and begin is not None:
        name = tokens[begin]
        tokenizer.post_processor = TemplateProcessing(
            single=f"{name} $A", pair=f"{name} $A {name} $B", special_tokens=[(name, begin)]
        )
    return tokenizer


def check_merges(metadata: Mapping[str, Any], directory: Path) -> None:
    """Check that what transformers makes of a written tokenizer merges as the GGUF file says.

    It makes some tokenizers anew, of another kind, by the model's architecture.

    Raises:
        ModelError: if it does not.
    """
    from transformers import AutoTokenizer

    loaded: Any = AutoTokenizer.from_pretrained(directory)
    model = json.loads(loaded.backend_tokenizer.to_str())["model"]
    merges = [" ".join(pair) for pair in model.get("merges", ())]
    if model["type"] != "BPE" or merges != list(metadata["tokenizer.ggml.merges"]):
        raise ModelError(
            f"transformers reads the tokenizer as {model['type']} with {len(merges):,} merges; the "
            f"GGUF file has {len(metadata['tokenizer.ggml.merges']):,}, which it does not keep"
        )


def special_ids(metadata: Mapping[str, Any]) -> dict[str, int]:
    """Return the ids of the tokens with a role: any of bos, eos, unk and pad."""
    names = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
    ids = {role: metadata.get(f"tokenizer.ggml.{name}_token_id") for role, name in names.items()}
    count = len(metadata["tokenizer.ggml.tokens"])
    return {role: token for role, token in ids.items() if token is not None and token < count}
