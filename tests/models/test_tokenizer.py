"""The tokenizer of a GGUF file: exact in both directions, within the vocabulary, safe to save."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from tests.models.tiny_gguf import SPECIAL, metadata, tokens
from tokengym.agents.models.tokenizer import build_tokenizer


@pytest.fixture(scope="module")
def reloaded() -> Any:
    """A tokenizer as it comes back from its file."""
    return Tokenizer.from_str(build_tokenizer(metadata()).to_str())


@given(text=st.text())
def test_decode_undoes_encode(reloaded: Any, text: str) -> None:
    reloaded.encode_special_tokens = True
    encoded = reloaded.encode(text).ids
    assert reloaded.decode(encoded, skip_special_tokens=False) == text
    assert all(len(SPECIAL) <= token < len(tokens()) for token in encoded)


def test_the_vocabulary_is_that_of_the_file(reloaded: Any) -> None:
    assert reloaded.get_vocab() == {token: i for i, token in enumerate(tokens())}


def test_special_tokens_are_one_token(reloaded: Any) -> None:
    reloaded.encode_special_tokens = False
    assert reloaded.encode("<|im_start|>the<|im_end|>").tokens == [SPECIAL[1], "the", SPECIAL[2]]


def test_numbers_are_split_into_digits(reloaded: Any) -> None:
    assert reloaded.encode("12 12").tokens == ["1", "2", "Ġ", "1", "2"]
