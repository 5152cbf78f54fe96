"""An archive as a statistical model, and the best way to read it: exact dynamic programming.

A question asks whether all of three items will come true, or at least one. Each of n notes is one
bit: a report prints its item in one of two colours, a style book says which colour a wire prints
for what will come true, an erratum whether a report's colour was swapped. A state says of each note
whether it is unread (0) or which bit it showed (1 or 2), so that there are 3ⁿ of them.

An archive is plain JSON: `{"join": "all" | "any", "items": [{"prior", ...}], "wires": [...],
"notes": [...]}`. A note has a `kind`, a `price` in points and, as a report, `item`, `wire` and
`right`, as a style book `wire`, as an erratum `report`; all of these count from 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tokengym.rewards.arrays import Floats
from tokengym.rewards.scoring import Formula

Archive = Mapping[str, Any]
State = tuple[int, ...]
"""Of each note 0 if it is unread, else 1 plus the bit that it showed."""

BASE, PURSE = 100.0, 50.0
"""Points of a perfect answer, and what there is to spend beside them."""
ANSWER_SHARE = 0.95 / (BASE + PURSE)
"""Return of one point: all points together are worth what form leaves."""


_ABOUT = {"style": "wire", "erratum": "report", "report": "item"}


class Model(NamedTuple):
    """The joint law of an archive.

    Attributes:
        chances: of each state the probability that the notes it has read show what they do there,
            shape (3,) · n.
        yes: the same, and that the answer is yes.
        contents: of each content of all notes its probability, shape (2,) · n.
        contents_yes: the same, and that the answer is yes.
    """

    chances: Floats
    yes: Floats
    contents: Floats
    contents_yes: Floats

    def posterior(self, state: State) -> float:
        """Return the probability of yes in a state."""
        return float(self.yes[state] / self.chances[state])


def model_of(archive: Archive) -> Model:
    """Return the joint law of an archive's notes and of the answer.

    Raises:
        LookupError, TypeError, ValueError: if it is damaged.
    """
    items, notes = archive["items"], archive["notes"]
    axes = np.indices((2,) * (len(items) + len(notes)), dtype=np.int8)
    true, bits = axes[: len(items)], axes[len(items) :]
    joint = np.full(axes.shape[1:], 1.0)
    for happens, item in zip(true, items, strict=True):
        joint *= np.where(happens, item["prior"], 100 - item["prior"]) / 100.0
    keys = {_key(note): bit for note, bit in zip(notes, bits, strict=True)}
    for place, (note, bit) in enumerate(zip(notes, bits, strict=True)):
        if note["kind"] != "report":
            joint *= 0.5
            continue
        said = bit ^ 1 ^ keys["style", note["wire"]] ^ keys.get(("erratum", place), 0)
        agrees = said == true[note["item"]]
        joint *= np.where(agrees, note["right"], 100 - note["right"]) / 100.0
    answer = {"all": true.all(axis=0), "any": true.any(axis=0)}[archive["join"]]
    over = tuple(range(len(items)))
    contents, contents_yes = joint.sum(axis=over), (joint * answer).sum(axis=over)
    return Model(_with_unread(contents), _with_unread(contents_yes), contents, contents_yes)


def _key(note: Mapping[str, Any]) -> tuple[str, int]:
    """Name what a note is about: a style book a wire, an erratum a report, a report an item."""
    kind = note["kind"]
    return kind, note[_ABOUT[kind]]


def _with_unread(contents: Floats) -> Floats:
    """Return sums over whatever is unread, shape (3,) · n, from shape (2,) · n."""
    for axis in range(contents.ndim):
        contents = np.concatenate([contents.sum(axis=axis, keepdims=True), contents], axis=axis)
    return contents


@dataclass(frozen=True, eq=False)
class LookValues:
    """The value of every state by looks left: what is still to be earned, in return.

    Attributes:
        model: the joint law.
        prices: what each look costs, in return.
        answers: the value of answering at once with the posterior, times `model.chances`.
        values: by looks left, 0 to n, the best value, times `model.chances`.
    """

    model: Model
    prices: tuple[float, ...]
    answers: Floats
    values: tuple[Floats, ...]

    def value(self, state: State, looks: int) -> float:
        """Return the best value of a state with at most `looks` looks before the answer."""
        table = self.values[min(looks, len(self.prices))]
        return float(table[state] / self.model.chances[state])

    def look_value(self, state: State, note: int, looks: int) -> float:
        """Return the best value of a look at an unread note, itself the first of `looks`."""
        table = self.values[min(looks - 1, len(self.prices))]
        shown = sum(float(table[opened(state, note, bit)]) for bit in (0, 1))
        return shown / float(self.model.chances[state]) - self.prices[note]

    def best_look(self, state: State, looks: int) -> int | None:
        """Return the note to open next; `None` if it is best to answer."""
        unread = [note for note, seen in enumerate(state) if not seen] if looks else []
        values = {note: self.look_value(state, note, looks) for note in unread}
        best = max(values, key=lambda note: values[note], default=None)
        now = float(self.answers[state] / self.model.chances[state])
        return best if best is not None and values[best] > now + _TIE else None


_TIE = 1e-12
"""Looks that gain no more are not worth the trouble."""


def plan(model: Model, prices: Sequence[float], rule: Formula) -> LookValues:
    """Solve an archive.

    Args:
        model: its joint law.
        prices: what each look costs, in return.
        rule: the score of the answer.
    """
    chances = model.chances
    odds = ((1.0 - share, share) for share in (model.yes / chances).ravel().tolist())
    scores = np.array([rule(each, each) for each in odds]).reshape(chances.shape)
    answers = ANSWER_SHARE * (BASE * scores + PURSE) * chances
    values = [answers]
    for _ in prices:
        best, after = answers.copy(), values[-1]
        for note, price in enumerate(prices):
            unread, no, yes = (_at(note, seen) for seen in range(3))
            look = after[no] + after[yes] - price * chances[unread]
            np.maximum(best[unread], look, out=best[unread])
        values.append(best)
    return LookValues(model, tuple(prices), answers, tuple(values))


def opened(state: State, note: int, bit: int) -> State:
    """Return the state after a look at a note that shows `bit`."""
    return (*state[:note], 1 + bit, *state[note + 1 :])


def _at(axis: int, index: int) -> tuple[slice | int, ...]:
    return (*(slice(None),) * axis, index)
