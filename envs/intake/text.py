"""Cleaning of users' texts, so that what reaches a prompt is what a reader of it sees."""

import html
import re

from tokengym.envs.core.errors import DataError

LONGEST_TEXT = 1_000_000
"""Longest text that is read, in characters."""

_PLAIN = re.compile(r"[\n\t !-%'-;=?-Z\\^-~]*")
"""Text that cleaning leaves as it is: no controls, no brackets of markup or tokens, no entities."""
_PLANES = range(1 << 16, 14 << 16, 1 << 16)
# Characters that draw nothing, by code, so that no version of Python reads another text: controls,
# formats such as marks of direction, halves of characters, private use, variation selectors, tags,
# fillers. Joiners, which some scripts are misspelt without, are kept after their letters.
_HIDDEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891"
    "\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u2800"
    "\u3164\ud800-\uf8ff\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffc\ufffe\uffff]+"
)
_FAR = re.compile("[\U00010000-\U0010ffff]")
"""Characters for which a class of its own is slow, and which few texts have."""
_HIDDEN_FAR = re.compile(
    "[\U000110bd\U000110cd\U00013430-\U0001343f\U00016fe4\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
    + "".join(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in _PLANES)
    + "\U000e0000-\U0010ffff]+"
)
_JOINERS = re.compile(
    "(?<![\u0600-\u109f\u1780-\u18af\ua800-\uabff\u2600-\u27bf\U00011000-\U00011fff"
    "\U0001f000-\U0001faff])[\u200c\u200d]+|(?<=[\u200c\u200d])[\u200c\u200d]+"
)
_BREAKS = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_BLANKS = re.compile("[\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]")

_AMPERSANDS = re.compile(r"&(?:(?:amp|AMP|#0*38|#[xX]0*26);)+")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_PASSES = 4
_AGAIN = re.compile(r"[<&]")
"""Pattern of text that may need another pass."""
_VALUE = r"""(?:"[^"<>]*"|'[^'<>]*'|[^\s"'<>]+)"""
_ATTRIBUTES = rf"(?:\s+[\w:-]+\s*=\s*{_VALUE})*\s*/?>"
_MARKUP = re.compile(
    r"</?(?:(?:jats|mml|m|tex|xlink):[\w-]+|abbr|a|bold|big|b|cite|code|em|font|i|img|inf|italic|kbd"
    r"|mark|math|m(?:frac|i|n|o|over|row|sqrt|style|sub|subsup|sup|text|under)|sc|scp|small|span|strong|sub|sup|tt|u|var)"
    rf"{_ATTRIBUTES}|<!--[^<>]*-->",
    re.IGNORECASE,
)
_BLOCK = re.compile(
    r"</?(?:(?:jats:)?(?:title|sec|p|list|list-item)|blockquote|br|div|dd|dl|dt|h[1-6]|hr|li|ol|pre"
    rf"|section|table|tbody|td|th|thead|tr|ul){_ATTRIBUTES}",
    re.IGNORECASE,
)
# Whatever stands between angle brackets without a blank can be a control token of some tokenizer:
# <|im_end|>, </s>, <start_of_turn>, <think>; some write the bar in full width. So can [INST],
# [gMASK], [control_8] and ]~b].
_BRACKET = re.compile("[<>[\\]\ufe64\ufe65\uff1c\uff1e\uff3b\uff3d]")
_TAG = re.compile("[<\ufe64\uff1c]([^\\s<>\ufe64\ufe65\uff1c\uff1e]{1,64})[>\ufe65\uff1e]")
_HALF = re.compile("[<\ufe64\uff1c]([|\uff5c])|([|\uff5c])[>\ufe65\uff1e]")
_CAPITALS = re.compile("[\\[\uff3b](/?(?=\\w*(?:[A-Z]{3}|[A-Za-z]_))\\w{3,32})[\\]\uff3d]")
_TILDE = re.compile(r"([\[\]])(?=e?~)(e?~)([a-z!]{0,8})([\[\]])")


def clean(text: str) -> str:
    """Return a user's text as it is shown: its lines, without what only a machine would notice.

    Characters that draw nothing are left out, blanks of other widths become blanks. Entities of
    HTML are what they stand for, its markup is left out. <Words> and [CAPITALS] in brackets, which
    a tokenizer may read as control tokens, are put in round ones. Cleaning twice changes nothing.

    Raises:
        DataError: if it is longer than `LONGEST_TEXT`.
    """
    if len(text) > LONGEST_TEXT:
        raise DataError(f"a text has {len(text):,} characters, more than {LONGEST_TEXT:,}")
    if _PLAIN.fullmatch(text):
        return text.strip()
    for _ in range(_PASSES):
        before, text = text, _pass(text)
        if text == before or not _AGAIN.search(text):
            return text
    return _pass(text.replace("&", "+"))


def clean_line(text: str) -> str:
    """Return a text as `clean` does, on one line: it cannot pass for another field of a prompt.

    Raises:
        DataError: if it is longer than `LONGEST_TEXT`.
    """
    return " ".join(clean(text).split())


def _pass(text: str) -> str:
    text = _visible(text)
    if "&" in text:
        unescaped = _ENTITY.sub(lambda match: html.unescape(match[0]), _AMPERSANDS.sub("&", text))
        text = _visible(unescaped)
    if not _BRACKET.search(text):
        return text.strip()
    text = _MARKUP.sub("", _BLOCK.sub("\n", text))
    while _TAG.search(text):  # before the halves, whose brackets share the bar of "<|>"
        text = _TAG.sub(r"(\1)", text)
    text = _HALF.sub(lambda match: f"({match[1]}" if match[1] else f"{match[2]})", text)
    return _TILDE.sub(r"(\2\3)", _CAPITALS.sub(r"(\1)", text)).strip()


def _visible(text: str) -> str:
    text = _HIDDEN.sub("", _BLANKS.sub(" ", _BREAKS.sub("\n", text)))
    if _FAR.search(text):
        text = _HIDDEN_FAR.sub("", text)
    return _JOINERS.sub("", text) if "\u200c" in text or "\u200d" in text else text
