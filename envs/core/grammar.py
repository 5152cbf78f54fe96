r"""Reading a reply: the last statement decides, readable or not; the rest is ignored.

One grammar for all worlds. A world writes a `Grammar`: the words that its commands begin with, and
a pattern of one bare command. Every line that begins with such a word is a statement. It is
readable if it holds nothing but commands and a comment, and an unreadable one withdraws what it
replaces: no reply is paid for an answer that its policy took back. Where one reply holds several
commands, a world says which of them a statement replaces.

Thinking is no part of the answer: `<think>` to `</think>`, everything before a `</think>` that was
never opened, everything after a `<think>` that is never closed.

Statements are found inside what chat models put around them: Markdown (bold, italics, code,
bullets, numbering, headings, quotes), quotation marks, emoji, `Answer:`, `<answer>` tags,
`\boxed{}`, full-width characters, no-break and zero-width spaces, U+2212 and other minus signs,
several commands on a line, a comment after them. A tail that qualifies (`or so`, `at most`,
`percent`, `if it rains`), a range or a ratio makes the statement unreadable. What the pattern
itself matches always means the same, decorated or not, and no reply takes more than linear time as
long as the pattern begins with a word and repeats possessively (`[ \t]*+`).
"""

import re
from collections.abc import Iterator
from functools import lru_cache

NUMBER = r"[+-]?[ \t]?(?:[0-9]{1,60}(?:\.[0-9]{0,60})?|\.[0-9]{1,60})(?:[eE][+-]?[0-9]{1,3})?"
"""A pattern of a decimal number; its sign may stand apart. `number` reads what it matches."""

SHARE = rf"({NUMBER}|[+-]?(?:nan|inf(?:inity)?))((?:[ \t]*+%)?)"
"""A pattern of a probability, two groups; `share` reads what they match."""

IS = r"[ \t]*+[:=]?+[ \t]*+"
"""A pattern of what stands between a word and its value."""

NEXT = r"(?=[ \t,;/|&])[ \t]*+[,;/|&]?+[ \t]*+(?:and\b[ \t]*+)?+"
"""A pattern of what stands between the values of a list."""

MOST_LINES = 1000
MOST_CHARACTERS = 100_000
"""Lines of a reply that are read, from its end, and characters: no reply takes long to read."""

SHORT = 256
"""Characters of a reply up to which worlds remember what they read: few different ones occur."""

remembered = lru_cache(maxsize=16384)
"""Remembers what was read of short replies."""

