"""How a model writes chats: messages and tools as tokens, and calls of tools in a reply."""

import json
import re
from itertools import dropwhile, zip_longest
from typing import Any

from tokengym.agents.service.http.tool_calls import FORMS, Form, FunctionCall, Said, kinds_of, split

_MARKS = range(0xE000, 0xF8FF)
"""Characters for private use; one marks a position in a message."""
_ARGUMENTS: dict[str, Any] = {"count": 3, "why": "so it is"}
_ASKED: dict[str, Any] = {"role": "user", "content": "Begin."}
_CALL = {"id": "call_0", "type": "function", "function": {"name": "probe", "arguments": _ARGUMENTS}}
_CALLED: dict[str, Any] = {"role": "assistant", "content": "", "tool_calls": [_CALL]}


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

    def call_form(self, tools: list[Any]) -> Form:
        """Return the form of calls: the one that reads back what the template was made to write.

        Raises:
            ValueError: if the template declares no tools, or has another form.
            Exception: whatever the template does.
        """
        before, bare = (self._plain([_ASKED], declared) for declared in (tools[:1], []))
        if before == bare:
            raise ValueError("it declares none")
        after = self._plain([_ASKED, _CALLED], tools[:1])
        # The prompt may end in a tag that a call does not begin with: whole lines are compared.
        lines = zip_longest(*(text.splitlines(keepends=True) for text in (after, before)))
        reply = "".join(line or "" for line, _ in dropwhile(lambda pair: pair[0] == pair[1], lines))
        for form in FORMS:
            if split(reply, form, {})[1] == [FunctionCall("probe", json.dumps(_ARGUMENTS))]:
                return form
        raise ValueError("it has calls in a form that is not read")

    def read_calls(self, replies: list[str], tools: list[Any]) -> list[Said]:
        """Return the words and calls of replies.

        Args:
            replies: their texts.
            tools: as declared.
        """
        form, kinds = self.call_form(tools), kinds_of(tools)
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
