"""Any tinker-cookbook renderer as a codec of ours, built from names so that it travels by name."""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from tinker_cookbook.exceptions import RendererError
from tinker_cookbook.renderers import Renderer, get_renderer, get_text_content
from tinker_cookbook.tokenizer_utils import get_tokenizer

from tokengym.agents.tinker.chat_template import (
    CanonicalReplies,
    Framing,
    assistant,
    broken_up,
    rendered,
    user,
)
from tokengym.agents.tinker.tokenizing import plain_tokenizer
from tokengym.envs.core.errors import OptionError
from tokengym.envs.tokens.codec import ByteCodec, Codec, Message, Reply

_KEEPING = "+keep_thinking"
_PLAIN_REPLIES = ("17", "Fine, p = 0.35", "a\n b", "x\n\ny", "don 't . stop ,", "été 🙂")
_PADDED_REPLIES = (" a\n b \n", "\n\nx")


class RendererCodec:
    """A chat format and a tokenizer, as the cookbook knows them.

    Where the renderer has the extension property conversations are only ever appended to;
    elsewhere they are rendered again at every turn (`append_only` is `False`), from the replies'
    texts without their thinking. That includes renderers that claim the property but lose it to
    the tokenizer: `qwen3_disable_thinking`, say, where blank lines merge with what follows them.

    Texts the policy reads cannot forge the format's special tokens: where the renderer would make
    one of its spelling inside a text, the spelling gets a blank after its first character
    (`shown`). What is no special token can still be imitated: in `role_colon` a text may contain
    the line `Assistant:`.

    Args:
        renderer: a name `tinker_cookbook.renderers.get_renderer` knows.
        tokenizer: a name or a directory `tinker_cookbook.tokenizer_utils.get_tokenizer` knows.
        keep_thinking: for renderers that strip thinking from history: keep it, which gives them
            the extension property.

    Attributes:
        name: what `codec_named` makes it from again.
        renderer: the cookbook's renderer.
        tokenizer: the plain view of its tokenizer.

    Raises:
        OptionError: if no such renderer or tokenizer is to be had, or a renderer that strips no
            thinking is told to keep it.
    """

    def __init__(self, renderer: str, tokenizer: str, *, keep_thinking: bool = False) -> None:
        self.name = f"{renderer}{_KEEPING if keep_thinking else ''}@{tokenizer}"
        try:
            loaded = get_tokenizer(tokenizer)
            made: Any = get_renderer(renderer, loaded, model_name=tokenizer)
        except (OSError, ValueError, RendererError) as error:
            raise OptionError(f"the codec {self.name!r} could not be made: {error}") from error
        if keep_thinking:
            if not hasattr(made, "strip_thinking_from_history"):
                raise OptionError(f"the renderer {renderer!r} strips no thinking from history")
            made.strip_thinking_from_history = False
        self.renderer: Renderer = made
        self.tokenizer = plain_tokenizer(loaded)
        self.vocab_size = self.tokenizer.vocab_size
        self.stop: list[str] | list[int] = self.renderer.get_stop_sequences()
        markers = sorted(self.tokenizer.markers, key=len, reverse=True)
        self._markers = re.compile("|".join(map(re.escape, markers)) or "(?!)")
        self._replies: CanonicalReplies | None = None
        self._framing: Framing | None = None
        # The claim first; where the tokenizer breaks it, what still holds.
        for recurring in (True, False) if self.renderer.has_extension_property else (False,):
            try:
                self._replies = CanonicalReplies(self.renderer, recurring=recurring)
                if recurring:
                    self._framing = Framing(
                        self.renderer, self.tokenizer, self._replies, self._guarded
                    )
            except ValueError:
                continue
            break
        self.append_only = self._framing is not None
        self._plain = self._find_plain()
        self._stop_text = str(self.stop[0])
        self._around = self._find_around()

    def __reduce__(self) -> tuple[Callable[[str], Codec], tuple[str]]:
        """Pickle the name; the codec is made again, once, where it arrives."""
        return codec_named, (self.name,)

    def shown(self, text: str) -> str:
        """Return `text` as it is shown: no special token spelled out in it, no lone surrogates."""
        if not text.isascii():
            text = text.encode("utf-8", "replace").decode("utf-8")
        if self._framing is not None and not self._framing.forgeable:
            return text
        return self._guarded(text)

    def render(self, conversation: Sequence[Message]) -> list[int]:
        """Tokens of a whole conversation; see `Codec.render`."""
        messages = [
            assistant(self.shown(entry.text)) if entry.own else user(self.shown(entry.text))
            for entry in conversation
        ]
        return rendered(self.renderer, messages)

    def extend(self, action: Sequence[int], text: str) -> list[int]:
        """Tokens that follow an action; see `Codec.extend`.

        Raises:
            OptionError: if the codec is not append-only.
        """
        if self._framing is None:
            raise OptionError(f"{self.name} cannot be appended to; render the conversation")
        closing, follower = self._framing.close(action), self._framing.follow(self.shown(text))
        return closing + follower if closing else follower

    def write(self, text: str) -> list[int]:
        """Tokens of a canonical reply; see `Codec.write`.

        That is what the renderer would train on; where not even that continues its own prompts
        with this tokenizer, the text and the stop sequence.
        """
        text = text.encode("utf-8", "replace").decode("utf-8")
        if self._replies is not None:
            return self._replies.write(text)
        stop = self.stop[0]
        end = self.tokenizer.encode(stop) if isinstance(stop, str) else [stop]
        return [*self.tokenizer.encode(text), *end]

    def read(self, action: Sequence[int], stop_reason: str | None) -> Reply:
        """Read an action with the renderer's own parser, thinking removed; see `Codec.read`.

        A reply is complete if the parser found its end and the sampler does not say `length`.
        """
        tokens = action if isinstance(action, list) else list(action)
        if self._plain is not None:
            start, end = self._plain
            body = tokens[len(start) : len(tokens) - len(end)]
            if start + body + end == tokens:
                text = self.tokenizer.decode(body)
                # Everything a parser treats specially is spelled with one of these.
                if "<" not in text and "[" not in text:
                    return Reply(text, stop_reason != "length")
        elif self._around is not None:
            match = self._around.fullmatch(self.tokenizer.decode(tokens))
            if match is not None and self._stop_text not in match[1]:
                return Reply(match[1], stop_reason != "length")
        return self._parse(tokens, stop_reason)

    def _parse(self, tokens: list[int], stop_reason: str | None) -> Reply:
        try:
            message, termination = self.renderer.parse_response(tokens)
            text = get_text_content(message)
        # Renderers raise all kinds of errors at tokens no model should sample; a policy may.
        except Exception:
            return Reply(self.tokenizer.decode(tokens), complete=False)
        return Reply(text, termination.is_clean and stop_reason != "length")

    def _guarded(self, text: str) -> str:
        return self._markers.sub(lambda match: broken_up(match[0]), text)

    def _find_plain(self) -> tuple[list[int], list[int]] | None:
        """Return the tokens around a plain reply, if the parser returns just what they enclose."""
        found: set[tuple[tuple[int, ...], tuple[int, ...]]] = set()
        for text in (*_PLAIN_REPLIES, *_PADDED_REPLIES):
            tokens = self.write(text)
            inner = self.tokenizer.encode(text)
            places = [i for i in range(len(tokens)) if tokens[i : i + len(inner)] == inner]
            if not places or self._parse(tokens, "stop") != Reply(text, complete=True):
                return None
            found.add((tuple(tokens[: places[0]]), tuple(tokens[places[0] + len(inner) :])))
        if len(found) > 1:
            return None
        start, end = found.pop()
        return list(start), list(end)

    def _find_around(self) -> re.Pattern[str] | None:
        """Return how a plain reply without blanks around it is written, if its text is all of it.

        That is looked for in formats that end with a string: their parsers go by the text alone.
        """
        if not isinstance(self.stop[0], str):
            return None
        found: set[tuple[str, str]] = set()
        for text in _PLAIN_REPLIES:
            tokens = self.write(text)
            before, _, after = self.tokenizer.decode(tokens).partition(text)
            whole = self._parse(tokens, "stop") == Reply(text, complete=True)
            if after != self._stop_text or not whole:
                return None
            found.add((before, after))
        if len(found) > 1:
            return None
        before, after = map(re.escape, found.pop())
        # Everything else that a parser treats specially is spelled with one of these.
        return re.compile(rf"{before}((?!\s)[^<\[]*(?<!\s)){after}")


@cache
def codec_named(name: str) -> Codec:
    """Return the codec of a name, made once per process.

    Args:
        name: `byte`, or `renderer@tokenizer` such as `qwen3_instruct@Qwen/Qwen3-8B` or
            `role_colon@path/to/model`; the renderer may be followed by `+keep_thinking`.

    Raises:
        OptionError: if the name has no such form or names what is not there.
    """
    if name == ByteCodec.name:
        return ByteCodec()
    renderer, at, tokenizer = name.partition("@")
    if not (renderer and at and tokenizer):
        raise OptionError(f"a codec is 'byte' or 'renderer@tokenizer', got {name!r}")
    keeps = renderer.endswith(_KEEPING)
    return RendererCodec(renderer.removesuffix(_KEEPING), tokenizer, keep_thinking=keeps)


def as_codec(codec: "str | Codec") -> Codec:
    """Return a codec given by name or as an object."""
    return codec_named(codec) if isinstance(codec, str) else codec
