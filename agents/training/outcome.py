"""What a run came to, as data: evaluations, reference lines, collapse; JSON both ways."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tokengym.agents.training.monitor import Collapse
from tokengym.rewards.estimates import Estimate


@dataclass(frozen=True)
class Evaluation:
    """A policy on held-out test Tasks, one rollout each.

    Attributes:
        returns: mean return with its interval.
        figures: means of what the world reports at the end of an episode, by name; `malformed` is
            the share of all replies, if there were any, `stop/REASON` of all episodes.
        stated: for forecasts, pairs of (label, stated probability) of the well-formed replies; the
            label is the exact probability where Tasks are scored against it, else the outcome.
        replies: the policy's replies on the first Task; empty where one was malformed.
        others: where several roles are trained, the evaluations of all but the first by role.
    """

    returns: Estimate
    figures: Mapping[str, float] = field(default_factory=dict)
    stated: Sequence[tuple[float, float]] = ()
    replies: Sequence[str] = ()
    others: Mapping[str, "Evaluation"] = field(default_factory=dict)

    def of(self, role: str) -> "Evaluation":
        """Return the evaluation of a trained role; the first role's is this one."""
        return self.others.get(role, self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "returns": list(self.returns),
            "figures": dict(self.figures),
            "stated": [list(pair) for pair in self.stated],
            "replies": list(self.replies),
            "others": {role: found.to_dict() for role, found in self.others.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Evaluation":
        """Read what `to_dict` returned."""
        return cls(
            Estimate(*data["returns"]),
            data["figures"],
            tuple((label, stated) for label, stated in data["stated"]),
            tuple(data["replies"]),
            {role: cls.from_dict(found) for role, found in data["others"].items()},
        )


References = Mapping[str, Mapping[str, Estimate]]
"""By trained role, what scripted policies earn on the same Tasks, by name."""


@dataclass(frozen=True)
class Outcome:
    """What a finished run came to.

    Attributes:
        before: the policy as it was, on held-out test Tasks.
        after: the policy as it became. After a collapse that is its last good checkpoint, or the
            start if there was none yet.
        references: scripted policies on the same Tasks, by trained role and name.
        collapse: how the run collapsed, or `None`.
        sampler_paths: by trained role, the `tinker://` path of the weights evaluated after
            training; `None` for the base model.
    """

    before: Evaluation
    after: Evaluation
    references: References
    collapse: Collapse | None
    sampler_paths: Mapping[str, str | None]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "state": "completed" if self.collapse is None else "collapsed",
            "collapse": None if self.collapse is None else asdict(self.collapse),
            "sampler_paths": dict(self.sampler_paths),
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "references": {
                role: {name: list(value) for name, value in lines.items()}
                for role, lines in self.references.items()
            },
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Outcome":
        """Read what `to_dict` returned."""
        return cls(
            Evaluation.from_dict(data["before"]),
            Evaluation.from_dict(data["after"]),
            {
                role: {name: Estimate(*value) for name, value in lines.items()}
                for role, lines in data["references"].items()
            },
            data["collapse"] and Collapse(**data["collapse"]),
            data["sampler_paths"],
        )
