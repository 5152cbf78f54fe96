"""What a chat format writes around texts and replies, found out by rendering short conversations.

A renderer says how a whole conversation looks. To append one turn only what follows a reply is
needed, so the renderer is shown a conversation of one text and one reply, and what it adds for the
next text is read off. How that depends on the text is guessed (fixed tokens around the text,
tokenized with fixed blanks around it), and the guess is checked on texts chosen to break it. Where
it fails, the short conversation is rendered at every turn: dearer, but not dearer with every turn.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tinker_cookbook.exceptions import RendererError
from tinker_cookbook.renderers import (
    Message,
    Renderer,
    TextPart,
    ThinkingPart,
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


def reasoned(text: str) -> Message:
    """Return a reply after a little thinking as the cookbook's message."""
    thinking = ThinkingPart(type="thinking", thinking="Well")
    return Message(role="assistant", content=[thinking, TextPart(type="text", text=text)])


def rendered(renderer: Renderer, conversation: list[Message]) -> list[int]:
    """Return the tokens of a conversation up to where the next reply begins."""
    tokens: list[int] = renderer.build_generation_prompt(conversation).to_ints()
    return tokens


class CanonicalReplies:
    """How a renderer writes the replies it wants to see.

    That is what it would have a model learn as the reply to one text: the shortest form it knows,
    plain where it knows a plain one, after a little thinking where it always asks for some.

    Args:
        renderer: any renderer.
        recurring: whether replies must look in history as they looked when they were sampled.

    Raises:
        ValueError: if no form of reply continues the renderer's own prompt.
    """

    def __init__(self, renderer: Renderer, *, recurring: bool) -> None:
        self.renderer = renderer
        self.opening = rendered(renderer, [user(_OPENING)])
        for form in (assistant, reasoned):
            self.form = form
            try:
                replies = [self.write(reply) for reply in _REPLIES]
                if recurring:
                    for reply, tokens in zip(_REPLIES, replies, strict=True):
                        _after(self.history(reply, _TEXT), tokens)
            except (RendererError, ValueError):
                continue
            return
        raise ValueError("no reply continues its prompts")

    def write(self, reply: str) -> list[int]:
        """Tokens of a canonical reply, its end included."""
        talk = [user(_OPENING), self.form(reply)]
        examples = self.renderer.build_supervised_examples(talk, TrainOnWhat.ALL_ASSISTANT_MESSAGES)
        return _after(examples[-1][0].to_ints(), self.opening)

    def history(self, reply: str, text: str) -> list[int]:
        """Tokens that follow the opening's prompt once `reply` was given and `text` came after."""
        talk = [user(_OPENING), self.form(reply), user(text)]
        return _after(rendered(self.renderer, talk), self.opening)


class Surroundings(NamedTuple):
    """How a text the policy reads becomes tokens: `head`, the padded text, `foot`."""

    head: list[int]
    before: str
    after: str
    foot: list[int]


