"""SmolLM2-135M-Instruct: its tokenizer is exact, and it knows the capital of France."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, AutoTokenizer

from tokengym.agents.models import resolve_model
from tokengym.agents.models.files import check_model_directory

pytestmark = pytest.mark.reference_model

BYTES_WITHOUT_A_TOKEN = re.compile("[\x04\x06\x13\x14\x16\x1d\U00040000-\U000bffff]")
"""Six control characters and planes nobody uses: the model's vocabulary lacks a byte of theirs."""


@pytest.fixture(scope="module")
def tokenizer(reference_directory: Path) -> Any:
    return AutoTokenizer.from_pretrained(reference_directory)


@pytest.mark.nightly
def test_its_directory_is_whole(reference_directory: Path) -> None:
    check_model_directory(reference_directory)
    assert resolve_model("smollm2") == reference_directory


@pytest.mark.nightly
def test_its_vocabulary_is_that_of_the_model(tokenizer: Any, reference_directory: Path) -> None:
    assert len(tokenizer) == tokenizer.vocab_size == 49152
    assert set(tokenizer.get_vocab().values()) == set(range(49152))


@given(text=st.text())
def test_decode_undoes_encode(tokenizer: Any, text: str) -> None:
    kept = BYTES_WITHOUT_A_TOKEN.sub("", text)
    encoded = tokenizer.encode(kept, add_special_tokens=False, split_special_tokens=True)
    assert tokenizer.decode(encoded) == kept


@pytest.mark.nightly
def test_it_knows_the_capital_of_france(tokenizer: Any, reference_directory: Path) -> None:
    model: Any = AutoModelForCausalLM.from_pretrained(reference_directory, dtype=torch.float32)
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": "What is the capital of France?"}],
        add_generation_prompt=True,
        return_tensors="pt",
        return_dict=True,
    )
    reply = model.generate(**prompt, do_sample=False, max_new_tokens=20)
    text = tokenizer.decode(reply[0, prompt["input_ids"].shape[1] :], skip_special_tokens=True)
    assert text == "The capital of France is Paris."
