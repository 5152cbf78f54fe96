"""A chat completion, read once: the reply, and what its endpoint says of it.

Endpoints depart from OpenAI's schema in every field. An answer without a message that can be read
is broken; of anything else, what cannot be read is not known.
"""

import json
from collections.abc import Callable
from typing import Annotated, Any, Self

from pydantic import AliasPath, BaseModel, Field, ValidationError, WrapValidator


def _if_readable(value: Any, read: Callable[[Any], Any]) -> Any:
    """Return what is read of a value; `None` where that fails, and of a boolean."""
    try:
        return None if isinstance(value, bool) else read(value)
    except ValidationError:
        return None


def _at(name: str, *path: str | int) -> Any:
    return Field(None, validation_alias=AliasPath(name, *path))


_Word = Annotated[str | None, WrapValidator(_if_readable)]
# A count has its place in a float, as which it is summed.
_Count = Annotated[int | None, Field(ge=0, le=2**53), WrapValidator(_if_readable)]


class _Part(BaseModel):
    type: _Word = None
    text: str | None = None


class ChatAnswer(BaseModel):
    """An answer of an endpoint.

    Attributes:
        message: the first reply's message.
        content: its text, or parts; those of other types than `text` are ignored.
        refusal: the text by which the model declined; `None` if it did not.
        finish_reason: why the reply ended; `None` if not known, as the following.
        prompt_tokens: tokens read, at least 0.
        completion_tokens: tokens written, at least 0.
        model: the model that answered.
    """

    message: dict[Any, Any] = Field(validation_alias=AliasPath("choices", 0, "message"))
    content: str | list[_Part] | None = _at("choices", 0, "message", "content")
    refusal: _Word = _at("choices", 0, "message", "refusal")
    finish_reason: _Word = _at("choices", 0, "finish_reason")
    prompt_tokens: _Count = _at("usage", "prompt_tokens")
    completion_tokens: _Count = _at("usage", "completion_tokens")
    model: _Word = None

    @classmethod
    def read(cls, content: bytes) -> Self:
        """Read the body of an answer.

        Raises:
            ValueError, RecursionError: if it is no JSON, there is no message with a text, parts of
                a text or neither, or an error ended the reply.
        """
        # JSON can spell halves of surrogate pairs, which no file can hold.
        data = json.dumps(json.loads(content), ensure_ascii=False).encode("utf-8", "replace")
        answer = cls.model_validate_json(data)
        if answer.finish_reason == "error":
            raise ValueError(answer.finish_reason)
        return answer

    @property
    def text(self) -> str:
        """The reply: its content, or how it refuses. Reasoning in a field of its own is none."""
        content = self.content
        if isinstance(content, list):
            content = "".join(part.text or "" for part in content if part.type == "text")
        return content or self.refusal or ""
