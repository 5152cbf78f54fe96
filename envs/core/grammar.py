r"""Reading a reply: the last statement decides, readable or not; the rest is ignored.

One grammar for all worlds. A world writes a `Grammar`: the words that its commands begin with, and
a pattern of one bare command. Every line that begins with such a word is a statement. It is
readable if it holds nothing but commands and a comment, and an unreadable one withdraws what it
replaces: no reply is paid for an answer that its policy took back. A line of prose that leads to a
command (`So I choose BATTERY 2`) is a statement if it is readable, and else only mentions one.
Where one reply holds several commands, a world says which of them a statement replaces.

Thinking is no part of the answer: `<think>` to `</think>`, everything before a `</think>` that was
never opened, everything after a `<think>` that is never closed. Of a reply that was cut off, the
lines that had ended are read.

Statements are found inside what chat models put around them: Markdown (bold, italics, code,
bullets, numbering, headings, quotes, rows of tables), quotation marks, the brackets of a
placeholder, JSON, emoji, `Answer:`, `<answer>` tags, `\boxed{}`, full-width characters, no-break
and zero-width spaces, U+2212 and other minus signs, several commands on a line, a comment after
them. A tail that qualifies (`at most`, `if it rains`), a range or a ratio makes the statement
unreadable. A match of the pattern itself always means the same, decorated or not, and no reply
takes more than linear time as long as the pattern begins with a word and repeats possessively
(`[ \t]*+`).
"""

import re
from collections.abc import Callable, Collection, Iterator
from functools import cache, lru_cache, wraps
from typing import Concatenate, Generic, NamedTuple, ParamSpec, cast

from typing_extensions import TypeVar

NUMBER = r"[+-]?[ \t]?(?:[0-9]{1,60}(?:\.[0-9]{0,60})?|\.[0-9]{1,60})(?:[eE][+-]?[0-9]{1,3})?"
"""A pattern of a decimal number; its sign may stand apart. `number` reads what it matches."""

SHARE = rf"({NUMBER}|[+-]?(?:nan|inf(?:inity)?))((?:[ \t]*+(?:%|per[ ]?cent\b))?)"
"""A pattern of a probability, two groups; `share` reads what they match."""

IS = (
    r"[ \t]*+(?:(?:is|are|of|at|to|will be|should be)\b[ \t]*+)?+[:=|]?+[ \t]*+"
    r"(?:(?:about|around|roughly|approximately|approx\.?|~|\u2248)[ \t]*+)?+"
)
"""A pattern of what stands between a word and its value."""

NEXT = r"(?=[ \t,;/|&])[ \t]*+[,;/|&]?+[ \t]*+(?:and\b[ \t]*+)?+"
"""A pattern of what stands between the values of a list."""

MOST_LINES = 1000
MOST_CHARACTERS = 100_000
"""Lines of a reply that are read, from its end, and characters: no reply takes long to read."""

