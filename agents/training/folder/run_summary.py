"""The outcome of a run as data: evaluations, reference lines, collapse; to and from JSON."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from tokengym.agents.training.folder.collapse import Collapse
from tokengym.envs.core.seeding import generator
from tokengym.rewards.estimates import Estimate, mean_estimate
from tokengym.rewards.skill import Yardstick


@dataclass(frozen=True)
class Evaluation:
    """A policy on held-out test Tasks, one rollout each.

    Attributes:
        returns_by_task: return on each Task, in order.
        figures: means of what the world reports at the end of an episode, by name; `malformed` is
            the share of all replies, if there were any, `cut_off` that of replies that ran out of
            tokens, `stop/REASON` that of all episodes; `term/NAME` the mean sum over an episode.
        stated: for forecasts, pairs of (label, stated probability) of the well-formed replies.
        replies: the policy's replies on the first Task; empty where one was malformed.
        expected_by_task: what the replies on each Task earn in expectation over outcomes; none
            where their probabilities are unknown.
        others: where several roles or worlds are trained, the evaluations of all but the first by
            the name of what is trained, see `Job.trained`.
        conditions: what the returns depend on besides the weights: `model`, `temperature` and
            `max_tokens` of a reply.
        low: the same policy at a low temperature, on the first of the Tasks; `None` if not asked.
    """

    returns_by_task: tuple[float, ...]
    figures: Mapping[str, float] = field(default_factory=dict)
    stated: tuple[tuple[float, float], ...] = ()
    replies: tuple[str, ...] = ()
    expected_by_task: tuple[float, ...] = ()
    others: Mapping[str, "Evaluation"] = field(default_factory=dict)
    conditions: Mapping[str, str | int | float] = field(default_factory=dict)
    low: "Evaluation | None" = None

    @property
    def returns(self) -> Estimate:
        """Mean return with its interval."""
        return mean_estimate(self.returns_by_task)

    @property
    def expected(self) -> Estimate | None:
        """Mean expected return with its interval; `None` where it is unknown."""
        return mean_estimate(self.expected_by_task) if self.expected_by_task else None

    def of(self, name: str) -> "Evaluation":
        """Return the evaluation of a trained role or world; the first one's is this one."""
        return self.others.get(name, self)


@dataclass(frozen=True)
class References:
    """What scripted policies earn in one role on the held-out Tasks.

    Attributes:
        lines: mean returns by name of the policy.
        yardstick: what the best blind policy and the oracle earn on each Task.
        expected: what they earn in expectation over outcomes; `None` where it is unknown.
    """

    lines: Mapping[str, Estimate]
    yardstick: Yardstick
    expected: Yardstick | None = None

    @property
    def levels(self) -> dict[str, float]:
        """The mean returns that charts show: of null, random, blind and oracle, where known."""
        blind = self.yardstick.blind_name
        labels = {"null": "null", "random": "random", blind: "blind", "oracle": "oracle"}
        return {labels[name]: self.lines[name].value for name in labels if name in self.lines}


class Skill(NamedTuple):
    """Skill of a policy: 0 is the best blind policy, 1 the oracle.

    Attributes:
        before: as it was.
        after: as it became.
        gain: after less before, paired by Task.
    """

    before: Estimate
    after: Estimate
    gain: Estimate

    def __str__(self) -> str:
        """Describe the effect of training, as far as the Tasks can show it."""
        if math.isnan(self.gain.value):
            return "skill undefined: the oracle is no better than the best blind policy here"
        if self.gain.low > 0.0:
            what = f"gained {self.gain}"
        elif self.gain.high < 0.0:
            what = f"lost {-self.gain.value:.3f} ± {(self.gain.high - self.gain.low) / 2:.3f}"
        else:
            what = f"no change beyond chance ({self.gain})"
        return f"skill {self.before} before, {self.after} after: {what}"


class LowReturns(NamedTuple):
    """What a policy earns at a low temperature, on the first held-out Tasks.

    Attributes:
        temperature: of sampling.
        before: mean return of the policy as it was.
        after: mean return of the policy as it became.
        gain: after less before, paired by Task.
    """

    temperature: float
    before: Estimate
    after: Estimate
    gain: Estimate

    def __str__(self) -> str:
        """Describe it in a line."""
        return (
            f"At temperature {self.temperature:g}, on the first {self.before.samples} Tasks: "
            f"return {self.before} before, {self.after} after, difference {self.gain}"
        )


