"""Code and pickled weights that come with a model are not run, nor is anybody asked to run them."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
import torch

from tokengym.agents.models import ModelError
from tokengym.agents.service.engine.base_model import BaseModel
from tokengym.agents.service.errors import ModelDirectoryError
from tokengym.agents.tinker.tokenizer_loading import load_tokenizer, trust_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

TOKENIZER = {"auto_map": {"AutoTokenizer": ["evil.Evil", "evil.Evil"]}, "tokenizer_class": "Evil"}
MODEL = {"auto_map": {"AutoConfig": "evil.Evil", "AutoModelForCausalLM": "evil.Evil"}}


@pytest.fixture
def copied(model_dir: Path, tmp_path: Path) -> Path:
    """The tiny model with code in its directory that leaves a trace when it runs."""
    folder = tmp_path / "model"
    shutil.copytree(model_dir, folder)
    trace = tmp_path / "trace"
    (folder / "evil.py").write_text(
        f"from pathlib import Path\nPath({str(trace)!r}).touch()\n"
        "from transformers import PreTrainedTokenizerFast\n"
        "class Evil(PreTrainedTokenizerFast):\n    pass\n"
    )
    return folder


def add(path: Path, entry: dict[str, Any]) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **entry}))


@pytest.mark.parametrize(
    ("name", "entry"),
    [("tokenizer_config.json", TOKENIZER), ("config.json", {**MODEL, "model_type": "evil"})],
)
def test_a_model_with_code_is_refused_in_one_sentence(
    copied: Path, name: str, entry: dict[str, Any]
) -> None:
    add(copied / name, entry)
    with pytest.raises(ModelDirectoryError, match="not run without --trust-remote-code") as caught:
        BaseModel(copied, "cpu")
    assert "\n" not in str(caught.value)
    assert not (copied.parent / "trace").exists()


def test_tokenizers_code_runs_only_where_trusted(copied: Path) -> None:
    add(copied / "tokenizer_config.json", TOKENIZER)
    with pytest.raises(ModelError, match="not run without --trust-remote-code"):
        load_tokenizer(str(copied))
    assert not (copied.parent / "trace").exists()
    trust_tokenizer(str(copied))
    assert type(load_tokenizer(str(copied))).__name__ == "Evil"
    assert (copied.parent / "trace").exists()


def test_pickled_weights_are_not_read(copied: Path) -> None:
    (copied / "model.safetensors").unlink()
    torch.save({}, copied / "pytorch_model.bin")
    with pytest.raises(ModelDirectoryError, match="safetensors"):
        BaseModel(copied, "cpu")
