"""The GGUF file of the reference model as a Hugging Face model directory.

The file is one whose hash is known: nothing in it is checked. Weights are dequantised exactly, to
float32; tied weights are written once.
"""

from pathlib import Path
from typing import Any

import numpy as np

from tokengym.agents.models.tokenizer import special_ids, write_tokenizer


def convert(path: Path, directory: Path) -> None:
    """Write the model of a GGUF file into an empty folder.

    Args:
        path: the file.
        directory: the folder.
    """
    import torch
    from gguf import GGUFReader
    from transformers import AutoModelForCausalLM

    metadata = {name: field.contents() for name, field in GGUFReader(path).fields.items()}
    model: Any = AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32
    )
    model.config.rms_norm_eps = float(str(np.float32(model.config.rms_norm_eps)))
    tokens = special_ids(metadata)
    for role in ("bos", "eos", "pad"):
        for settings in (model.config, model.generation_config):
            setattr(settings, f"{role}_token_id", tokens.get(role))
    write_tokenizer(metadata, directory, model.config.max_position_embeddings)
    model.save_pretrained(directory)
