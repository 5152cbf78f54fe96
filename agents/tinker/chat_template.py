"""Tokens that a chat format adds around texts and replies, inferred from short conversations.

A renderer renders whole conversations. To append one turn only the tokens after a reply are needed,
so a conversation of one text and one reply is rendered, and again with a next text. How the tokens
in between depend on that text is guessed (fixed tokens around the text, encoded with fixed blanks
around it), and the guess is checked on texts chosen to break it. If it fails, the short
conversation is rendered at every turn: slower, but at a cost that does not grow with the turns.
"""

import json
import re
from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

from tinker_cookbook.exceptions import RendererError
from tinker_cookbook.renderers import (
    ContentPart,
    Message,
    Renderer,
    TextPart,
    ThinkingPart,
    ToolCall,
    TrainOnWhat,
)

from tokengym.agents.tinker.tokenizing import PlainTokenizer

_OPENING = "Begin."
_REPLIES = ("Fine", "17", "(so)")
_TEXT = "Next"
_TRIALS = (
    "Hour 3: demand 41 MW, price 0.32",
    "7",
    "",
    " ",
    "\n",
    " leading",
    "trailing ",
    "\nabove",
    "below\n\n",
    "\n\n\n",
    "don't stop\r\n",
    "été 世界 🙂",
    "User: me",
    "<think>no</think>",
    "</think>",
    "a < b > c",
    "|",
)


def user(text: str) -> Message:
    """Return a text the policy reads as the cookbook's message."""
    return Message(role="user", content=text)


def assistant(text: str) -> Message:
    """Return a reply of the policy as the cookbook's message."""
    return Message(role="assistant", content=text)


def assistant_after_thinking(text: str) -> Message:
    """Return a reply that follows some thinking as the cookbook's message."""
    thinking = ThinkingPart(type="thinking", thinking="Well")
    return Message(role="assistant", content=[thinking, TextPart(type="text", text=text)])


def calling(tool: str, *thinking: ThinkingPart) -> Callable[[str], Message]:
    """Return what writes a call of a tool with one text, maybe after some thinking."""

    def call(text: str) -> Message:
        function = ToolCall.FunctionBody(name=tool, arguments=json.dumps({"text": text}))
        calls = [ToolCall(function=function)]
        content = list[ContentPart](thinking) or ""
        return Message(role="assistant", content=content, tool_calls=calls)

    return call


def result_of(tool: str) -> Callable[[str], Message]:
    """Return what writes the result of a call of a tool."""
    return lambda text: Message(role="tool", content=text, name=tool)


def rendered(renderer: Renderer, conversation: list[Message]) -> list[int]:
    """Return the tokens of a conversation up to where the next reply begins."""
    tokens: list[int] = renderer.build_generation_prompt(conversation).to_ints()
    return tokens


class ReplyTemplate:
    """How a renderer writes a canonical reply.

    That is the reply it would train a model on, in its shortest form: without thinking if the
    renderer has such a form, else after some thinking.

    Args:
        renderer: any renderer.
        recurring: whether replies must look the same in history as when they were sampled.
        before: what precedes every conversation.
        tool: write native calls of this tool, and its results where texts are read.

    Raises:
        ValueError: if no form of reply continues the renderer's own prompt.
    """

    def __init__(
        self, renderer: Renderer, *, recurring: bool, before: Sequence[Message] = (), tool: str = ""
    ) -> None:
        self.renderer = renderer
        self.answer = result_of(tool) if tool else user
        self._begun = [*before, user(_OPENING)]
        self.opening = rendered(renderer, self._begun)
        thinking = ThinkingPart(type="thinking", thinking="Well")
        calls = calling(tool), calling(tool, thinking)
        for form in calls if tool else (assistant, assistant_after_thinking):
            self.form = form
            try:
                replies = [self.write(reply) for reply in _REPLIES]
                if recurring:
                    for reply, tokens in zip(_REPLIES, replies, strict=True):
                        _remainder(self.history(reply, _TEXT), tokens)
            except (RendererError, ValueError):
                continue
            return
        raise ValueError("no reply continues its prompts")

    def write(self, reply: str) -> list[int]:
        """Tokens of a canonical reply, its end included."""
        talk = [*self._begun, self.form(reply)]
        examples = self.renderer.build_supervised_examples(talk, TrainOnWhat.ALL_ASSISTANT_MESSAGES)
        return _remainder(examples[-1][0].to_ints(), self.opening)

    def history(self, reply: str, text: str) -> list[int]:
        """Tokens after the opening's prompt, once `reply` and then `text` have followed."""
        return self.continued([(reply, text)])

    def continued(self, turns: Sequence[tuple[str, str]]) -> list[int]:
        """Tokens after the opening's prompt, once several replies and texts have followed."""
        later = [part for reply, text in turns for part in (self.form(reply), self.answer(text))]
        return _remainder(rendered(self.renderer, [*self._begun, *later]), self.opening)