class Framing:
    """What stands between a reply and the next one, for a renderer with the extension property.

    Args:
        renderer: the renderer.
        tokenizer: the plain view of its tokenizer.
        replies: its canonical replies, recurring.
        guard: what keeps a text from spelling special tokens.

    Attributes:
        forgeable: whether the renderer makes special tokens of their spelling inside a text, so
            that texts must go through `guard` first.

    Raises:
        ValueError: if what follows a reply depends on more than the text that follows it.
    """

    def __init__(
        self,
        renderer: Renderer,
        tokenizer: PlainTokenizer,
        replies: CanonicalReplies,
        guard: Callable[[str], str],
    ) -> None:
        self._tokenizer = tokenizer
        self._replies = replies
        self._reply = replies.write(_REPLIES[0])
        follower = self._rendered_follow(_TEXT)
        written = [replies.write(reply) for reply in _REPLIES]
        for reply, tokens in zip(_REPLIES, written, strict=True):
            if replies.history(reply, _TEXT) != [*tokens, *follower]:
                raise ValueError("what follows a reply depends on the reply")
        form = replies.form
        talk = [user(_OPENING), form(_REPLIES[0]), user(_TEXT), form(_REPLIES[1]), user(_TEXT)]
        twice = [*replies.opening, *written[0], *follower, *written[1], *follower]
        if rendered(renderer, talk) != twice:
            raise ValueError("later turns are framed otherwise than the first ones")
        self._closing = _shared_end(written)
        self._stop = _stop_string(renderer, tokenizer.decode(written[0]))
        self._stops = self._stop is None or tokenizer.decode(self._closing).endswith(self._stop)
        self._surroundings: Surroundings | None = None
        used = {tokenizer.decode([token]) for token in twice} & tokenizer.markers
        telling = sorted(used) or sorted(tokenizer.markers)[:3]
        self.forgeable = any(self._becomes_special(marker) for marker in telling)
        trials = [*_TRIALS, *(f"a{marker}b" for marker in telling)]
        if self.forgeable:
            trials = list(map(guard, trials))
        self._surroundings = self._find_surroundings(follower, trials)

    def follow(self, text: str) -> list[int]:
        """Tokens from the end of a canonical reply through `text` to where the next one begins."""
        if self._surroundings is None:
            return self._rendered_follow(text)
        head, before, after, foot = self._surroundings
        return [*head, *self._tokenizer.encode(f"{before}{text}{after}"), *foot]

    def close(self, action: Sequence[int]) -> list[int]:
        """Tokens missing at the end of an action before it ends as a canonical reply does."""
        closing = self._closing
        if self._stops and list(action[-len(closing) :]) == closing:
            return []
        if self._stop is not None:
            return self._close_with(self._stop, action)
        if action and action[-1] == closing[-1]:
            return []
        for overlap in range(len(closing) - 1, 0, -1):
            if list(action[-overlap:]) == closing[:overlap]:
                return closing[overlap:]
        return closing

    def _close_with(self, stop: str, action: Sequence[int]) -> list[int]:
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

    def _rendered_follow(self, text: str) -> list[int]:
        return _after(self._replies.history(_REPLIES[0], text), self._reply)

    def _becomes_special(self, marker: str) -> bool:
        """Whether the renderer makes a special token of a marker inside a text."""
        spelled = self._rendered_follow(f"a{marker}b")
        broken = self._rendered_follow(f"a{broken_up(marker)}b")
        return sum(map(self._is_marker, spelled)) > sum(map(self._is_marker, broken))

    def _is_marker(self, token: int) -> bool:
        return self._tokenizer.decode([token]) in self._tokenizer.markers

    def _find_surroundings(self, follower: list[int], trials: list[str]) -> Surroundings | None:
        wanted = [(trial, self._rendered_follow(trial)) for trial in trials]
        for before, after in self._paddings():
            inner = self._tokenizer.encode(f"{before}{_TEXT}{after}")
            for at in _places(inner, follower):
                self._surroundings = Surroundings(
                    follower[:at], before, after, follower[at + len(inner) :]
                )
                if all(self.follow(trial) == tokens for trial, tokens in wanted):
                    return self._surroundings
        return None

    def _paddings(self) -> list[tuple[str, str]]:
        """Return what the renderer is heard to tokenize before and after a text, most first."""
        renderer: Any = self._replies.renderer
        listening = _Listening(renderer.tokenizer)
        renderer.tokenizer = listening
        try:
            self._rendered_follow(_TEXT)
        finally:
            renderer.tokenizer = listening.tokenizer
        # Nothing merges across a special token, so only what lies between two of them matters.
        markers = re.compile("|".join(map(re.escape, self._tokenizer.markers)) or "(?!)")
        paddings = {("", "")}
        for heard in listening.heard:
            before, found, after = heard.partition(_TEXT)
            if found:
                paddings.add((markers.split(before)[-1], markers.split(after)[0]))
        return sorted(paddings, key=lambda padding: -len(padding[0]) - len(padding[1]))


class _Listening:
    """A tokenizer that remembers what it was given to encode."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.heard: list[str] = []

    def encode(self, text: str, **options: Any) -> Any:
        self.heard.append(text)
        return self.tokenizer.encode(text, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tokenizer, name)


def broken_up(marker: str) -> str:
    """Return a marker that no longer is one: a blank after its first character."""
    return f"{marker[:1]} {marker[1:]}"


def _after(tokens: list[int], start: list[int]) -> list[int]:
    if tokens[: len(start)] != start:
        raise ValueError("a conversation does not begin as it began a turn before")
    return tokens[len(start) :]


def _shared_end(replies: list[list[int]]) -> list[int]:
    shared = 0
    while len({tuple(tokens[-shared - 1 :]) for tokens in replies}) == 1:
        shared += 1
    return replies[0][len(replies[0]) - shared :]


def _stop_string(renderer: Renderer, reply: str) -> str | None:
    """Return the stop sequence a canonical reply ends with, if stop sequences are strings."""
    return next(
        (
            stop
            for stop in renderer.get_stop_sequences()
            if isinstance(stop, str) and reply.endswith(stop)
        ),
        None,
    )


def _places(part: list[int], whole: list[int]) -> list[int]:
    ends = range(len(whole) - len(part) + 1)
    return [at for at in ends if whole[at : at + len(part)] == part]
