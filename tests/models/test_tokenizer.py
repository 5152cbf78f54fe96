"""Tokenizers of GGUF files: exact in both directions, within the vocabulary, safe to save."""

import functools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from tests.models.tiny_gguf import SPECIAL, metadata, tokens
from tokengym.agents.models import ModelError
from tokengym.agents.models.tokenizer import SPLITTERS, build_tokenizer

SPLITTER_NAMES = st.sampled_from(sorted(SPLITTERS))


@functools.cache
def reloaded(splitter: str) -> Any:
    """A tokenizer as it comes back from its file."""
    return Tokenizer.from_str(build_tokenizer(metadata(splitter)).to_str())


@given(st.sampled_from(["gpt-2", "llama-bpe", "smollm"]), st.text())
def test_decode_undoes_encode(splitter: str, text: str) -> None:
    tokenizer = reloaded(splitter)
    tokenizer.encode_special_tokens = True
    encoded = tokenizer.encode(text).ids
    assert tokenizer.decode(encoded, skip_special_tokens=False) == text
    assert all(len(SPECIAL) <= token < len(tokens()) for token in encoded)


@given(SPLITTER_NAMES)
def test_the_vocabulary_is_that_of_the_file(splitter: str) -> None:
    assert reloaded(splitter).get_vocab() == {token: i for i, token in enumerate(tokens())}


@given(SPLITTER_NAMES)
def test_special_tokens_are_one_token(splitter: str) -> None:
    tokenizer = reloaded(splitter)
    tokenizer.encode_special_tokens = False
    assert tokenizer.encode("<|im_start|>the<|im_end|>").tokens == [SPECIAL[1], "the", SPECIAL[2]]


@pytest.mark.parametrize(
    ("splitter", "number"),
    [
        ("smollm", ["1", "2", "Ġ", "1", "2"]),
        ("qwen2", ["1", "2", "Ġ", "1", "2"]),
        ("llama-bpe", ["12", "Ġ", "12"]),
        ("gpt-2", ["12", "Ġ", "12"]),
    ],
)
def test_numbers_are_split_as_the_model_learned_them(splitter: str, number: list[str]) -> None:
    assert reloaded(splitter).encode("12 12").tokens == number


def test_a_first_token_is_added_where_the_file_says_so() -> None:
    fields = {**metadata("llama-bpe"), "tokenizer.ggml.add_bos_token": True}
    assert build_tokenizer(fields).encode("the").tokens == [SPECIAL[1], "the"]


@pytest.mark.parametrize(("field", "value"), [("pre", "unheard"), ("pre", None), ("model", "bert")])
def test_an_unknown_tokenizer_is_refused(field: str, value: str | None) -> None:
    with pytest.raises(ModelError, match=repr(value)):
        build_tokenizer({**metadata(), f"tokenizer.ggml.{field}": value})
