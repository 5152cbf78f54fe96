"""A GGUF file as a Hugging Face model directory.

transformers dequantises the weights to float32; the tokenizer is our own, see `write_tokenizer`.
Nothing is approximated: every tensor has its place in the architecture, or the file is refused.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tokengym.agents.models.files import ModelError
from tokengym.agents.models.tokenizer import check_merges, special_ids, write_tokenizer

ARCHITECTURES = ("llama", "qwen2", "qwen3")
"""Architectures whose conversion is tested, by their names in GGUF."""
_ARCHITECTURE = "general.architecture"
_LEFT_OUT = ("expert_count", "rope.scaling.factor")
"""Fields that transformers does not read as they are meant: experts, scaled rotary embeddings."""


def convert(path: Path, directory: Path) -> None:
    """Write the model of a GGUF file into an empty folder.

    Raises:
        ModelError: if the file is damaged, or cannot be converted exactly.
    """
    import torch
    from transformers import AutoModelForCausalLM

    metadata, tensors = _read(path)
    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            path.parent, gguf_file=path.name, dtype=torch.float32, output_loading_info=True
        )
    except Exception as error:  # of a damaged file anything may be raised
        raise ModelError(f"{str(path)!r} cannot be converted: {error}") from error
    model, loading = loaded
    if missing := sorted(loading["missing_keys"]):
        raise ModelError(f"{str(path)!r} has no tensor for {missing[0]!r}")
    places = len(list(model.parameters()))  # tied ones count once, as in the file
    if tensors != places:
        raise ModelError(
            f"{str(path)!r} holds {tensors} tensors; a {type(model).__name__} has a place for "
            f"{places}"
        )
    model.config.rms_norm_eps = float(str(np.float32(model.config.rms_norm_eps)))
    tokens = special_ids(metadata)
    for role in ("bos", "eos", "pad"):
        for settings in (model.config, model.generation_config):
            setattr(settings, f"{role}_token_id", tokens.get(role))
    write_tokenizer(metadata, directory, model.config.max_position_embeddings)
    model.save_pretrained(directory)
    check_merges(metadata, directory)


def _read(path: Path) -> tuple[Mapping[str, Any], int]:
    """Return the metadata of a GGUF file of a known architecture, and its number of tensors.

    Raises:
        ModelError: if the file is damaged, or of another architecture.
    """
    from gguf import GGUFReader

    def check(architecture: object) -> None:
        if architecture not in ARCHITECTURES:
            raise ModelError(
                f"{str(path)!r} is of the architecture {architecture!r}; "
                f"only {', '.join(ARCHITECTURES)} can be read from GGUF"
            )

    class Bounded(GGUFReader):
        """A reader that ends with the file, and at an architecture that is not known.

        The file ends it however many entries an array claims. The architecture comes first, before
        what takes long to read: the tokens.
        """

        def _push_field(self, field: Any, *skip_sum: Any, **other: Any) -> int:
            if field.name == _ARCHITECTURE:
                check(field.contents())
            return int(super()._push_field(field, *skip_sum, **other))

        def _get(self, offset: int, dtype: Any, count: int = 1, *order: Any, **other: Any) -> Any:
            if offset + int(count) * np.dtype(dtype).itemsize > len(self.data):
                raise ValueError("it ends within a value")
            return super()._get(offset, dtype, count, *order, **other)

    try:
        reader = Bounded(path)
        metadata = {name: field.contents() for name, field in reader.fields.items()}
    except (ValueError, LookupError, OverflowError, MemoryError) as error:
        raise ModelError(f"{str(path)!r} cannot be read as GGUF: {error}") from error
    architecture = metadata.get(_ARCHITECTURE)
    check(architecture)
    for name in _LEFT_OUT:
        if metadata.get(f"{architecture}.{name}"):
            raise ModelError(f"{str(path)!r} cannot be read: it has {name}")
    return metadata, len(reader.tensors)