class TextTemplate(NamedTuple):
    """How a text becomes tokens: `head`, then the text with its padding encoded, then `foot`."""

    head: list[int]
    before: str
    after: str
    foot: list[int]


class TurnTemplate:
    """Tokens between a reply and the next one, for a renderer with the extension property.

    Args:
        renderer: the renderer.
        tokenizer: the plain view of its tokenizer.
        replies: its canonical replies, recurring.
        sanitize: keeps a text from spelling special tokens.

    Attributes:
        forgeable: whether the renderer turns a special token that is spelled out in a text into the
            token itself, so that texts must be sanitized.

    Raises:
        ValueError: if the tokens after a reply depend on more than the text that follows it.
    """

    def __init__(
        self,
        renderer: Renderer,
        tokenizer: PlainTokenizer,
        replies: ReplyTemplate,
        sanitize: Callable[[str], str],
    ) -> None:
        self._tokenizer = tokenizer
        self._replies = replies
        self._reply = replies.write(_REPLIES[0])
        next_turn = self._render_next_turn(_TEXT)
        written = [replies.write(reply) for reply in _REPLIES]
        for reply, tokens in zip(_REPLIES, written, strict=True):
            if replies.history(reply, _TEXT) != [*tokens, *next_turn]:
                raise ValueError("the tokens after a reply depend on the reply")
        twice = [*written[0], *next_turn, *written[1], *next_turn]
        if replies.continued([(_REPLIES[0], _TEXT), (_REPLIES[1], _TEXT)]) != twice:
            raise ValueError("later turns are rendered differently from the first ones")
        self._closing = _common_suffix(written)
        self._stop = _stop_string(renderer, tokenizer.decode(written[0]))
        self._stops = self._stop is None or tokenizer.decode(self._closing).endswith(self._stop)
        self._text_template: TextTemplate | None = None
        used = {tokenizer.decode([token]) for token in (*replies.opening, *twice)}
        probes = sorted(used & tokenizer.markup) or sorted(tokenizer.markup)[:3]
        others = sorted(tokenizer.markup.difference(probes))
        self.forgeable = any(self._becomes_special(marker) for marker in (*probes, *others))
        trials = [*_TRIALS, *(f"a{marker}b" for marker in probes)]
        if self.forgeable:
            trials = list(map(sanitize, trials))
        self._text_template = self._find_text_template(next_turn, trials)

    @property
    def end(self) -> int:
        """The last token of a canonical reply."""
        return self._closing[-1]

    def next_turn(self, text: str) -> list[int]:
        """Tokens from the end of a canonical reply through `text` to where the next one begins."""
        if self._text_template is None:
            return self._render_next_turn(text)
        head, before, after, foot = self._text_template
        return [*head, *self._tokenizer.encode(f"{before}{text}{after}"), *foot]

    def missing_end(self, action: Sequence[int]) -> list[int]:
        """Tokens missing at the end of an action before it ends as a canonical reply does."""
        closing = self._closing
        if self._stops and list(action[-len(closing) :]) == closing:
            return []
        if self._stop is not None:
            return self._missing_stop(self._stop, action)
        if action and action[-1] == closing[-1]:
            return []
        for overlap in range(len(closing) - 1, 0, -1):
            if list(action[-overlap:]) == closing[:overlap]:
                return closing[overlap:]
        return closing

    def _missing_stop(self, stop: str, action: Sequence[int]) -> list[int]:
        # No token is empty, so as many tokens as the stop has characters cover it.
        tail = list(action[-len(stop) - 1 :])
        written = self._tokenizer.decode(tail)
        if stop in written and stop not in self._tokenizer.decode(tail[:-1]):
            return []
        overlap = next(n for n in range(len(stop), -1, -1) if written.endswith(stop[:n]))
        missing = stop[overlap:]
        for start in range(len(self._reply)):
            if self._tokenizer.decode(self._reply[start:]) == missing:
                return self._reply[start:]
        return self._tokenizer.encode(missing)

    def _render_next_turn(self, text: str) -> list[int]:
        return _remainder(self._replies.history(_REPLIES[0], text), self._reply)

    def _becomes_special(self, marker: str) -> bool:
        """Whether the renderer turns a special token spelled out in a text into the token."""
        spelled = self._render_next_turn(f"a{marker}b")
        broken = self._render_next_turn(f"a{escape_special(marker)}b")
        return sum(map(self._is_special, spelled)) > sum(map(self._is_special, broken))

    def _is_special(self, token: int) -> bool:
        return self._tokenizer.decode([token]) in self._tokenizer.markup

    def _find_text_template(self, next_turn: list[int], trials: list[str]) -> TextTemplate | None:
        expected = [(trial, self._render_next_turn(trial)) for trial in trials]
        for before, after in self._paddings(next_turn):
            inner = self._tokenizer.encode(f"{before}{_TEXT}{after}")
            for at in _occurrences(inner, next_turn):
                self._text_template = TextTemplate(
                    next_turn[:at], before, after, next_turn[at + len(inner) :]
                )
                if all(self.next_turn(trial) == tokens for trial, tokens in expected):
                    return self._text_template
        return None

    def _paddings(self, next_turn: list[int]) -> list[tuple[str, str]]:
        """Return what may be encoded together with a text, before and after it, longest first."""
        # Nothing merges across a special token, so only what lies between two of them matters.
        special = special_token_pattern(self._tokenizer)
        before, _, after = self._tokenizer.decode(next_turn).partition(_TEXT)
        before, after = special.split(before)[-1], special.split(after)[0]
        starts = [before[at:] for at in range(len(before) + 1)]
        ends = [after[:at] for at in range(len(after) + 1)]
        return sorted(product(starts, ends), key=lambda padding: -len("".join(padding)))


