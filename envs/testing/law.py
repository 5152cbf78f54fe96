"""A law: one sentence that every world keeps, the check of it, and the error that names it."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

from tokengym.envs.core.task import Task
from tokengym.envs.testing.subject import Subject


class LawBroken(AssertionError):
    """A world or a reward breaks a law; the message begins with the law.

    Attributes:
        law: name of the law, such as `rewards_lie_on_the_grid`.
        statement: the law, a sentence.
        where: what was tested: world and level, or the function.
        detail: what was observed.
        task: the Task on which it broke, if it was on one.
    """

    def __init__(
        self, law: str, statement: str, where: str, detail: str, task: Task | None = None
    ) -> None:
        self.law, self.statement, self.where = law, statement, where
        self.detail, self.task = detail, task
        on = "" if task is None else f", Task {task.index} of {task.split}"
        super().__init__(f"{statement}\n  broken by {where}{on}\n  {detail}")

    def __reduce__(self) -> tuple[type["LawBroken"], tuple[object, ...]]:
        """Pickle by the parts, so that test runners can carry it between processes."""
        return type(self), (self.law, self.statement, self.where, self.detail, self.task)


class TurnLaw(Enum):
    """Laws of every Turn, checked in every episode that another law plays."""

    EVERY_TASK_CAN_BE_PLAYED = "Every Task of a world opens an episode."
    NO_REPLY_RAISES = "No reply raises an error, whatever its text, complete or cut off."
    TEXTS_ARE_STRINGS = "The text of a Turn is a string."
    ROLES_ARE_DECLARED = "A Turn asks and pays only roles that the spec declares."
    TURN_LIMIT_HOLDS = "No role has more turns than the level's turn limit."
    REWARDS_LIE_IN_THEIR_RANGE = "Rewards and returns lie in the ranges that the spec declares."
    REWARDS_LIE_ON_THE_GRID = "A reward is a multiple of 2⁻¹⁶."
    TERMS_SUM_TO_THE_REWARD = "The terms of a reward sum to it exactly."
    REWARDS_SUM_TO_THE_RETURN = "The rewards of an episode sum to its returns exactly."
    ANSWERS_REPORT_THE_FORM = "Every answer to a reply has the metric `well_formed`, 0 or 1."
    AN_END_HAS_A_REASON = "An episode ends terminated or truncated, not both, with a stop reason."


class Violation(Exception):
    """Raised by a check; `Law.check` turns it into a `LawBroken`.

    Args:
        detail: what was observed.
        task: the Task on which it was.
        law: the law of a Turn that is broken, where it is not the law being checked.
    """

    def __init__(self, detail: str, task: Task | None = None, law: TurnLaw | None = None) -> None:
        super().__init__(detail)
        self.detail, self.task, self.law = detail, task, law


def require(holds: bool, detail: str, task: Task | None = None) -> None:
    """Raise a Violation of the law being checked unless `holds`."""
    if not holds:
        raise Violation(detail, task)


@contextmanager
def refused(
    kind: type[Exception], message: str, what: str, task: Task | None = None
) -> Iterator[None]:
    """Require that the block raises an error of a kind.

    Args:
        kind: its type.
        message: a part of its text.
        what: what has to be refused, for the Violation.
        task: the Task on which it is tried.
    """
    try:
        yield
    except kind as error:
        require(message in str(error), f"{what}: {describe(error)}", task)
    else:
        raise Violation(f"{what} was not refused", task)


@dataclass(frozen=True)
class Law:
    """One law of every world.

    Attributes:
        name: its name, an identifier.
        statement: the law, a sentence.
        per_level: `False` for a costly law about the world as a whole: a suite that tests every
            level checks it at one of them only.
        needs_id: whether it is about a world's registered id and cannot be checked of an object.
    """

    name: str
    statement: str
    per_level: bool
    needs_id: bool
    _check: Callable[[Subject], None] = field(repr=False)

    def applies(self, subject: Subject) -> bool:
        """Return whether the law can be checked of `subject`."""
        return subject.registered or not self.needs_id

    def check(self, subject: Subject) -> None:
        """Check the law.

        Raises:
            LawBroken: if `subject` breaks it, or a law of every Turn on the way.
        """
        try:
            self._check(subject)
        except Violation as violation:
            name, statement = self.name, self.statement
            if violation.law is not None:
                name, statement = violation.law.name.lower(), violation.law.value
            raise LawBroken(
                name, statement, subject.name, violation.detail, violation.task
            ) from violation
        except Exception as error:
            raise LawBroken(self.name, self.statement, subject.name, describe(error)) from error


def law(
    *, per_level: bool = True, needs_id: bool = False
) -> Callable[[Callable[[Subject], None]], Law]:
    """Make a Law of its check; the first line of the docstring is the law. See `Law`."""

    def made(check: Callable[[Subject], None]) -> Law:
        statement = (inspect.getdoc(check) or "").partition("\n")[0]
        return Law(check.__name__, statement, per_level, needs_id, check)

    return made


def describe(error: Exception) -> str:
    """Return an error's type and message in one line."""
    return f"{type(error).__name__}: {error}"


def quoted(text: str) -> str:
    """Return a reply as a message shows it: quoted, and cut if it is long."""
    return cut(ascii(text), len(text))


def cut(text: str, length: int) -> str:
    """Return a text for a message: if it is too long, its beginning and its length."""
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}... ({length} characters)"


_MOST_SHOWN = 70
