"""The codec contract, and the built-in byte codec that needs no download.

A codec frames a conversation as tokens. For a canonical reply, appending must give exactly what
rendering the whole conversation would give; a codec that cannot promise it says so.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from tokengym.envs.core.episode import DecodedReply
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.tools import Tool
from tokengym.rewards.arrays import Ints

TokenArray = Ints
"""A one-dimensional array of token ids."""


class Message(NamedTuple):
    """One entry of a conversation. `own` is true for the policy's replies."""

    text: str
    own: bool


@runtime_checkable
class Codec(Protocol):
    """Tokenizer and chat format, as far as an Episode needs them."""

    @property
    def name(self) -> str:
        """A name from which the codec can be made again in another process."""
        ...

    @property
    def vocab_size(self) -> int:
        """Token ids are in `[0, vocab_size)`."""
        ...

    @property
    def append_only(self) -> bool:
        """Whether a conversation can be continued without rendering its past again."""
        ...

    @property
    def stop(self) -> list[str] | list[int]:
        """Stop sequences for the sampler, all strings or all token ids."""
        ...

    def render(self, conversation: Sequence[Message]) -> Sequence[int]:
        """Tokens of a whole conversation, up to where the policy's next reply begins."""
        ...

    def extend(self, action: Sequence[int], text: str) -> Sequence[int]:
        """Tokens after a sampled action: the rest of its end marker, `text`, the next opening."""
        ...

    def write(self, text: str) -> Sequence[int]:
        """Tokens of a canonical reply with its end marker, as a perfect sampler would emit them."""
        ...

    def read(self, action: Sequence[int], stop_reason: str | None) -> DecodedReply:
        """Read an action; `stop_reason` is `stop`, `length`, or `None` if that is not known."""
        ...


@runtime_checkable
class ToolCodec(Codec, Protocol):
    """A codec of a chat format in which tools can be declared and called."""

    def with_tools(self, tools: Sequence[Tool]) -> Codec:
        """Return the codec that declares these tools, none if there are none, and reads calls.

        A native call is read as the line of `tokengym.envs.core.tools`.
        """
        ...


def codec_for(codec: Codec, tools: Sequence[Tool]) -> Codec:
    """Return a codec as it serves a world with these tools."""
    return codec.with_tools(tools) if isinstance(codec, ToolCodec) else codec


class ByteCodec:
    """UTF-8 bytes and two markers; every string is exactly representable.

    Ids 0 to 255 are bytes, 256 (`END`) ends a reply, 257 (`OPEN`) ends an observation.
    """

    END = 256
    OPEN = 257

    name = "byte"
    vocab_size = 258
    append_only = True

    @property
    def stop(self) -> list[int]:
        """The reply's end marker."""
        return [self.END]

    def render(self, conversation: Sequence[Message]) -> list[int]:
        """Tokens of a whole conversation; see `Codec.render`."""
        tokens: list[int] = []
        for message in conversation:
            tokens.extend(message.text.encode("utf-8", "replace"))
            tokens.append(self.END if message.own else self.OPEN)
        return tokens

    def extend(self, action: Sequence[int], text: str) -> list[int]:
        """Tokens that follow an action; see `Codec.extend`."""
        head = [] if len(action) and action[-1] == self.END else [self.END]
        return [*head, *text.encode("utf-8", "replace"), self.OPEN]

    def write(self, text: str) -> list[int]:
        """Tokens of a canonical reply; see `Codec.write`."""
        return [*text.encode("utf-8", "replace"), self.END]

    def read(self, action: Sequence[int], stop_reason: str | None) -> DecodedReply:
        """Decode up to the first end marker; bytes that are no UTF-8 become U+FFFD."""
        tokens = list(action)
        if self.END in tokens:
            tokens = tokens[: tokens.index(self.END)]
        # 0xFF never occurs in UTF-8, so whatever is no byte decodes to U+FFFD.
        text = bytes(token if 0 <= token < 256 else 255 for token in tokens)
        return DecodedReply(text.decode("utf-8", "replace"), stop_reason != "length")


def resolve(codec: "str | Codec") -> Codec:
    """Return a codec given by name or as an object.

    Args:
        codec: `byte`, or an object that satisfies `Codec` (such as the renderer codecs of
            `tokengym.agents.tinker`).

    Raises:
        OptionError: if there is no codec of that name.
    """
    if not isinstance(codec, str):
        return codec
    if codec == ByteCodec.name:
        return ByteCodec()
    raise OptionError(
        f"the built-in codec is 'byte', got {codec!r}; for tokenizers and chat formats pass "
        "a codec of tokengym.agents.tinker"
    )
