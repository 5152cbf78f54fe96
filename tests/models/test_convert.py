"""GGUF files become model directories whose logits are those transformers computes from them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from safetensors import safe_open
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.models.tiny_gguf import metadata, tokens, write_gguf
from tokengym.agents.models import ModelError
from tokengym.agents.models.convert import convert
from tokengym.agents.models.files import check_model_directory
from tokengym.agents.models.tokenizer import check_merges

CASES = [
    ("llama", Kind.F32, False),
    ("llama", Kind.Q4_1, True),
    ("qwen2", Kind.Q8_0, True),
    ("qwen3", Kind.F16, False),
]


@pytest.fixture
def converted(tmp_path: Path) -> Path:
    directory = tmp_path / "model"
    directory.mkdir()
    return directory


@pytest.mark.nightly
@pytest.mark.parametrize(("architecture", "kind", "head"), CASES)
def test_logits_are_those_of_transformers(
    architecture: str, kind: Kind, head: bool, tmp_path: Path, converted: Path
) -> None:
    file = write_gguf(tmp_path / "tiny.gguf", architecture, kind, head=head)
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
    assert json.loads((converted / "generation_config.json").read_text())["eos_token_id"] == 2
    assert json.loads((converted / "config.json").read_text())["rms_norm_eps"] == 1e-5
    with safe_open(converted / "model.safetensors", "np") as weights:
        assert all(weights.get_tensor(name).dtype == np.float32 for name in weights.keys())  # noqa: SIM118


REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "architecture": ({"architecture": "gemma3"}, "architecture 'gemma3'"),
    "tensor without a place": (
        {"extra": {"rope_freqs.weight": np.ones(8, "f4")}},
        "holds 21 tensors; a LlamaForCausalLM has a place for 20",
    ),
    "missing tensor": (
        {"without": "blk.1.ffn_up.weight"},
        "no tensor for 'model.layers.1.mlp.up_proj.weight'",
    ),
    "mixture of experts": ({"fields": {"llama.expert_count": 8}}, "expert_count"),
    "scaled rotary embedding": (
        {"fields": {"llama.rope.scaling.factor": 4.0}},
        "rope.scaling.factor",
    ),
    "SentencePiece": ({"fields": {"tokenizer.ggml.model": "llama"}}, "byte-level BPE"),
    "unknown splitting": ({"fields": {"tokenizer.ggml.pre": "tekken"}}, "got 'tekken'"),
    "wrong number of heads": ({"fields": {"llama.attention.head_count": 5}}, "cannot be converted"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_cannot_be_converted_exactly_is_refused(
    case: str, tmp_path: Path, converted: Path
) -> None:
    arguments, message = REFUSALS[case]
    file = write_gguf(tmp_path / "tiny.gguf", **arguments)
    with pytest.raises(ModelError, match=message):
        convert(file, converted)


def test_an_architecture_is_refused_before_the_tokens_are_read(
    tmp_path: Path, converted: Path
) -> None:
    file = write_gguf(tmp_path / "tiny.gguf", "gemma3")
    content = file.read_bytes()
    file.write_bytes(content[: content.index(b"tokenizer.ggml.tokens")])
    with pytest.raises(ModelError, match="architecture 'gemma3'"):
        convert(file, converted)


def test_a_tokenizer_without_the_merges_of_the_file_is_refused(
    tmp_path: Path, converted: Path
) -> None:
    convert(write_gguf(tmp_path / "tiny.gguf"), converted)
    path = converted / "tokenizer.json"
    content = json.loads(path.read_text())
    ranks = [[token, -float(rank)] for rank, token in enumerate(tokens())]
    content["model"] = {"type": "Unigram", "unk_id": 0, "vocab": ranks, "byte_fallback": False}
    path.write_text(json.dumps(content))
    with pytest.raises(ModelError, match="as Unigram with 0 merges; the GGUF file has 5"):
        check_merges(metadata(), converted)
    with pytest.raises(ModelError, match="a Unigram model with ranks for scores"):
        check_model_directory(converted)
    content["model"]["vocab"][1][1] = -2.5
    path.write_text(json.dumps(content))
    check_model_directory(converted)


@pytest.mark.parametrize("size", [0, 3, 100, 5000, -1000])
def test_a_damaged_file_is_refused(size: int, tmp_path: Path, converted: Path) -> None:
    file = write_gguf(tmp_path / "tiny.gguf")
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(ModelError, match=r"cannot be (read|converted)"):
        convert(file, converted)


@pytest.mark.nightly
def test_an_array_longer_than_its_file_is_refused(tmp_path: Path, converted: Path) -> None:
    file = write_gguf(tmp_path / "tiny.gguf")
    content = file.read_bytes()
    name = b"tokenizer.ggml.token_type"
    # After its name come the type, that of the entries, and their number.
    at = content.index(name) + len(name) + 8
    file.write_bytes(content[:at] + (1 << 50).to_bytes(8, "little") + content[at + 8 :])
    with pytest.raises(ModelError, match="cannot be read as GGUF: it ends within a value"):
        convert(file, converted)
