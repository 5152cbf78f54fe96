"""How a model writes chats: messages and tools as tokens, and calls of tools in a reply."""

import json
import re
from typing import Any

from tokengym.agents.service.http.tool_calls import (
    Said,
    check_declares,
    form_of,
    kinds_of,
    split,
)

_MARKS = range(0xE000, 0xF8FF)
"""Characters for private use; one marks a position in a message."""


class ChatFormat:
    """The chat template of a tokenizer, and the form of calls in it. For any thread.

    Args:
        tokenizer: of the model.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        added = tokenizer.added_tokens_decoder.values()
        special = sorted(
            (t.content for t in added if t.special and t.content), key=len, reverse=True
        )
        self._special = re.compile("|".join(map(re.escape, special)) or "(?!)")
        # To split special tokens changes the tokenizer's state: it is done before threads share it.
        self._spelled = {name: self._encode(name, split=True) for name in special}
        self._encode("")

    @property
    def has_template(self) -> bool:
        """Whether the model takes messages."""
        return bool(self._tokenizer.chat_template)

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a completion's prompt."""
        ids: list[int] = self._tokenizer.encode(text)
        return ids

    def encode_chat(self, messages: list[Any], tools: list[Any]) -> list[int]:
        """Return the tokens of messages up to where the reply begins.

        Text that spells a special token in a message or tool stays text: the template sees a mark
        in its place that none of them has.

        Raises:
            Exception: whatever the template does.
        """
        used = set(json.dumps([messages, tools], ensure_ascii=False))
        mark = next((chr(code) for code in _MARKS if chr(code) not in used), None)
        if mark is None:
            raise ValueError("one character for private use must be absent, got all of them")
        spelled: list[str] = []

        def hide(found: re.Match[str]) -> str:
            spelled.append(found[0])
            return f"{mark}{len(spelled) - 1}{mark}"

        def hidden(value: Any) -> Any:
            if isinstance(value, dict):
                return {hidden(name): hidden(one) for name, one in value.items()}
            if isinstance(value, list | tuple):
                return [hidden(one) for one in value]
            return self._special.sub(hide, value) if isinstance(value, str) else value

        text = self._rendered(hidden(messages), hidden(tools), ask=True)
        ids: list[int] = []
        for number, part in enumerate(re.split(f"{mark}(\\d+){mark}", text)):
            ids += self._spelled[spelled[int(part)]] if number % 2 else self._encode(part)
        return ids

    def check_tools(self, tools: list[Any]) -> None:
        """Check that the template declares tools and that calls in replies can be read.

        Raises:
            ValueError: if not.
            Exception: whatever the template does.
        """
        check_declares(self._plain, tools[:1])
        form_of(self._plain, tools[:1])

    def read_calls(self, replies: list[str], tools: list[Any]) -> list[Said]:
        """Return the words and calls of replies.

        Args:
            replies: their texts.
            tools: as declared.
        """
        form, kinds = form_of(self._plain, tools[:1]), kinds_of(tools)
        return [split(text, form, kinds) for text in replies]

    def _plain(self, messages: list[Any], tools: Any) -> str:
        ask = messages[-1]["role"] == "user"
        return self._special.sub("", self._rendered(messages, tools, ask=ask))

    def _rendered(self, messages: list[Any], tools: Any, *, ask: bool) -> str:
        settings = {"tools": tools or None, "add_generation_prompt": ask, "tokenize": False}
        text: str = self._tokenizer.apply_chat_template(messages, **settings)
        return text

    def _encode(self, text: str, *, split: bool = False) -> list[int]:
        ids: list[int] = self._tokenizer.encode(
            text, add_special_tokens=False, split_special_tokens=split
        )
        return ids
