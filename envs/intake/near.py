"""Texts that say the same, by normal form or by wording that differs in next to nothing.

Two texts are near if their words are the same whatever their order, case, marks, endings and small
words, or if beyond that one word is left out or spelled with one letter more, less or other. Words
with digits never differ, so that questions of a series stay apart.
"""

import hashlib
import re
import unicodedata
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import lru_cache

_MARKS = re.compile("[\u0300-\u036f'\u2018\u2019\u02bc`\u00b4]")
_WORD = re.compile(r"\w+|[<>\u2264\u2265=+%$\u20ac\xa3]|(?<!\w)[-\u2212](?=\d)")
"""Words, and the signs that tell a number from another."""
_SMALL = re.compile(
    "an?|and|any|are|as|at|be|been|before|after|by|did|do(?:es)?|during|for|from|had|has|have|he|if|in"
    "|into|is|its?|no|of|on|or|our|s|she|than|that|the|their|them|then|there|these|they|this|those|to"
    "|was|we|were|what|when|where|whether|which|who|will|with|would"
)
_ENDING = re.compile(r"(?<=\w{3})(?:(?:er|ing|ed)?s?)$")
_LEAST_CONTENT = 3
"""Letters of a word that says something by itself."""
_LEAST_WORDS = 4
"""Texts with fewer words are near only if all their words are the same."""
_LEAST_LETTERS = 6
"""Shorter words are not taken for misspelt ones."""


def normal_form(text: str) -> str:
    """Return the words of a text in one case, without accents, marks and compatibility forms."""
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text)
    # Ligatures, which case folding leaves apart, are decomposed by now.
    return " ".join(_WORD.findall(_MARKS.sub("", text.casefold())))


def content_words(text: str) -> frozenset[str]:
    """Return the words of a text that carry it, without endings; all of them if none does."""
    words = normal_form(text).split()
    return frozenset(_stem(w) for w in words if not _SMALL.fullmatch(w)) or frozenset(words)


def is_filler(text: str) -> bool:
    """Return whether no word of a text carries it: all are small or of one or two letters."""
    words = normal_form(text).split()
    return all(len(word) < _LEAST_CONTENT or _SMALL.fullmatch(word) for word in words)


def hash_words(words: str | Iterable[str]) -> int:
    """Return 64 bits of a normal form, or of a set of words; 0 of no words."""
    text = words if isinstance(words, str) else " ".join(sorted(words))
    digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest) if text else 0


def group_near(texts: Sequence[str]) -> list[int]:
    """Return for each text the number of the first one that it is near to, in steps if need be.

    Which texts are together does not depend on their order; one without words is on its own.
    """
    worded = [content_words(text) for text in texts]
    whole = set(worded)
    return group_by(_keys(words, whole) for words in worded)


def group_by(keys: Iterable[Iterable[Hashable]]) -> list[int]:
    """Return for each entry the number of the first one it shares a key with, in steps if need be.

    Args:
        keys: by entry its keys.
    """
    first: list[int] = []
    owner: dict[Hashable, int] = {}
    for number, own in enumerate(keys):
        first.append(number)
        for key in own:
            low, high = sorted((_root(first, owner.setdefault(key, number)), _root(first, number)))
            first[high] = low
    return [_root(first, number) for number in range(len(first))]


def _root(first: list[int], number: int) -> int:
    while first[number] != number:
        first[number] = first[first[number]]
        number = first[number]
    return number


def _keys(words: frozenset[str], whole: set[frozenset[str]]) -> Iterator[Hashable]:
    """Yield keys; two near texts share at least one."""
    if words:
        yield words
    for word in words if len(words) > _LEAST_WORDS else ():
        if word.isalpha():
            rest = words - {word}
            if rest in whole:
                yield rest
            if len(word) >= _LEAST_LETTERS:
                yield rest, word
                for at in range(len(word)):
                    yield rest, word[:at] + word[at + 1 :]


@lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    stem = _ENDING.sub("", word)
    # close, closes and closed are one word, and so are win, wins, winner and winning.
    stem = stem[:-1] if len(stem) > 3 and stem[-1] == "e" else stem
    return stem[:-1] if len(stem) > 3 and stem[-1] == stem[-2] else stem
