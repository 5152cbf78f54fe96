"""A strategy of replies that a world must handle."""

import re
from collections.abc import Sequence

from hypothesis import strategies as st

from tokengym.envs.core.odd_replies import HOSTILE

_LONG = 10_000
"""Most characters of a generated reply: Hypothesis prints those that fail."""


def written(near: Sequence[str] = (), copied: Sequence[str] = ()) -> st.SearchStrategy[str]:
    """Return a strategy of replies.

    Args:
        near: replies close to a well-formed one.
        copied: texts that a policy may repeat, such as the prompt.
    """
    examples = [*(reply[:_LONG] for reply in HOSTILE), *near, *copied]
    pieces = st.sampled_from(["\n", "```\n", "> ", "- ", "**", "| ", "    ", "1. ", "\t"])
    nested = st.lists(pieces | st.sampled_from([*near, "x"]), max_size=12).map("".join)
    huge = st.integers(-(10**60), 10**60).map(str) | st.floats().map(repr)
    numbers = st.builds(_renumbered, st.sampled_from([*near, "9"]), huge)
    anything = st.text(st.characters(), max_size=80)
    binary = st.binary(max_size=80).map(lambda data: data.decode("utf-8", "replace"))
    return st.one_of(st.sampled_from(examples), anything, binary, numbers, nested)


def _renumbered(reply: str, number: str) -> str:
    """Replace the first number of a reply."""
    return re.sub(r"\d+(\.\d+)?", lambda match: number, reply, count=1)
