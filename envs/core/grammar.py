"""Reading a reply: the last matching line counts; the rest is thinking and is ignored."""

import re
from collections.abc import Iterator

_QUOTED_CHARACTERS = 60


def lines_from_end(text: str) -> Iterator[str]:
    r"""Yield the lines of `text` from the last to the first, split at `\n` only."""
    end = len(text)
    while end >= 0:
        start = text.rfind("\n", 0, end) + 1
        yield text[start:end]
        end = start - 1


def last_match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """Return the match of `pattern` with the last line that it matches in full, or `None`.

    Args:
        pattern: compiled; blanks around a line are removed before it is tried.
        text: a whole reply, of any length and content.
    """
    if "\n" not in text:
        return pattern.fullmatch(text.strip())
    for line in lines_from_end(text):
        match = pattern.fullmatch(line.strip())
        if match is not None:
            return match
    return None


def complaint(text: str, expected: str, *, complete: bool = True) -> str:
    """Return one line on what was wrong with a reply and what was expected.

    Args:
        text: the reply that was refused.
        expected: an example of the expected form.
        complete: `False` if the reply was cut off before it ended.
    """
    wanted = f"Expected a last line like: {expected}"
    if not complete:
        return f"Malformed reply: it was cut off before it ended. {wanted}"
    last = next((line for line in lines_from_end(text) if line.strip()), "")
    if not last:
        return f"Malformed reply: it was empty. {wanted}"
    quoted = last.strip()[:_QUOTED_CHARACTERS].encode("ascii", "backslashreplace").decode()
    shown = "".join(c if c.isprintable() else "?" for c in quoted)
    number = text.rstrip().count("\n") + 1
    return f"Malformed reply: no line matched; line {number} reads {shown!r}. {wanted}"
