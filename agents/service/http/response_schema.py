"""Replies parsed by the response schema of a tokenizer, in a process that is ended if it hangs.

A schema holds its author's regular expressions. One that backtracks would keep Python's lock, so a
thread would not do.
"""

import asyncio
import json
import logging
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from typing import Any

from tokengym.agents.service.http.tool_calls import FunctionCall, Said, call_of

PARSE_S = 5.0
"""Seconds for all replies to a request."""
START_S = 120.0
MAX_ANSWER = 1 << 28

log = logging.getLogger(__name__)


class SchemaParser:
    """Parses replies by a schema, one request at a time.

    Args:
        schema: as the tokenizer has it.
    """

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._child: Process | None = None
        self._lock = asyncio.Lock()

    async def parse(self, replies: list[str]) -> list[Said | None]:
        """Return the words and calls of replies, None for one that is not parsed in time or at all.

        Args:
            replies: with their special tokens.
        """
        async with self._lock:
            child, self._child = self._child, None
            try:
                if child is None:
                    child = await asyncio.create_subprocess_exec(
                        sys.executable, "-m", __name__, stdin=PIPE, stdout=PIPE, limit=MAX_ANSWER
                    )
                    # Imports of the schema are loaded before time counts.
                    await _ask(child, [self._schema, [""]], START_S)
                found = await _ask(child, [self._schema, replies], PARSE_S)
                self._child = child
            except (TimeoutError, OSError, ValueError) as error:
                log.warning("a reply was not parsed by its schema: %r", error)
                return [None] * len(replies)
            finally:
                # Without an answer it is not asked again.
                if self._child is None and child is not None and child.returncode is None:
                    child.kill()
        return [_said(message) for message in found]


async def _ask(child: Process, question: list[Any], limit_s: float) -> Any:
    assert child.stdin is not None
    assert child.stdout is not None
    async with asyncio.timeout(limit_s):
        child.stdin.write(json.dumps(question).encode() + b"\n")
        await child.stdin.drain()
        return json.loads(await child.stdout.readline())


def _said(message: Any) -> Said | None:
    """Return what a parsed message says, None if it has no calls or one that is unreadable."""
    sent = message.get("tool_calls") if isinstance(message, dict) else None
    entries = sent if isinstance(sent, list) else []
    functions = [
        entry.get("function", entry) if isinstance(entry, dict) else entry for entry in entries
    ]
    calls: list[FunctionCall | None] = [call_of(function) for function in functions]
    readable = [call for call in calls if call is not None]
    if not calls or len(readable) < len(calls):
        return None
    return str(message.get("content") or ""), readable


def _serve() -> None:
    """Answer questions until the input ends."""
    from transformers import PreTrainedTokenizerBase

    tokenizer = PreTrainedTokenizerBase()
    for line in sys.stdin:
        schema, replies = json.loads(line)
        found: list[Any] = [None] * len(replies)
        for place, reply in enumerate(replies):
            with suppress(Exception):  # of a foreign schema anything may be raised
                found[place] = tokenizer.parse_response(reply, schema)
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
