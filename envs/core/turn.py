"""A Turn: whose turn it is, the new text, the rewards, and whether the episode is over."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from tokengym.envs.core.display import shorten

NOTHING: Mapping[str, float] = MappingProxyType({})
NO_TERMS: Mapping[str, Mapping[str, float]] = MappingProxyType({})


def expected_return(role: str) -> str:
    """Return the name of the metric that holds a role's return without the noise of outcomes."""
    return f"expected_return/{role}"


class StopReason(StrEnum):
    """Why an episode ended."""

    COMPLETED = "completed"
    """The world's own end: the question is answered, the day is over, the order book is done."""
    MALFORMED = "malformed"
    """A reply that had to be well-formed was not, and the world gives no second try."""
    FAILURE = "failure"
    """The world ended on a broken rule, such as a safety floor with `terminate_on_violation`."""
    TURN_LIMIT = "turn_limit"
    """As many turns as the level allows were played."""
    TOKEN_BUDGET = "token_budget"
    """The conversation grew past its token budget; the rest was played as empty replies."""
    ABANDONED = "abandoned"
    """A role left or kept the others waiting; the rest was played as empty replies."""


class Turn(NamedTuple):
    """Answer of a world to a start or a reply.

    Attributes:
        role: whose turn it is; after the end, the role that replied last.
        text: only what is new to that role.
        rewards: reward of this step by role, multiples of 2⁻¹⁶; a role not named earned 0.
        terms: the named parts of each reward by role; they sum to the reward exactly.
        terminated: the world reached an end of its own.
        truncated: the episode was cut short from outside.
        stop_reason: why it ended, `None` before its end.
        metrics: numbers about the step (and, at the end, the episode) for logs. Every answer to a
            reply has `well_formed`, 1 or 0. Where chance decides what a
            role earns and its probabilities are known, the last Turn has `expected_return(role)`:
            what these replies earn on average.
    """

    role: str
    text: str
    rewards: Mapping[str, float] = NOTHING
    terms: Mapping[str, Mapping[str, float]] = NO_TERMS
    terminated: bool = False
    truncated: bool = False
    stop_reason: StopReason | None = None
    metrics: Mapping[str, float] = NOTHING

    @property
    def done(self) -> bool:
        """Whether the episode is over."""
        return self.terminated or self.truncated

    def __repr__(self) -> str:
        """Show the beginning of the text and all other non-empty fields."""
        reason = None if self.stop_reason is None else self.stop_reason.value
        fields = {"role": self.role, "rewards": dict(self.rewards), "stop_reason": reason}
        shown = {name: value for name, value in fields.items() if value}
        shown["text"] = shorten(self.text)
        return f"Turn({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    def __reduce__(self) -> tuple[type["Turn"], tuple[object, ...]]:
        """Pickle the shared empty mappings as plain ones: a mapping proxy does not pickle."""
        plain = (dict(v) if isinstance(v, MappingProxyType) else v for v in self)
        return type(self), tuple(plain)


def sum_rewards(turns: Iterable[Turn]) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """Return the sums of several Turns' rewards by role, and of their terms."""
    rewards: dict[str, float] = {}
    terms: dict[str, dict[str, float]] = {}
    for turn in turns:
        for role, reward in turn.rewards.items():
            rewards[role] = rewards.get(role, 0.0) + reward
            parts = terms.setdefault(role, {})
            for name, value in turn.terms[role].items():
                parts[name] = parts.get(name, 0.0) + value
    return rewards, terms
