"""The plain view of a tokenizer is exact: it gives the tokenizer's own tokens."""

import json
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tinker_cookbook.tokenizer_utils import get_tokenizer, is_tokenizer_registered
from transformers import AutoTokenizer

from tokengym.agents.models import ModelError
from tokengym.agents.tinker.tokenizer_loading import load_tokenizer
from tokengym.agents.tinker.tokenizing import FastTokenizer, PlainTokenizer, plain_tokenizer
from tokengym.agents.toy_model import MODEL_DIR

KINDS = ("bpe", "like-qwen", "words", "Qwen3", "inkling")
printable = st.text(st.characters(min_codepoint=32, max_codepoint=126) | st.just("\n"))
texts = st.lists(
    printable | st.text() | st.sampled_from(("<|im_end|>", "<think>", " ", "\n\n", "'s", "  a")),
    max_size=5,
).map("".join)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def plain(kind: str, tokenizer_named: Callable[[str], str]) -> PlainTokenizer:
    return plain_tokenizer(get_tokenizer(tokenizer_named(kind)))


@pytest.mark.parametrize("own", ["bpe", "like-qwen", "words"])
def test_the_tokens_are_the_tokenizers_own(own: str, tokenizer_named: Callable[[str], str]) -> None:
    tokenizer = get_tokenizer(tokenizer_named(own))
    plain = plain_tokenizer(tokenizer)
    assert isinstance(plain, FastTokenizer)

    @given(texts)
    def law(text: str) -> None:
        tokens = tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
        assert plain.encode(text) == tokens
        assert plain.decode(tokens) == tokenizer.decode(tokens)

    law()


def test_text_survives_and_no_token_is_special(kind: str, plain: PlainTokenizer) -> None:
    @given(texts)
    @example("\uf900")
    def law(text: str) -> None:
        tokens = plain.encode(text)
        # Qwen3's composes characters before it splits them.
        kept = unicodedata.normalize("NFC", text) if kind == "Qwen3" else text
        assert plain.decode(tokens) == kept
        assert all(0 <= token < plain.vocab_size for token in tokens)
        assert not plain.special_tokens & {plain.decode([token]) for token in tokens}

    law()


def test_ids_of_no_token_are_left_out(plain: PlainTokenizer) -> None:
    tokens = plain.encode("abc")
    for strange in (-1, plain.vocab_size, 2**40):
        assert plain.decode([strange, *tokens]) == "abc"


@pytest.mark.parametrize("own", ["bpe", "like-qwen", "words"])
def test_any_ids_are_decoded_as_the_tokenizer_does(
    own: str, tokenizer_named: Callable[[str], str]
) -> None:
    tokenizer = get_tokenizer(tokenizer_named(own))
    backend = tokenizer.backend_tokenizer
    plain = plain_tokenizer(tokenizer)

    @given(st.lists(st.integers(0, plain.vocab_size + 3), max_size=12))
    def law(tokens: list[int]) -> None:
        assert plain.decode(tokens) == backend.decode(tokens, skip_special_tokens=False)

    law()


def test_the_last_id_is_a_token(plain: PlainTokenizer) -> None:
    assert plain.decode([plain.vocab_size - 1])


def test_what_is_handed_out_may_be_changed(plain: PlainTokenizer) -> None:
    first = plain.encode("Hour 3: price 0.32")
    kept = first.copy()
    first.clear()
    assert plain.encode("Hour 3: price 0.32") == kept


@pytest.mark.parametrize("kind", ["starting policy", "like-qwen"])
def test_a_directory_gives_what_auto_tokenizer_would(
    kind: str, tokenizer_named: Callable[[str], str]
) -> None:
    directory = str(MODEL_DIR) if kind == "starting policy" else tokenizer_named(kind)
    found, wanted = load_tokenizer(directory), AutoTokenizer.from_pretrained(directory)
    assert is_tokenizer_registered(directory)
    assert get_tokenizer(directory) is found
    assert type(found) is type(wanted)
    assert found.backend_tokenizer.to_str() == wanted.backend_tokenizer.to_str()
    assert found.special_tokens_map == wanted.special_tokens_map
    assert found.chat_template == wanted.chat_template


def test_a_directory_with_code_of_its_own_is_refused(tmp_path: Path) -> None:
    config = {"tokenizer_class": "TokenizersBackend", "auto_map": {"AutoTokenizer": ["a.B", None]}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="auto_map"):
        load_tokenizer(str(tmp_path))
    # The cookbook's own trainer asks for it by the same name, and is refused as well.
    with pytest.raises(ModelError, match="auto_map"):
        get_tokenizer(str(tmp_path))
