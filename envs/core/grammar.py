r"""Reading a reply: the last line that holds a command counts; the rest is thinking and is ignored.

One grammar for all worlds. A world writes a pattern for the bare command; this module finds it
inside what chat models put around an answer: Markdown (bold, italics, code, bullets, numbering,
headings, quotes), quotation marks, `Answer:`, `<answer>` tags, `\boxed{}`, no-break and zero-width
spaces, U+2212 and other minus signs, several commands on a line, a comment after them. What the
pattern itself matches always means the same, decorated or not, and no reply takes more than linear
time as long as the pattern begins with a word and repeats possessively (`\s*+`).
"""

import re
from collections.abc import Iterator
from functools import lru_cache

NUMBER = r"[+-]?[ \t]?(?:[0-9]{1,60}(?:\.[0-9]{0,60})?|\.[0-9]{1,60})(?:[eE][+-]?[0-9]{1,3})?"
"""A pattern of a decimal number; its sign may stand apart. `number` reads what it matches."""

MOST_LINES = 1000
"""Lines of a reply that are read, from its end: so no reply takes long, whatever it holds."""

_QUOTED_CHARACTERS = 60
_LINE = re.compile(r"\S[^\n]*+")
_CHARACTERS = str.maketrans(
    {
        **dict.fromkeys("\u00a0\u1680\u2007\u202f\u205f\u3000", " "),
        **{chr(code): " " for code in range(0x2000, 0x200B)},
        **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff"),
        **dict.fromkeys("\u2212\u2010\u2011\u2012\u2013\ufe63\uff0d", "-"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2018\u2019\u201a\u201b", "'"),
    }
)
_UNUSUAL = re.compile(f"[{''.join(map(chr, _CHARACTERS))}]")
_TAGS = re.compile(r"</?(?:final[_ ])?answer>|\\(?:boxed|text|mathrm)\{|[}$]", re.IGNORECASE)
_ITALICS = re.compile(r"(?<![A-Za-z0-9_])_++|(?<!_)_++(?![A-Za-z0-9])")
_LEAD = re.compile(
    r"(?:[\s>#|\"'~]++|[-+\u2022\u25e6](?=\s)|[0-9]{1,3}[.)](?=\s)"
    r"|(?:my |the )?(?:final )?(?:answer|reply|response|output|action)(?: is)?\s*+[:=])*+",
    re.IGNORECASE,
)
_TAIL = " \t\r\n\"'|~"
_SEPARATOR = re.compile(r"[ \t]*+(?:[,;|&/]|and\b|then\b)?[ \t]*+", re.IGNORECASE)
_COMMENT = re.compile(
    r"[ \t]*+(?:$|[.!][ \t]*+$|(?:#|//|\(|\[|\u2014|--?[ \t]*+(?=[A-Za-z]))"
    r"|(?:[,;.:]|because\b|since\b|as\b|so\b|to\b|this\b|which\b)[^0-9]*+$)",
    re.IGNORECASE,
)


def lines_of(text: str) -> list[str]:
    r"""Return the lines of `text` that are not blank, split at `\n` only, without indentation."""
    return _LINE.findall(text)


def lines_from_end(text: str) -> Iterator[str]:
    """Return the last `MOST_LINES` lines that are not blank, from the last to the first."""
    return reversed(lines_of(text)[-MOST_LINES:])


@lru_cache(maxsize=1)  # one reader may ask twice about a line
def undecorated(line: str) -> str:
    """Return a line without the decoration that chat models put around a command."""
    bare = line.replace("*", "").replace("`", "")
    # Translating is slow, and seldom needed.
    if not bare.isascii() and _UNUSUAL.search(bare):
        bare = bare.translate(_CHARACTERS)
    if "<" in bare or "\\" in bare or "$" in bare:
        bare = _TAGS.sub("", bare)
    if "_" in bare:
        bare = _ITALICS.sub("", bare)
    lead = _LEAD.match(bare)
    return bare[lead.end() if lead else 0 :].rstrip(_TAIL)


def read_line(pattern: re.Pattern[str], line: str) -> list[re.Match[str]]:
    """Return the commands that a line begins with, and any that follow among other words.

    None if the line begins with anything but a command and its decoration, or if it goes on with
    anything but commands and a comment.

    Args:
        pattern: matches one bare command, from its first word to its last number.
        line: a line of a reply.
    """
    match = pattern.fullmatch(line)
    if match is not None:
        return [match]
    bare = undecorated(line)
    found: list[re.Match[str]] = []
    end = 0
    match = pattern.match(bare)
    while match is not None and match.end() > end:
        found.append(match)
        end = match.end()
        separator = _SEPARATOR.match(bare, end)
        match = pattern.match(bare, separator.end() if separator else end)
    if not found:
        return found
    # What differs from the first command makes the line ambiguous: better no answer than a guess.
    more = list(pattern.finditer(bare, end))
    return found + more if more or _COMMENT.match(bare, end) else []


def last_commands(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    """Return the commands of the last line that holds any; none if no line does.

    Args:
        pattern: as `read_line` takes it.
        text: a whole reply, of any length and content.
    """
    for line in lines_from_end(text):
        if found := read_line(pattern, line):
            return found
    return []


def last_match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """Return the one command of the last line that holds any.

    `None` if no line holds a command, or if that line holds two that differ.

    Args:
        pattern: as `read_line` takes it.
        text: a whole reply, of any length and content.
    """
    found = last_commands(pattern, text)
    if not found or any(match.groups() != found[-1].groups() for match in found):
        return None
    return found[-1]


def number(matched: str) -> float:
    """Return the value of what `NUMBER` matched."""
    return float(matched.replace(" ", "").replace("\t", ""))


def complaint(text: str, expected: str, *, complete: bool = True) -> str:
    """Return one line on what was wrong with a reply and what was expected.

    Args:
        text: the reply that was refused.
        expected: the expected form in words, such as `BATTERY <power in kW>`: never an example,
            which a policy would copy.
        complete: `False` if the reply was cut off before it ended.
    """
    wanted = f"Expected: {expected}"
    if not complete:
        return f"Malformed reply: it was cut off before it ended. {wanted}"
    last = next(lines_from_end(text), "")
    if not last:
        return f"Malformed reply: it was empty. {wanted}"
    quoted = last.strip()[:_QUOTED_CHARACTERS].encode("ascii", "backslashreplace").decode()
    shown = "".join(c if c.isprintable() else "?" for c in quoted)
    place = text.rstrip().count("\n") + 1
    return f"Malformed reply: no line matched; line {place} reads {shown!r}. {wanted}"
