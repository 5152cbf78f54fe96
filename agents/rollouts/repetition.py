"""Replies that say nothing of their own: they go round in circles, or copy the prompt."""

import re

_TAIL = 600
"""Characters at the end of a reply in which a repeated passage is looked for."""
_TIMES = 3
_LEAST = 8
"""Fewest characters of all repetitions together: `...` and `000` are no circle."""
_PLACEHOLDER = re.compile(r"<[^<>\n]+>")


def repeats_itself(reply: str) -> bool:
    """Whether a reply ends with one passage three times or more, as in `0.99999999`.

    A longer limit would let it go on in the same way.
    """
    tail = reply[-_TAIL:]
    for period in range(1, len(tail) // _TIMES + 1):
        length = max(_TIMES * period, _LEAST)
        if length <= len(tail) and tail[-length:-period] == tail[len(tail) - length + period :]:
            return True
    return False


def copies(reply: str, prompt: str) -> bool:
    """Whether the last line of a reply that is not blank copies the prompt.

    It is one of the prompt's lines, but for blanks, or has a placeholder of it, such as
    `BATTERY <power>`.
    """
    line = reply.strip().rpartition("\n")[2].strip()
    if not line or line not in prompt:
        return False
    return bool(_PLACEHOLDER.search(line)) or line in map(str.strip, prompt.splitlines())