@dataclass(frozen=True)
class RunSummary:
    """The outcome of a finished run.

    Attributes:
        before: the policy as it was, on held-out test Tasks.
        after: the policy as it became. After a collapse that is its last good checkpoint, or the
            start if there was none yet.
        references: by name of what is trained, scripted policies on the same Tasks.
        collapse: how the run collapsed, or `None`.
        sampler_paths: by name of what is trained, the `tinker://` path of the weights evaluated
            after training; `None` for the base model.
        warm: the policy after its warm start; `None` without one.
    """

    before: Evaluation
    after: Evaluation
    references: Mapping[str, References]
    collapse: Collapse | None
    sampler_paths: Mapping[str, str | None]
    warm: Evaluation | None = None

    def skill(self, name: str, *, since: Evaluation | None = None) -> "Skill":
        """Return the skill of a policy before and after, paired by Task.

        Args:
            name: of what is trained.
            since: what counts as before; the start if `None`.
        """
        both = (since or self.before, self.after)
        before, after = (evaluation.of(name).returns_by_task for evaluation in both)
        return _skill(self.references[name].yardstick, before, after, name)

    def low_returns(self, name: str) -> "LowReturns | None":
        """Return what a policy earns at the low temperature; `None` if it was not evaluated.

        Args:
            name: of what is trained.
        """
        before, after = (evaluation.of(name).low for evaluation in (self.before, self.after))
        if before is None or after is None:
            return None
        pairs = zip(after.returns_by_task, before.returns_by_task, strict=True)
        return LowReturns(
            float(after.conditions["temperature"]),
            before.returns,
            after.returns,
            mean_estimate([later - earlier for later, earlier in pairs]),
        )

    def expected_skill(self, name: str, *, since: Evaluation | None = None) -> "Skill | None":
        """Return the skill by expected returns, free of the noise of outcomes.

        `None` where the probabilities of outcomes are unknown. The arguments are those of `skill`.
        """
        yardstick = self.references[name].expected
        both = (since or self.before, self.after)
        before, after = (evaluation.of(name).expected_by_task for evaluation in both)
        if yardstick is None or not before or not after:
            return None
        return _skill(yardstick, before, after, name)

    def since_warm_start(self, name: str) -> Sequence[tuple[str, "Skill"]]:
        """Return the skill since a warm start, in words and numbers; empty without one.

        Args:
            name: of what is trained.
        """
        if self.warm is None:
            return []
        skills = [("since the warm start", self.skill(name, since=self.warm))]
        expected = self.expected_skill(name, since=self.warm)
        if expected is not None:
            skills.append(("since the warm start, given the exact probabilities", expected))
        return skills

    def lines(self) -> Iterator[str]:
        """Yield the results in a few lines for people."""
        if self.collapse is not None:
            yield (
                f"COLLAPSED at step {self.collapse.since}: {self.collapse.reason}. The last good "
                f"checkpoint is kept. What to try: {self.collapse.advice}."
            )
        yield (
            f"held-out return before {self.before.returns}, after {self.after.returns} "
            "(95 % intervals)"
        )
        sampled = self.before.conditions
        yield (
            f"(at temperature {float(sampled['temperature']):g}, at most {sampled['max_tokens']} "
            f"tokens a reply, model {sampled['model']})"
        )
        first, *further = self.references
        scripted = self.references[first].lines
        width = max(map(len, scripted)) + 2
        for name, value in sorted(scripted.items(), key=lambda item: -item[1].value):
            yield f"  {name:<{width}}{value}"
        if self.before.expected is not None and self.after.expected is not None:
            yield (
                f"given the exact probabilities: before {self.before.expected}, "
                f"after {self.after.expected}"
            )
        for name in (first, *further):
            if name != first:
                before, after = self.before.of(name).returns, self.after.of(name).returns
                yield f"held-out return of {name} before {before}, after {after}"
            of_name = f"{name}: " if further else ""
            yield f"{of_name}{self.skill(name)}"
            if (expected := self.expected_skill(name)) is not None:
                yield f"{of_name}given the exact probabilities: {expected}"
            if (low := self.low_returns(name)) is not None:
                yield f"{of_name}{low}"
            for words, skill in self.since_warm_start(name):
                yield f"{of_name}{words}: {skill}"
        yield "(skill: 0 is the best policy that ignores the Task, 1 the oracle)"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {"state": "collapsed" if self.collapse else "completed", **asdict(self)}


def _skill(
    yardstick: Yardstick, before: Sequence[float], after: Sequence[float], name: str
) -> Skill:
    """Return the skill of returns by Task before and after."""
    rng = generator("skill", name, len(before))
    return Skill(
        yardstick.skill(before, rng),
        yardstick.skill(after, rng),
        yardstick.gain(after, before, rng),
    )
