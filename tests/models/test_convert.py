"""A GGUF file becomes a model directory whose logits are those transformers computes from it."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from safetensors import safe_open
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.models.tiny_gguf import MERGES, tokens, write_gguf
from tokengym.agents.models.convert import convert
from tokengym.agents.models.files import check_model_directory


@pytest.fixture
def converted(tmp_path: Path) -> Path:
    directory = tmp_path / "model"
    directory.mkdir()
    return directory


@pytest.mark.nightly
@pytest.mark.parametrize("kind", [Kind.F32, Kind.Q4_1])
def test_logits_are_those_of_transformers(kind: Kind, tmp_path: Path, converted: Path) -> None:
    file = write_gguf(tmp_path / "tiny.gguf", kind)
    convert(file, converted)
    ours = AutoModelForCausalLM.from_pretrained(converted)
    theirs = AutoModelForCausalLM.from_pretrained(
        tmp_path, gguf_file=file.name, dtype=torch.float32
    )
    assert type(ours) is type(theirs)
    ids = torch.arange(3, 60)[None]
    with torch.no_grad():
        expected = theirs(ids).logits
        assert torch.equal(ours(ids).logits, expected)
    assert expected.std() > 0.1


def test_the_directory_is_whole(tmp_path: Path, converted: Path) -> None:
    convert(write_gguf(tmp_path / "tiny.gguf"), converted)
    check_model_directory(converted)
    tokenizer = AutoTokenizer.from_pretrained(converted)
    assert len(tokenizer) == len(tokens())
    assert (tokenizer.eos_token, tokenizer.pad_token) == ("<|im_end|>", "<|endoftext|>")
    shown = tokenizer.apply_chat_template([{"role": "user", "content": "hi"}], tokenize=False)
    assert shown == "hi"
    model = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    assert [" ".join(pair) for pair in model["merges"]] == MERGES
    assert json.loads((converted / "generation_config.json").read_text())["eos_token_id"] == 2
    assert json.loads((converted / "config.json").read_text())["rms_norm_eps"] == 1e-5
    with safe_open(converted / "model.safetensors", "np") as weights:
        assert all(weights.get_tensor(name).dtype == np.float32 for name in weights.keys())  # noqa: SIM118
