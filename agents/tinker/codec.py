"""Any tinker-cookbook renderer as a `Codec`, created from names so that it pickles by name.

The renderer of a model that names none is the one that the cookbook recommends.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, unquote

from tinker_cookbook.exceptions import ConfigurationError, RendererError
from tinker_cookbook.model_info import get_recommended_renderer_name
from tinker_cookbook.renderers import Message as ChatMessage
from tinker_cookbook.renderers import Renderer, ToolSpec, get_renderer, get_text_content

from tokengym.agents.tinker.chat_template import (
    ReplyTemplate,
    TurnTemplate,
    assistant,
    escape_special,
    rendered,
    special_token_pattern,
    user,
)
from tokengym.agents.tinker.tokenizer_loading import load_tokenizer
from tokengym.agents.tinker.tokenizing import plain_tokenizer
from tokengym.envs.core.episode import DecodedReply
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.tools import NOT_PLAYED, Tool, check_tools, native_line
from tokengym.envs.tokens.codec import ByteCodec, Codec, Message

_KEEPING = "+keep_thinking"
_SYSTEM = "+system:"
_TOOLS = "+tools:"
_PLAIN_REPLIES = (
    *("17", "Fine, p = 0.35", "a\n b", "x\n\ny", "don 't . stop ,", "été 🙂"),
    *(" a\n b \n", "\n\nx"),
)
_PUBLISHERS = (
    *("Qwen", "meta-llama", "deepseek-ai", "openai"),
    *("moonshotai", "zai-org", "nvidia", "thinkingmachines"),
)
"""Whose models the cookbook lists."""
_UNLISTED = "qwen3_instruct"
"""For models that the cookbook does not list: ChatML, which SmolLM2 and the small policy use."""
_PLAIN_TEXT = "role_colon"
"""For models without a chat format: it has no special tokens, and fits every tokenizer."""
_MISFITS = (AssertionError, LookupError, TypeError, ValueError)
"""Errors of a renderer whose special tokens a tokenizer lacks."""


class RendererCodec:
    """A chat format and a tokenizer, as the cookbook names them.

    With the renderer's extension property conversations are only appended to; without it they are
    rendered again at every turn (`append_only` is `False`), from the replies' texts without their
    thinking. Some renderers claim the property but lose it to the tokenizer, such as
    `qwen3_disable_thinking`, where blank lines merge with what follows them: they render again too.

    Texts the policy reads cannot forge the format's special tokens: if the renderer would turn the
    spelling of one into the token, the spelling gets a blank after its first character
    (`sanitize`). Other parts of a format can be imitated: in `role_colon` a text may contain the
    line `Assistant:`.

    Tools are declared in the format's own way if it has one and native calls can be appended to. A
    native call is read as the line of `tokengym.envs.core.tools`, after the words before it, and
    what follows it is its result, in the role that the format has for that; after a reply in text,
    lines of calls among them, it is the user's. The first call of a reply is played; the result
    says that the others were not. Elsewhere tools are what the world's texts say of them.

    Args:
        renderer: a name `tinker_cookbook.renderers.get_renderer` knows.
        tokenizer: a name or a directory `tinker_cookbook.tokenizer_utils.get_tokenizer` knows.
        keep_thinking: for renderers that strip thinking from history: keep it, which gives them
            the extension property.
        system: a text that precedes every conversation as the system's; none if empty.
        tools: the tools of the world that is played.

    Attributes:
        name: the name from which `codec_named` makes it.
        renderer: the cookbook's renderer.
        tools: the tools.
        tokenizer: the plain view of its tokenizer.

    Raises:
        OptionError: if there is no such renderer or tokenizer, they do not fit each other, or
            `keep_thinking` is set for a renderer that strips no thinking.
    """

    def __init__(
        self,
        renderer: str,
        tokenizer: str,
        *,
        keep_thinking: bool = False,
        system: str = "",
        tools: Sequence[Tool] = (),
    ) -> None:
        self._bare = codec_name(renderer, tokenizer, keep_thinking=keep_thinking, system=system)
        self.tools = check_tools(tools)
        self.name = codec_name(
            renderer, tokenizer, keep_thinking=keep_thinking, system=system, tools=self.tools
        )
        try:
            loaded = load_tokenizer(tokenizer)
        except (OSError, ValueError) as error:
            reason = str(error).partition("\n")[0]
            raise OptionError(f"the codec {self.name!r} could not be made: {reason}") from error
        try:
            loaded_renderer = _opened(renderer, loaded, tokenizer)
        except RendererError as error:
            raise OptionError(f"the codec {self.name!r} could not be made: {error}") from error
        except _MISFITS as error:
            raise OptionError(
                f"the renderer {renderer!r} does not fit the tokenizer of {tokenizer}, which lacks "
                f"tokens of its format; {_fitting_renderer(loaded, tokenizer)!r} does"
            ) from error
        if keep_thinking:
            if not hasattr(loaded_renderer, "strip_thinking_from_history"):
                raise OptionError(f"the renderer {renderer!r} strips no thinking from history")
            loaded_renderer.strip_thinking_from_history = False
        self.renderer: Renderer = loaded_renderer
        self.stop: list[str] | list[int] = loaded_renderer.get_stop_sequences()
        self._before = [ChatMessage(role="system", content=system)] if system else []
        self.tokenizer = plain_tokenizer(loaded)
        self.vocab_size = self.tokenizer.vocab_size
        self._special_tokens = special_token_pattern(self.tokenizer)
        self._replies: ReplyTemplate | None = None
        self._turns: TurnTemplate | None = None
        # First as the renderer claims; if the tokenizer breaks that, without appending.
        for recurring in (True, False) if self.renderer.has_extension_property else (False,):
            try:
                self._replies = ReplyTemplate(self.renderer, recurring=recurring)
                if recurring:
                    self._turns = TurnTemplate(
                        self.renderer, self.tokenizer, self._replies, self._break_special_tokens
                    )
            except ValueError:
                continue
            break
        self.append_only = self._turns is not None
        begun = rendered(loaded_renderer, [user("")])
        self._opens_thinking = self.tokenizer.decode(begun).rstrip().endswith("<think>")
        self._affixes = self._find_affixes()
        self._results = self._declare_tools(system)

    def __reduce__(self) -> tuple[Callable[[str], Codec], tuple[str]]:
        """Pickle the name; the codec is made again, once, where it arrives."""
        return codec_named, (self.name,)

    def sanitize(self, text: str) -> str:
        """Return `text` without lone surrogates and without the spelling of special tokens."""
        if not text.isascii():
            text = text.encode("utf-8", "replace").decode("utf-8")
        if self._turns is not None and not self._turns.forgeable:
            return text
        return self._break_special_tokens(text)

    def render(self, conversation: Sequence[Message]) -> list[int]:
        """Tokens of a whole conversation; see `Codec.render`."""
        messages = self._before + [
            assistant(self.sanitize(entry.text)) if entry.own else user(self.sanitize(entry.text))
            for entry in conversation
        ]
        return rendered(self.renderer, messages)

    def extend(self, action: Sequence[int], text: str) -> list[int]:
        """Tokens that follow an action; see `Codec.extend`.

        Raises:
            OptionError: if the codec is not append-only.
        """
        if self._turns is None:
            raise OptionError(f"{self.name} cannot be appended to; render the conversation")
        if self._results and (calls := self._calls(action)):
            return self._extend_call(action, calls, text)
        missing_end = self._turns.missing_end(action)
        next_turn = self._turns.next_turn(self.sanitize(text))
        return missing_end + next_turn if missing_end else next_turn

    def write(self, text: str) -> list[int]:
        """Tokens of a canonical reply; see `Codec.write`.

        That is what the renderer would train on; if not even that continues its own prompts with
        this tokenizer, the text and the stop sequence.
        """
        text = text.encode("utf-8", "replace").decode("utf-8")
        if self._replies is not None:
            return self._replies.write(text)
        stop = self.stop[0]
        end = self.tokenizer.encode(stop) if isinstance(stop, str) else [stop]
        return [*self.tokenizer.encode(text), *end]

    def read(self, action: Sequence[int], stop_reason: str | None) -> DecodedReply:
        """Read an action with the renderer's own parser, thinking removed; see `Codec.read`.

        A reply is complete if the parser found its end and the stop reason is not `length`. If the
        prompt opened thinking that the action does not end, the text begins with `<think>`.
        """
        tokens = action if isinstance(action, list) else list(action)
        text = self._plain(tokens)
        if text is not None:
            return DecodedReply(text, stop_reason != "length")
        return self._parse(tokens, stop_reason)

    def with_tools(self, tools: Sequence[Tool]) -> Codec:
        """Return this codec with the tools of a world instead of its own; see `ToolCodec`."""
        same = tuple(tools) == self.tools
        return self if same else codec_named(_with_tools(self._bare, check_tools(tools)))

    def _declare_tools(self, system: str) -> dict[str, TurnTemplate]:
        """Put the tools before conversations, if native calls can be appended to.

        Returns:
            by tool what comes between a call of it and the next reply; nothing without any.
        """
        if self._turns is None or not self.tools:
            return {}
        results = {}
        try:
            specs = [cast(ToolSpec, tool.function) for tool in self.tools]
            before = self.renderer.create_conversation_prefix_with_tools(specs, system)
            for tool in self.tools:
                replies = ReplyTemplate(
                    self.renderer, recurring=True, before=before, tool=tool.name
                )
                if not self.read(replies.write(""), "stop").complete:
                    return {}  # canonical calls lack their end
                results[tool.name] = TurnTemplate(
                    self.renderer, self.tokenizer, replies, self._break_special_tokens
                )
        except (NotImplementedError, RendererError, ValueError):
            return {}
        self._before = before
        return results

    def _extend_call(
        self, action: Sequence[int], calls: Sequence[tuple[str, str]], text: str
    ) -> list[int]:
        """Return the tokens that follow native calls: the result of the first, and of the others.

        A name that no tool has gets its result as the first tool would.
        """
        results = self._results
        turns = results.get(calls[0][0], next(iter(results.values())))
        shown = "\n".join([text, *[NOT_PLAYED] * (len(calls) - 1)])
        next_turn = turns.next_turn(self.sanitize(shown))
        # Formats end a call in ways of their own, which the sampler may have left out.
        ended = action[-1] in (*self.stop, turns.end)
        return next_turn if ended else [turns.end, *next_turn]

    def _plain(self, tokens: list[int]) -> str | None:
        """Return the text of a reply in which no parser sees anything else; `None` of others."""
        if self._affixes is None:
            return None
        start, end = self._affixes
        body = tokens[len(start) : len(tokens) - len(end)]
        if start + body + end != tokens:
            return None
        text = self.tokenizer.decode(body)
        # Whatever a parser treats specially contains one of these.
        return None if "<" in text or "[" in text else text

    def _calls(self, action: Sequence[int]) -> list[tuple[str, str]]:
        """Return the native calls of a reply, names and arguments."""
        tokens = list(action)
        if self._plain(tokens) is not None:
            return []
        try:
            return _native_calls(self.renderer.parse_response(tokens)[0])
        except Exception:  # as in `_parse`
            return []

    def _parse(self, tokens: list[int], stop_reason: str | None) -> DecodedReply:
        try:
            message, termination = self.renderer.parse_response(tokens)
            text = get_text_content(message)
            if self.tools and (calls := _native_calls(message)):
                line = native_line(*calls[0])
                text = f"{text.strip()}\n{line}".lstrip()
        # A policy may sample tokens that no model should; renderers then raise all sorts of errors.
        except Exception:
            return DecodedReply(self.tokenizer.decode(tokens), complete=False)
        if self._opens_thinking and "</think>" not in self.tokenizer.decode(tokens):
            text = f"<think>{text}"  # parsers take thinking that never ends for text
        return DecodedReply(text, termination.is_clean and stop_reason != "length")

    def _break_special_tokens(self, text: str) -> str:
        return self._special_tokens.sub(lambda match: escape_special(match[0]), text)

    def _find_affixes(self) -> tuple[list[int], list[int]] | None:
        """Return the tokens around a plain reply, if the parser returns just what they enclose."""
        affixes: set[tuple[tuple[int, ...], tuple[int, ...]]] = set()
        for text in _PLAIN_REPLIES:
            tokens = self.write(text)
            inner = self.tokenizer.encode(text)
            starts = [i for i in range(len(tokens)) if tokens[i : i + len(inner)] == inner]
            if not starts or self._parse(tokens, "stop") != DecodedReply(text, complete=True):
                return None
            affixes.add((tuple(tokens[: starts[0]]), tuple(tokens[starts[0] + len(inner) :])))
        if len(affixes) > 1:
            return None
        start, end = affixes.pop()
        return list(start), list(end)


def _native_calls(message: ChatMessage) -> list[tuple[str, str]]:
    """Return name and arguments of each call, also where the parser could not read them."""
    parsed = [
        (call.function.name, call.function.arguments) for call in message.get("tool_calls", [])
    ]
    return parsed + [_recovered(call.raw_text) for call in message.get("unparsed_tool_calls", [])]


def _recovered(raw: str) -> tuple[str, str]:
    """Read a call whose arguments are JSON in a string, which parsers refuse."""
    try:
        call = json.loads(raw[raw.index("{") : raw.rindex("}") + 1])
        return str(call["name"]), json.dumps(call["arguments"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return "call", raw


@cache
def codec_named(name: str) -> Codec:
    """Return the codec of a name, made once per process.

    Args:
        name: `byte`, or `renderer@tokenizer` such as `qwen3_instruct@Qwen/Qwen3-8B` or
            `role_colon@path/to/model`; the renderer may be followed by `+keep_thinking`, and that
            by `+system:TEXT` with a percent-encoded text, and that by `+tools:JSON`. `codec_name`
            writes it.

    Raises:
        OptionError: if the name has another form, or names no renderer or tokenizer.
    """
    if name == ByteCodec.name:
        return ByteCodec()
    renderer, at, tokenizer = name.partition("@")
    if not (renderer and at and tokenizer):
        raise OptionError(f"a codec is 'byte' or 'renderer@tokenizer', got {name!r}")
    renderer, _, declared = renderer.partition(_TOOLS)
    renderer, _, system = renderer.partition(_SYSTEM)
    keeps = renderer.endswith(_KEEPING)
    tools = [Tool(*each) for each in json.loads(unquote(declared) or "[]")]
    return RendererCodec(
        renderer.removesuffix(_KEEPING),
        tokenizer,
        keep_thinking=keeps,
        system=unquote(system),
        tools=tools,
    )


def codec_name(
    renderer: str,
    tokenizer: str,
    *,
    keep_thinking: bool = False,
    system: str = "",
    tools: Sequence[Tool] = (),
) -> str:
    """Return the name by which `codec_named` makes a codec; see `RendererCodec`."""
    keeping = _KEEPING if keep_thinking else ""
    before = f"{_SYSTEM}{quote(system, safe='')}" if system else ""
    return _with_tools(f"{renderer}{keeping}{before}@{tokenizer}", tools)


def _with_tools(bare: str, tools: Sequence[Tool]) -> str:
    renderer, _, tokenizer = bare.partition("@")
    declared = f"{_TOOLS}{quote(json.dumps(tools), safe='')}" if tools else ""
    return f"{renderer}{declared}@{tokenizer}"


def as_codec(codec: "str | Codec") -> Codec:
    """Return a codec given by name or as an object."""
    return codec_named(codec) if isinstance(codec, str) else codec


def renderer_for(model: str, renderer: str = "") -> str:
    """Return `renderer`, or the one that suits the model if that is empty.

    Args:
        model: a name, or a directory; see `recommended_renderer`.
        renderer: the name of a cookbook renderer.
    """
    return renderer or recommended_renderer(model) or _UNLISTED


def recommended_renderer(model: str) -> str | None:
    """Return the renderer that the cookbook recommends for a model, `None` if it lists no such one.

    Args:
        model: a name, or a directory that is named after the model or lies in the hub's cache.
    """
    for name in _names(model):
        try:
            return get_recommended_renderer_name(name)
        except (ConfigurationError, KeyError, ValueError):
            continue
    return None


def _fitting_renderer(tokenizer: Any, model: str) -> str:
    """Return a renderer that fits a model's tokenizer: the recommended one if it does."""
    for name in (renderer_for(model), _UNLISTED):
        try:
            _opened(name, tokenizer, model)
        except _MISFITS:
            continue
        return name
    return _PLAIN_TEXT


def _opened(renderer: str, tokenizer: Any, model: str) -> Any:
    """Return a renderer; one that does not fit raises one of `_MISFITS`."""
    opened: Any = get_renderer(renderer, tokenizer, model_name=model)
    opened.get_stop_sequences()
    rendered(opened, [user("")])
    return opened


def _names(model: str) -> Iterator[str]:
    """Yield what a model may be called in the cookbook's list."""
    yield model
    path = Path(model)
    if path.is_dir():
        for part in path.resolve().parts:
            if part.startswith("models--"):
                yield part.removeprefix("models--").replace("--", "/", 1)
        yield from (f"{publisher}/{path.resolve().name}" for publisher in _PUBLISHERS)