_QUOTED_CHARACTERS = 60
_FLAGS = re.IGNORECASE | re.ASCII
_THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.IGNORECASE | re.DOTALL)
_ENDED_THINKING = re.compile(r"\A.*</think(?:ing)?>", re.IGNORECASE | re.DOTALL)
_LINE = re.compile(r"\S[^\n\r\v\f\x85\u2028\u2029]*+")
_CHARACTERS = str.maketrans(
    {
        **{chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},  # full width
        **{chr(code): " " for code in range(0x2000, 0x200B)},
        **dict.fromkeys("\u00a0\u1680\u202f\u205f\u3000", " "),
        **dict.fromkeys("\u200b\u200c\u200d\u2060\ufe0f\ufeff"),
        **dict.fromkeys("\u2212\u2010\u2011\u2012\u2013\ufe63", "-"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2018\u2019\u201a\u201b", "'"),
        **dict.fromkeys("\u3002\uff61", ". "),
        **{"\u3001": ",", "\ufe6a": "%", "\u2026": "..."},
    }
)
_UNUSUAL = re.compile(f"[{re.escape(''.join(map(chr, _CHARACTERS)))}]")
_TAGS = re.compile(
    r"</?(?:(?:final[_ ])?(?:answer|reply|response)|b|strong|i|em|code|p|br)[ ]?/?>"
    r"|\\(?:boxed|text|textbf|mathbf|mathrm)\{|[}$]|\\(?=%)",
    re.IGNORECASE,
)
_ITALICS = re.compile(r"(?<![A-Za-z0-9_])_++|(?<!_)_++(?![A-Za-z0-9])")
_SIGNS = "\u2190-\u21ff\u25a0-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
"""Arrows, shapes and emoji."""
_LEAD = re.compile(
    rf"(?:[\s>#|\"'~{_SIGNS}]++|[-+=\u2014\u2022\u2023\u25e6]++(?=\s)|[=-]++>"
    r"|\(?[0-9]{1,3}[.)](?=\s)"
    r"|(?:so |my |the ){0,2}+(?:final |new |revised |updated |corrected )?"
    r"(?:answer|reply|response|output|action|decision|forecast|prediction|correction)"
    r"(?: is)?\s*+[:=])*+",
    re.IGNORECASE,
)
_TAIL = " \t\r\n\"'|~"
_SEPARATOR = re.compile(r"[ \t]*+(?:[,;|&/]|and\b|then\b)?[ \t]*+", re.IGNORECASE)
# What comes after a command may comment, not qualify: these would change, hedge or withdraw it.
_QUALIFIER = (
    r"(?:[-/*^][ \t]*+[A-Z]{0,9}[ \t]?[0-9]|%"
    r"|(?:per(?:cent)?|or|if|unless|but (?:only|not)|[kMG]?Wh|[MG]?W|watts?|scratch|ignore|cancel"
    r"|never ?mind|hundred|thousand|million|times)\b"
    r"|(?:about|approximately|approx|roughly|or so|at (?:most|least)|max|min|maximum|minimum|maybe"
    r"|perhaps|possibly|no|not sure|wait|sorry|give or take)(?=[ \t]*+(?:[])]|[,.;:!?]|$))"
    r"|(?:in|of|out of|to|up to|and|plus|minus)[ \t]++"
    r"(?:[A-Z]{0,9}[ \t]?[0-9]|(?:one|two|three|four|five|six|seven|eight|nine|ten|a hundred)\b))"
)
_COMMENT = re.compile(
    rf"(?:[ \t]*+[(\[](?![ \t]*+{_QUALIFIER})"
    r"(?:[^()\[\]]|[(\[][^()\[\]]*+[)\]])*+(?:[)\]]|$))*+"
    rf"[ \t{_SIGNS}]*+(?:$|[.!]++[ \t{_SIGNS}]*+$|(?:#|//)(?![ \t]*+(?:[0-9]|{_QUALIFIER}))"
    rf"|(?:[,;.:]|(?<=\.[ \t])|\u2014|(?<=[ \t])-|--)(?![ \t]*+{_QUALIFIER})[^0-9]*+$"
    rf"|(?!{_QUALIFIER})(?:because|since|as|so|to|this|which)\b[^0-9]*+$)",
    re.IGNORECASE,
)


class Grammar:
    """What a reply may command.

    Args:
        words: pattern of the words that commands begin with, such as `TRIP|WAIT|DONE`.
        command: pattern of one bare command, from its first word to its last number.

    Attributes:
        words: finds the words, whole and in any case.
        command: matches one bare command.
    """

    def __init__(self, words: str, command: str) -> None:
        self.words = re.compile(rf"(?<![A-Za-z0-9_])(?:{words})(?![A-Za-z])", _FLAGS)
        self.command = re.compile(command, _FLAGS)


def lines_of(text: str) -> list[str]:
    """Return the lines of `text` that are not blank, without indentation."""
    return _LINE.findall(text)


def answer_of(text: str) -> str:
    """Return the end of a reply that is read, without thinking; the line breaks in it stay."""
    if len(text) > MOST_CHARACTERS:
        cut = text.find("\n", len(text) - MOST_CHARACTERS)
        cut = len(text) if cut < 0 else cut
        before = text[:cut].lower()
        text = "<think>" * (before.rfind("<think") > before.rfind("</think")) + text[cut:]
    if "<" in text:
        for thinking in (_THINKING, _ENDED_THINKING):
            text = thinking.sub(lambda match: "\n" * match[0].count("\n"), text)
    return text


def undecorated(line: str) -> str:
    """Return a line without the decoration that chat models put around a command."""
    # Translating is slow, and seldom needed.
    if not line.isascii() and _UNUSUAL.search(line):
        line = line.translate(_CHARACTERS)
    bare = line.replace("*", "").replace("`", "")
    if "<" in bare or "\\" in bare or "$" in bare:
        bare = _TAGS.sub("", bare)
    if "_" in bare:
        bare = _ITALICS.sub("", bare)
    lead = _LEAD.match(bare)
    return bare[lead.end() if lead else 0 :].rstrip(_TAIL)


def statements(grammar: Grammar, text: str) -> Iterator[tuple[str, list[re.Match[str]]]]:
    """Yield the statements of a reply, from the last to the first.

    Each is a line, without its decoration if that had to be taken off, and what it commands:
    nothing if it is unreadable.

    Args:
        grammar: of the world.
        text: a whole reply, of any length and content.
    """
    for line in reversed(lines_of(answer_of(text))[-MOST_LINES:]):
        if match := grammar.command.fullmatch(line):
            yield line, [match]
        elif grammar.words.match(bare := undecorated(line)):
            yield bare, _commands(grammar, bare)


def _commands(grammar: Grammar, bare: str) -> list[re.Match[str]]:
    """Return the commands of a statement; empty if it holds anything but commands and a comment."""
    commands: list[re.Match[str]] = []
    start = end = 0
    while (match := grammar.command.match(bare, start)) and match.end() > end:
        commands.append(match)
        end = match.end()
        separator = _SEPARATOR.match(bare, end)
        start = separator.end() if separator else end
    if not commands or grammar.words.match(bare, start):
        return []
    # What differs from the first command makes the line ambiguous: better no answer than a guess.
    more = list(grammar.command.finditer(bare, end))
    return commands + more if more or _COMMENT.match(bare, end) else []


def last_match(grammar: Grammar, text: str) -> re.Match[str] | None:
    """Return the command of the last statement.

    `None` if there is no statement, or if the last one is unreadable or holds commands that differ.

    Args:
        grammar: of the world.
        text: a whole reply, of any length and content.
    """
    for _, commands in statements(grammar, text):
        same = commands and all(match.groups() == commands[-1].groups() for match in commands)
        return commands[-1] if same else None
    return None


def number(matched: str) -> float:
    """Return the value of a text that `NUMBER` matched."""
    try:
        return float(matched)
    except ValueError:  # a sign that stands apart
        return float(matched[0] + matched[2:])


def share(matched: str, percent: str) -> float:
    """Return the value of the two groups of `SHARE`: `42%` is .42."""
    return number(matched) / 100.0 if percent else number(matched)


def complaint(text: str, expected: str, *, complete: bool = True) -> str:
    """Return one line that names the fault of a reply and the expected form.

    Args:
        text: the reply that was refused.
        expected: the expected form in words, such as `BATTERY <power in kW>`: never an example,
            which a policy would copy.
        complete: `False` if the reply was cut off before it ended.
    """
    hint = f"Expected: {expected}"
    if not complete:
        return f"Malformed reply: it was cut off before it ended. {hint}"
    answer = answer_of(text)
    lines = lines_of(answer)
    if not lines:
        lack = "its thinking holds no answer" if text.strip() else "it was empty"
        return f"Malformed reply: {lack}. {hint}"
    quoted = lines[-1].strip()[:_QUOTED_CHARACTERS].encode("ascii", "backslashreplace").decode()
    printable = "".join(c if c.isprintable() else "?" for c in quoted)
    place = text.count("\n") + 1 - answer[len(answer.rstrip()) :].count("\n")
    return f"Malformed reply: no line matched; line {place} reads {printable!r}. {hint}"
