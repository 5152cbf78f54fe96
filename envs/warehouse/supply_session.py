"""Mode `supply`: buy one article under changing demand, scored as a share of what hindsight earns.

The optimum is what a plan made in hindsight earns, who knows demand and lead times: a bound that no
policy need reach. Buying nothing earns 0, the reference.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.form import ReplyForm
from tokengym.envs.core.grammar import complaint
from tokengym.envs.core.turn import StopReason
from tokengym.envs.warehouse.grammar import read_reorder, reorder_nearness
from tokengym.envs.warehouse.inventory import bullwhip
from tokengym.envs.warehouse.prompt import REORDER_WORDS, Answer, Prompt
from tokengym.envs.warehouse.supply import SKU, Course, Supply, Terms


@dataclass(frozen=True)
class CompiledSupply:
    """A stretch of buying compiled.

    Attributes:
        course: what happens.
        reference: what buying nothing earns.
        optimum: what hindsight earns.
        prompt: writes the texts.
    """

    course: Course
    reference: float
    optimum: float
    prompt: Prompt

    exact: ClassVar[bool] = False

    @classmethod
    def of(
        cls, instance: Mapping[str, Any], answer: Mapping[str, Any], prompt: Prompt, replies: int
    ) -> Self:
        """Compile the two parts of a Task.

        Raises:
            TaskError: if there are more periods than `replies`, or the outcomes do not fit.
        """
        terms = Terms.of(instance)
        if terms.periods > replies:
            raise TaskError(f"{terms.periods} periods exceed the level's {replies} turns")
        course = read_course(terms, answer)
        return cls(course, float(answer["reference"]), float(answer["optimum"]), prompt)

    @cached_property
    def opening(self) -> str:
        """The first prompt."""
        return self.prompt.supply_opening(self.course.terms)


def read_course(terms: Terms, answer: Mapping[str, Any]) -> Course:
    """Read what happens from an answer, where orders that never arrive have no lead time."""
    leads = tuple(None if lead is None else int(lead) for lead in answer["leads"])
    return Course(terms, tuple(map(int, answer["demand"])), leads)


class SupplySession:
    """Periods of buying in progress.

    Args:
        compiled: the periods.

    Attributes:
        compiled: the periods.
        supply: the state.
        turns: periods so far.
        refused: replies of which a line was refused so far.
        malformed: replies without a command so far.
    """

    def __init__(self, compiled: CompiledSupply) -> None:
        self.compiled = compiled
        self.supply = Supply(compiled.course)
        self.turns = 0
        self.refused = 0
        self.malformed = 0

    @property
    def objective(self) -> float:
        """What was earned so far."""
        return self.supply.earned

    @property
    def replies(self) -> int:
        """Replies in an episode that has none but malformed ones."""
        return self.compiled.course.terms.periods

    @property
    def form(self) -> ReplyForm:
        """What a well-formed reply looks like."""
        return ReplyForm(REORDER_WORDS, single_line=False)

    def metrics(self) -> dict[str, float]:
        """Return the metrics of the periods so far."""
        supply, foresight = self.supply, self.compiled.course.foresight
        asked = sum(supply.asked)
        return {
            "refused": float(self.refused),
            "malformed_replies": float(self.malformed),
            "normalized_reward": max(0.0, supply.earned / foresight) if foresight else 0.0,
            "fill_rate": supply.sold / asked if asked else 1.0,
            **bullwhip([supply.ordered], [supply.asked]),
        }

    def respond(self, text: str, complete: bool) -> Answer:
        """Apply a reply and play the period."""
        feedback = []
        lines = read_reorder(text, complete=complete)
        nearness = None
        if lines is None:
            self.malformed += 1
            nearness = reorder_nearness(text, 1)
            feedback.append(complaint(text, REORDER_WORDS, complete=complete))
            lines = []
        unknown = [sku for sku, _ in lines if sku != SKU]
        if unknown:
            self.refused += 1
            feedback.append(f"Refused: there is no item {unknown[0]}.")
        supply, prompt = self.supply, self.compiled.prompt
        arrivals, sold, lost = supply.order(dict(lines).get(SKU, 0))
        self.turns += 1
        feedback.append(prompt.supply_news(supply, arrivals, sold, lost))
        if supply.period == supply.course.terms.periods:
            feedback.append("The last period is over.")
            return Answer("\n".join(feedback), nearness, StopReason.COMPLETED)
        feedback.append(prompt.supply_state(supply))
        return Answer("\n".join(feedback), nearness)
