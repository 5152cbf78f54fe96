"""The byte codec: every text exactly, every token sequence readable."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.envs.core.errors import OptionError
from tokengym.envs.tokens.codec import ByteCodec, Codec, Message, resolve
from tokengym.testing import token_arrays

BYTE = ByteCodec()
tokens = token_arrays(BYTE, max_length=30).map(np.ndarray.tolist)


@given(st.text())
def test_a_written_reply_is_read_as_written(text: str) -> None:
    assert BYTE.read(BYTE.write(text), "stop") == (text, True)
    assert BYTE.read(BYTE.write(text), "length") == (text, False)


@given(st.text(alphabet=st.characters(), max_size=20))
def test_any_string_has_tokens_of_the_vocabulary(text: str) -> None:
    for written in (BYTE.write(text), BYTE.render([Message(text, own=False)])):
        assert all(0 <= token < BYTE.vocab_size for token in written)


@given(tokens, st.sampled_from(["stop", "length", None]))
def test_any_tokens_are_read(action: list[int], why: str | None) -> None:
    reply = BYTE.read(action, why)
    assert reply.complete == (why != "length")
    assert reply.text.encode().decode() == reply.text


@given(st.lists(st.integers(), max_size=5))
def test_ids_of_no_token_are_read_too(action: list[int]) -> None:
    bytes_in = [token for token in action if 0 <= token < 256]
    assert len(BYTE.read(action, None).text) <= len(action)
    assert BYTE.read(bytes_in, None).text == bytes(bytes_in).decode("utf-8", "replace")


@given(st.text(), st.lists(st.tuples(st.text(), st.text()), max_size=4))
def test_appending_equals_rendering(first: str, turns: list[tuple[str, str]]) -> None:
    talk = [Message(first, own=False)]
    appended = BYTE.render(talk)
    for reply, text in turns:
        action = BYTE.write(reply)
        appended += [*action, *BYTE.extend(action, text)]
        talk += [Message(reply, own=True), Message(text, own=False)]
        assert appended == BYTE.render(talk)


@given(tokens, st.text())
def test_a_reply_without_its_end_gets_one(action: list[int], text: str) -> None:
    end = [] if action and action[-1] == BYTE.END else [BYTE.END]
    assert BYTE.extend(action, text) == [*end, *BYTE.render([Message(text, own=False)])]


def test_it_is_a_codec_and_found_by_name() -> None:
    assert isinstance(BYTE, Codec)
    assert isinstance(resolve("byte"), ByteCodec)
    assert resolve(BYTE) is BYTE
    with pytest.raises(OptionError, match="bite"):
        resolve("bite")
