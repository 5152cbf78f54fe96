"""Questions that tell the outcome of another: "Will the Kestrel, winner of the regatta, …"."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from tokengym.envs.forecasting.data.record import QuestionRecord
from tokengym.envs.intake.near import content_words

_SENTENCE = re.compile(r"[.!?]+\s|\n")
_LEAST_SHARED = 0.5
"""Share of the words of a question that a sentence must have to be about the same."""
_COMMONEST = 0.02
"""A sentence about the same shares a word that no larger share of all sentences has, or no more
than `_FEW` have."""
_FEW = 5


def find_telling(
    questions: Sequence[QuestionRecord], held_out: Sequence[QuestionRecord]
) -> Iterator[tuple[QuestionRecord, QuestionRecord]]:
    """Yield each question that tells the outcome of one held out, with the first such.

    A sentence of it, in the question or its background, has all words of the outcome's name and
    half of those of the question held out, a rare one among them. Only outcomes with names can be
    told by their names.
    """
    sentences = [
        (number, content_words(sentence))
        for number, record in enumerate(questions)
        for sentence in _SENTENCE.split(f"{record.question}\n{record.background}")
        if sentence
    ]
    holding: dict[str, set[int]] = defaultdict(set)
    for at, (_, words) in enumerate(sentences):
        for word in words:
            holding[word].add(at)
    most = max(_FEW, _COMMONEST * len(sentences))
    told: dict[int, QuestionRecord] = {}
    for record in held_out:
        if not record.labels or record.ordered:
            continue
        name = content_words(record.labels[record.outcome])
        asked = content_words(record.question) - name
        if not name or not asked:
            continue
        for at in set.intersection(*(holding.get(word, set()) for word in name)):
            number, words = sentences[at]
            shared = asked & words
            rare = any(len(holding[word]) <= most for word in shared)
            if rare and len(shared) >= _LEAST_SHARED * len(asked) and record != questions[number]:
                told.setdefault(number, record)
    for number, record in sorted(told.items(), key=lambda entry: entry[0]):
        yield questions[number], record
