"""A Prompt: the tokens of one role as the chunks of Tinker's ModelInputs, grown by appending."""

from typing import Any, TypeVar

from pydantic import BaseModel
from tinker import EncodedTextChunk, ModelInput

M = TypeVar("M", bound=BaseModel)
_put = object.__setattr__


class Prompt:
    """Tokens that only grow, handed out as ModelInputs that share all their chunks but the last.

    Each `append` makes one chunk, so a conversation of T turns has T chunks, and handing out the
    next observation costs what is new plus T pointers. Pydantic's checks are skipped: they would
    read every token again, and these tokens come from a tokenizer or a sampler.
    """

    def __init__(self) -> None:
        self._chunks: list[EncodedTextChunk] = []

    def append(self, tokens: list[int]) -> None:
        """Add tokens at the end. The list is kept; do not change it afterwards."""
        # The sampler refuses chunks without tokens.
        if tokens:
            fields = {"tokens": tokens, "type": "encoded_text"}
            self._chunks.append(_made(EncodedTextChunk, fields))

    def clear(self) -> None:
        """Start again; ModelInputs handed out before keep what they showed."""
        self._chunks = []

    def model_input(self) -> ModelInput:
        """Return all tokens so far."""
        return _made(ModelInput, {"chunks": self._chunks.copy()})


def _made(kind: type[M], fields: dict[str, Any]) -> M:
    """Return a model with all its fields given: what `model_construct` does, at a third of it."""
    made = object.__new__(kind)
    _put(made, "__dict__", fields)
    _put(made, "__pydantic_fields_set__", set(fields))
    _put(made, "__pydantic_extra__", None)
    _put(made, "__pydantic_private__", None)
    return made