_SHORT = 256
"""Characters of a reply up to which worlds remember what they read: few different ones occur."""
_END = 10_000
"""Characters at the end of a reply in which lines are joined."""
_CHUNK = 4_000
"""Characters at the end of a reply in which its last lines are looked for first."""
_MARKS = r"[ \t>*+\"'`-]*+"
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
        # Zero-width characters and marks of direction.
        **dict.fromkeys("\u200b\u200c\u200d\u200e\u200f\u2060\u061c\ufe0f\ufeff"),
        **{chr(code): None for start in (0x202A, 0x2066) for code in range(start, start + 5)},
        **dict.fromkeys("\u2212\u2010\u2011\u2012\u2013\ufe63", "-"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2018\u2019\u201a\u201b", "'"),
        **dict.fromkeys("\u3002\uff61", ". "),
        **{"\u3001": ",", "\ufe6a": "%", "\u2026": "..."},
    }
)
_UNUSUAL = re.compile(f"[{re.escape(''.join(map(chr, _CHARACTERS)))}]")
_TAGS = re.compile(
    r"</?(?:(?:final[_ ])?(?:answer|reply|response|command|action)|b|strong|i|em|code|p|br)[ ]?/?>"
    r"|\\(?:boxed|text|textbf|mathbf|mathrm)[ ]?\{|[{}$]|\\(?=%)|\\[()\[\]]",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(
    r"<((?!/)[^<>\s,]++(?:,[ \t]*+[^<>\s,]++)*+(?:[ ]?(?:kW|units?|%))?)>", re.IGNORECASE
)
_JSON = re.compile(r"[\"\']([A-Za-z0-9_. +-]{1,60}+)[\"\'](?=[ \t]*+(?:[:,}\]]|$))")
_ITALICS = re.compile(r"(?<![A-Za-z0-9_])_++|(?<!_)_++(?![A-Za-z0-9])")
_SIGNS = "\u2190-\u21ff\u25a0-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
"""Arrows, shapes and emoji."""
_LEAD = re.compile(
    rf"(?:[\s>#|\"'~,\[{_SIGNS}]++|[-+=\u2014\u2022\u2023\u25e6]++(?=\s)|[=-]++>"
    r"|\(?[0-9]{1,3}[.)](?=\s)|(?:at |hour )?[0-9]{1,2}(?:h:?|:[0-9]{2}:?|:|(?=[ ]?\|))(?=[\s|])"
    r"|(?:so |my |the ){0,2}+(?:final |new |revised |updated |corrected )?"
    r"(?:answer|reply|response|output|action|command|decision|forecast|prediction|correction)"
    r"(?: is)?\s*+[:=])*+",
    re.IGNORECASE,
)
_PROSE = re.compile(
    r"(?:(?:so|thus|therefore|hence|then|now|ok(?:ay)?|finally|overall|in|conclusion|summary|short"
    r"|i|we|i'll|we'll|i'd|let|let's|me|us|will|would|shall|should|am|going|say|choose|pick|go|use"
    r"|with|set|reply|respond|recommend|suggest|estimate|give|send|call|my|our|the|a|this|is|be|to"
    r"|next|final|best|optimal|resulting|estimated|answer|command|choice|decision|action|forecast"
    r"|for|hour|trip is(?=\W{1,3}trip))(?![A-Za-z0-9_'(])[ \t]*+[,:=]?+[ \t\"]*+)++",
    re.IGNORECASE,
)
_ANSWER = re.compile(r"answer", re.IGNORECASE)
_BOX = re.compile(r"\\boxed[ ]?\{((?:[^{}]|\{[^{}]*+\})*+)")
_DOUBT = re.compile(r"(?:\b(?:not|never|no|if|or|than|instead|unless|avoid)|n't)\b", re.IGNORECASE)
_LETTERS = re.compile(r"[^A-Z]")
_TAIL = " \t\r\n\"'|~]"
_SEPARATOR = re.compile(r"[ \t]*+(?:[,;|&/]|and\b|then\b)?[ \t]*+", re.IGNORECASE)
# Text after a command may comment, not qualify: these would change, hedge or withdraw it.
_QUALIFIER = (
    r"(?:[-/*^][ \t]*+[A-Z]{0,9}[ \t]?[0-9]|%"
    r"|(?:per(?:cent)?|or(?! so\b)|if|unless|but (?:only|not)|[kMG]?Wh|[MG]?W|watts?|scratch|ignore"
    r"|cancel|never ?mind|hundred|thousand|million|times)\b"
    r"|(?:at (?:most|least)|max|min|maximum|minimum|maybe|perhaps|possibly|no|not sure"
    r"|wait|sorry|give or take)(?=[ \t]*+(?:[])]|[,.;:!?]|$))"
    r"|(?:in|of|out of|to|up to|and|plus|minus)[ \t]++"
    r"(?:[A-Z]{0,9}[ \t]?[0-9]|(?:one|two|three|four|five|six|seven|eight|nine|ten|a hundred)\b))"
)
_COMMENT = re.compile(
    rf"(?:[ \t]*+[(\[](?![ \t]*+{_QUALIFIER})"
    r"(?:[^()\[\]]|[(\[][^()\[\]]*+[)\]])*+(?:[)\]]|$))*+"
    rf"[ \t{_SIGNS}]*+(?:$|[.!]++[ \t{_SIGNS}]*+$|(?:#|//)(?![ \t]*+(?:[0-9]|{_QUALIFIER}))"
    rf"|(?:[,;.:|]|(?<=\.[ \t])|\u2014|(?<=[ \t])-|--)(?![ \t]*+{_QUALIFIER})[^0-9]*+$"
    rf"|(?!{_QUALIFIER})(?:because|since|as|so|to|this|which|for|given|based|considering|now|first"
    r"|approximately|roughly|or so)\b[^0-9]*+$)",
    re.IGNORECASE,
)


class Grammar:
    """Commands that a reply may give.

    Args:
        words: pattern of the words that commands begin with, such as `TRIP|WAIT|DONE`.
        command: pattern of one bare command, from its first word to its last number.
        lone: the word of an answer that states a value alone, in a box or after `Answer:`; empty if
            such an answer could mean several things.
        anywhere: whether a command may stand at the end of any sentence, as a call can.

    Attributes:
        words: finds the words, whole and in any case.
        command: matches one bare command.
    """

    def __init__(self, words: str, command: str, lone: str = "", *, anywhere: bool = False) -> None:
        self.words = re.compile(rf"(?<![A-Za-z0-9_])(?:{words})(?![A-Za-z])", _FLAGS)
        self.command = re.compile(command, _FLAGS)
        self.lone, self.anywhere = lone, anywhere
        answered = r"|answer|\\boxed" * bool(lone)
        self._hint = re.compile(rf"(?<![A-Za-z0-9])(?:{words}){answered}", _FLAGS)

    def may_state(self, line: str) -> bool:
        """Return whether a line can be a statement: a quick test, which most lines fail."""
        return not line.isascii() or self._hint.search(line) is not None

    def mentioned(self, text: str) -> Iterator[re.Match[str]]:
        """Find what looks like a command in a reply, whether it is a statement or not."""
        return self.command.finditer(answer_of(text).replace("*", "").replace("`", ""))


T = TypeVar("T", default=object)
P = ParamSpec("P")


class Reading(NamedTuple, Generic[T]):
    """Statement read from a reply.

    Attributes:
        value: what the reply states; `None` if it is malformed.
        said: what the next Turn says of it: a complaint if it is malformed, a remark if the reader
            had to choose; else empty.
    """

    value: T | None
    said: str = ""


def remembered(read: Callable[Concatenate[str, P], T]) -> Callable[Concatenate[str, P], T]:
    """Make a reader of replies remember what it read of short ones."""
    known = cast("Callable[Concatenate[str, P], T]", lru_cache(maxsize=16384)(read))

    @wraps(read)
    def read_or_recall(text: str, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return (known if len(text) <= _SHORT else read)(text, *args, **kwargs)

    return read_or_recall


class Statement(NamedTuple):
    """A line of a reply that states something.

    Attributes:
        line: the line.
        lead: the decoration before its first command.
        commands: what it commands; nothing if it is unreadable.
    """

    line: str
    lead: str
    commands: list[re.Match[str]]

    @property
    def command(self) -> re.Match[str] | None:
        """Its last command; `None` if there is none, or if commands differ."""
        last = self.commands[-1] if self.commands else None
        same = all(match.groups() == self.commands[-1].groups() for match in self.commands)
        return last if same else None


SEVERAL = "Your reply held several answers; the last one counts."
"""Message of the next Turn where statements of one reply differ."""


def lines_of(text: str) -> list[str]:
    """Return the lines of `text` that are not blank, without indentation."""
    return _LINE.findall(text)


def last_lines(text: str, count: int) -> list[str]:
    """Return the last `count` lines of `lines_of`, or all if there are fewer."""
    size = _CHUNK
    while len(lines := lines_of(text[-size:])) <= count and size < len(text):
        size *= 4  # the first of these lines may have begun before them
    return lines[-count:]


def ended_lines(text: str) -> str:
    """Return a reply that was cut off without the line in which it was."""
    return text[: max(text.rfind("\n"), text.rfind("\r")) + 1]


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


def usual_characters(text: str) -> str:
    """Return a text with full-width digits, typographic quotes, dashes and blanks as in ASCII."""
    # Translating is slow, and seldom needed.
    if not text.isascii() and _UNUSUAL.search(text):
        return text.translate(_CHARACTERS)
    return text


def unbracketed(text: str) -> str:
    """Return a text in usual characters, without the brackets of a placeholder: `<3>` is 3."""
    return _PLACEHOLDER.sub(r"\1", usual_characters(text))


def joined_shares(text: str, word: str, names: tuple[str, ...]) -> str:
    """Return a reply with probabilities that stand on a line each, in their order, on one line.

    Args:
        text: a reply.
        word: what a line of probabilities begins with.
        names: what each of the probabilities is of.
    """

    def join(found: re.Match[str]) -> str:
        shares = zip(names, found.groups()[::2], found.groups()[1::2], strict=True)
        line = ", ".join(f"{name} {value}{percent}" for name, value, percent in shares)
        return "\n" * found[0].count("\n") + f"{word} {line}"

    start = text.rfind("\n", 0, max(0, len(text) - _END)) + 1
    return text[:start] + _lines_of_shares(names).sub(join, text[start:])


@cache
def _lines_of_shares(names: tuple[str, ...]) -> re.Pattern[str]:
    lines = (rf"{_MARKS}{name}\b{_MARKS}{IS}{_MARKS}{SHARE}[ \t\r*\"'`,.]*+$" for name in names)
    return re.compile("^" + r"\s++".join(lines), _FLAGS | re.MULTILINE)


@lru_cache(maxsize=4)  # a reply is read once for its answer and again for a complaint
def _from_the_end(text: str, complete: bool) -> list[str]:
    """Return the lines of a reply that are read, the last one first."""
    answer = answer_of(text if complete else ended_lines(text))
    return last_lines(answer, MOST_LINES)[::-1]


def undecorated(line: str) -> str:
    """Return a line without the decoration that chat models put around a command."""
    return _parted(line)[1]


def _parted(line: str) -> tuple[str, str]:
    """Return the decoration before a command, and the line without any."""
    line = usual_characters(line)
    bare = line.replace("*", "").replace("`", "")
    if '":' in bare or "':" in bare:
        bare = _JSON.sub(r"\1", bare)
    if "<" in bare or "\\" in bare or "$" in bare or "{" in bare or "}" in bare:
        bare = _PLACEHOLDER.sub(r"\1", _TAGS.sub("", bare))
    if "_" in bare:
        bare = _ITALICS.sub("", bare)
    lead = _LEAD.match(bare)
    end = lead.end() if lead else 0
    return bare[:end], bare[end:].rstrip(_TAIL)


def statements(grammar: Grammar, text: str, *, complete: bool = True) -> Iterator[Statement]:
    """Yield the statements of a reply, from the last to the first.

    Args:
        grammar: of the world.
        text: a whole reply, of any length and content.
        complete: `False` if it was cut off: then the lines count that had ended.
    """
    for line in _from_the_end(text, complete):
        if match := grammar.command.fullmatch(line):
            yield Statement(line, "", [match])
        elif grammar.may_state(line):
            lead, bare = _parted(line)
            if grammar.words.match(bare):
                yield Statement(line, lead, _commands(grammar, bare))
            elif (commands := _led_to(grammar, line, lead, bare)) and not _differ(commands):
                yield Statement(line, lead, commands)


def _led_to(grammar: Grammar, line: str, lead: str, bare: str) -> list[re.Match[str]]:
    """Return the commands that prose, a box or `Answer:` leads to; empty if they are unreadable."""
    prose = _PROSE.match(bare)
    rest = bare[prose.end() :] if prose else bare
    if grammar.words.match(rest):
        return _commands(grammar, rest)
    if grammar.anywhere and (found := grammar.command.search(bare)):
        doubted = _DOUBT.search(bare, 0, found.start())
        return [] if doubted else _commands(grammar, bare[found.start() :])
    if grammar.lone:
        if boxes := _BOX.findall(line):
            box = undecorated(boxes[-1])
            return _commands(grammar, box) or _commands(grammar, f"{grammar.lone} {box}")
        if _ANSWER.search(lead) or (prose and _ANSWER.search(prose[0])):
            return _commands(grammar, f"{grammar.lone} {rest}")
    return []


def _differ(commands: list[re.Match[str]]) -> bool:
    """Return whether commands of one word say different things."""
    said = {match[0].upper() for match in commands}
    return len(said) > len({_LETTERS.split(word, maxsplit=1)[0] for word in said})


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
    # A different second command makes the line ambiguous: better no answer than a guess.
    more = list(grammar.command.finditer(bare, end))
    return commands + more if more or _COMMENT.match(bare, end) else []


def last_command(grammar: Grammar, text: str, *, complete: bool = True) -> Reading[re.Match[str]]:
    """Return the command of the last statement, and a remark if another one says otherwise.

    Args:
        grammar: of the world.
        text: a whole reply, of any length and content.
        complete: `False` if it was cut off: then the lines count that had ended.
    """
    stated = statements(grammar, text, complete=complete)
    last = next(stated, None)
    command = last.command if last else None
    if command is None:
        return Reading(None)
    said = command[0].upper()
    others = (match[0].upper() for each in stated for match in each.commands)
    return Reading(command, SEVERAL if any(other != said for other in others) else "")


def last_match(grammar: Grammar, text: str, *, complete: bool = True) -> re.Match[str] | None:
    """Return the command of the last statement.

    `None` if there is no statement, or if the last one is unreadable or holds commands that differ.

    Args:
        grammar: of the world.
        text: a whole reply, of any length and content.
        complete: `False` if it was cut off: then the lines count that had ended.
    """
    return last_command(grammar, text, complete=complete).value


def number(matched: str) -> float:
    """Return the value of a text that `NUMBER` matched."""
    try:
        return float(matched)
    except ValueError:  # a sign that stands apart
        return float(matched[0] + matched[2:])


def share(matched: str, percent: str) -> float:
    """Return the value of the two groups of `SHARE`: `42%` is .42."""
    return number(matched) / 100.0 if percent else number(matched)


def normalised(shares: Collection[float], slack: float) -> Reading[tuple[float, ...]]:
    """Return probabilities that sum to 1, with a remark where they were rescaled noticeably.

    Args:
        shares: as they were stated: off by rounding or by a common factor, such as percentages.
        slack: how far off a sum may be without a remark.

    Returns:
        nothing if one is negative or no number, or if none is above 0.
    """
    total = sum(shares)
    if not (min(shares) >= 0.0 and 0.0 < total < float("inf")):
        return Reading(None)
    off = abs(total - 1.0) > slack
    said = f"Your probabilities sum to {total:.4g}; each was divided by that." if off else ""
    return Reading(tuple(value / total for value in shares), said)


def complaint(
    text: str, expected: str, grammar: Grammar | None = None, *, complete: bool = True
) -> str:
    """Return one line that names the fault of a reply, quotes the line and names the expected form.

    Args:
        text: the reply that was refused.
        expected: the expected form in words: never an example, which a policy would copy.
        grammar: by which it was read: finds the line that is at fault.
        complete: `False` if the reply was cut off before it ended.
    """
    hint = f"Expected: {expected}"
    line = _at_fault(grammar, text, complete) if grammar else None
    if line is None and not complete:
        return f"Malformed reply: it was cut off before its answer ended. {hint}"
    answer = answer_of(text)
    lines = last_lines(answer, 1)
    if not lines:
        lack = "its thinking holds no answer" if text.strip() else "it was empty"
        return f"Malformed reply: {lack}. {hint}"
    fault = "no line matched" if line is None else "its answer cannot be read"
    line = lines[-1] if line is None else line
    quoted = line.strip()[:_QUOTED_CHARACTERS].encode("ascii", "backslashreplace").decode()
    printable = "".join(c if c.isprintable() else "?" for c in quoted)
    place = text.count("\n") + 1 - answer.count("\n", max(answer.rfind(line), 0))
    return f"Malformed reply: {fault}; line {place} reads {printable!r}. {hint}"


def _at_fault(grammar: Grammar, text: str, complete: bool) -> str | None:
    """Return the line that made a reply malformed; `None` if none states or mentions a command."""
    stated = list(statements(grammar, text, complete=complete))
    unreadable = [each.line for each in stated if not each.commands]
    if unreadable:
        return unreadable[0]
    known = {each.line for each in stated}
    for line in _from_the_end(text, complete):
        if line not in known and grammar.command.search(line):
            return line
    differing = [each.line for each in stated if each.command is None]
    return differing[0] if differing else stated[0].line if stated else None
