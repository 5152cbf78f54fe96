"""Loading a tokenizer as the cookbook does, without the modelling code of transformers."""

import json
from functools import cache, partial
from pathlib import Path
from typing import Any

from tinker_cookbook.tokenizer_utils import (
    get_tokenizer,
    is_tokenizer_registered,
    register_tokenizer,
)


def load_tokenizer(name: str) -> Any:
    """Return the tokenizer that the cookbook's `get_tokenizer` knows by a name or a directory.

    The cookbook asks `AutoTokenizer`, which imports the modelling code of transformers to find the
    tokenizer's class; that takes seconds. A directory whose `tokenizer_config.json` names the
    common class of fast tokenizers is loaded by that class, which is what `AutoTokenizer` would
    come to. It is registered with the cookbook, so that its trainer gets the same object.

    Raises:
        OSError, ValueError: if there is no such tokenizer.
    """
    if not is_tokenizer_registered(name) and _is_fast(Path(name)):
        register_tokenizer(name, cache(partial(_load_fast, name)))
    return get_tokenizer(name)


def _is_fast(directory: Path) -> bool:
    """Whether a directory names the common class of fast tokenizers, and no code of its own."""
    path = directory / "tokenizer_config.json"
    if not path.is_file():
        return False
    config = json.loads(path.read_text(encoding="utf-8"))
    return config.get("tokenizer_class") == "TokenizersBackend" and "auto_map" not in config


def _load_fast(directory: str) -> Any:
    from transformers.tokenization_utils_tokenizers import TokenizersBackend

    return TokenizersBackend.from_pretrained(directory)