def special_token_pattern(tokenizer: PlainTokenizer) -> re.Pattern[str]:
    """Return a pattern of the spellings of all special tokens, the longest first."""
    longest_first = sorted(tokenizer.markup, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or "(?!)")


def escape_special(marker: str) -> str:
    """Return a special token's spelling with a blank after its first character."""
    return f"{marker[:1]} {marker[1:]}"


def _remainder(tokens: list[int], prefix: list[int]) -> list[int]:
    if tokens[: len(prefix)] != prefix:
        raise ValueError("a conversation does not start with the same tokens as a turn earlier")
    return tokens[len(prefix) :]


def _common_suffix(replies: list[list[int]]) -> list[int]:
    shared = 0
    while len({tuple(tokens[-shared - 1 :]) for tokens in replies}) == 1:
        shared += 1
    return replies[0][len(replies[0]) - shared :]


def _stop_string(renderer: Renderer, reply: str) -> str | None:
    """Return the stop sequence a canonical reply ends with, if stop sequences are strings."""
    strings = (stop for stop in renderer.get_stop_sequences() if isinstance(stop, str))
    return next(filter(reply.endswith, strings), None)


def _occurrences(part: list[int], whole: list[int]) -> list[int]:
    ends = range(len(whole) - len(part) + 1)
    return [at for at in ends if whole[at : at + len(part)] == part]
