"""A compiled desk: the archive, the value of every way to read it, and its texts."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tokengym.envs.forecasting.desk.archive import (
    ANSWER_SHARE,
    BASE,
    PURSE,
    Archive,
    LookValues,
    State,
    model_of,
    plan,
)
from tokengym.envs.forecasting.question import Question
from tokengym.envs.forecasting.texts import macros
from tokengym.rewards.bounds import dyadic
from tokengym.rewards.scoring import Score

SLIP = 1.0
"""Points that a reply costs which is no call, or opens a note that is open."""
SLIP_COST = dyadic(ANSWER_SHARE * SLIP)
"""The same in return."""


class CompiledDesk(NamedTuple):
    """An archive to be read.

    Attributes:
        archive: as `draw_archive` gives it.
        contents: the bit of each note.
        plan: the value of every state.
        opening: the first text.
        turns: most replies.
    """

    archive: Archive
    contents: tuple[int, ...]
    plan: LookValues
    opening: str
    turns: int

    @property
    def start(self) -> State:
        """The state in which no note has been read."""
        return (0,) * len(self.contents)

    def question(self, state: State) -> Question:
        """Return the question as it stands in a state; its forecasts are the exact posterior."""
        share = self.plan.model.posterior(state)
        odds = (1.0 - share, share)
        return Question(self.opening, 0, False, odds, odds, called=True)

    def read(self, note: int) -> str:
        """Return what a note says."""
        text: str = macros("lines").desk_note(self.archive, note, self.contents[note])
        return text


def compile_desk(
    instance: Mapping[str, Any], contents: str, score: Score, prompt: str
) -> CompiledDesk:
    """Compile the archive of an instance.

    Args:
        instance: of a desk.
        contents: the bit of each note, as a digit.
        score: of the answer.
        prompt: how the world words it, one of `PROMPTS`.

    Raises:
        LookupError, TypeError, ValueError: if it is damaged.
    """
    archive, turns = instance["shown"], instance["turns"]
    bits = tuple(map(int, contents))
    prices = [note["price"] for note in archive["notes"]]
    spent = sum(prices) + turns * SLIP
    if len(bits) != len(prices) or not set(bits) <= {0, 1} or min(prices) <= 0.0 or spent > PURSE:
        raise ValueError(f"notes need a bit each, and prices that {PURSE:g} points pay")
    costs = [dyadic(ANSWER_SHARE * price) for price in prices]
    words = macros(f"prompt_{prompt}")
    opening = words.desk(archive, turns, score, BASE, PURSE, SLIP)
    solved = plan(model_of(archive), costs, score.formula)
    return CompiledDesk(archive, bits, solved, opening, turns)
