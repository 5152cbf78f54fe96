"""The outcome of a run as data: evaluations, reference lines, collapse; to and from JSON."""

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, Self

from tokengym.agents.ladder import Place, find_place
from tokengym.agents.rollouts import RolloutRecord
from tokengym.agents.scale import Earned, Scale, ladder_of, skill_gain, skill_of
from tokengym.agents.training.folder.collapse import Collapse
from tokengym.envs.core.spec import WorldSpec
from tokengym.rewards.estimates import Estimate, mean_estimate
from tokengym.rewards.skill import Yardstick, describe_skill

MOST_MALFORMED = 0.5
"""Share of malformed replies above which a policy does not know the form."""


def form_warning(malformed: float, cut_off: float, prompt: str) -> str:
    """Return what to do about a policy that does not know the form; empty if it does.

    Args:
        malformed: share of its replies that are malformed.
        cut_off: share of its replies that ran out of tokens.
        prompt: which prompts it reads, such as `full`.
    """
    if not malformed > MOST_MALFORMED:
        return ""
    other = "terse" if prompt == "full" else "full"
    limit = "a larger --max-tokens, as most are cut off, " if cut_off > MOST_MALFORMED else ""
    return (
        f"{1.0 - malformed:.0%} of the replies have the form that is asked for, so returns say "
        f"little else. It reads the {prompt} prompts; try {limit}--option prompt={other} for a "
        "model that was trained on those, or teach it the form with tokengym sft"
    )


@dataclass(frozen=True)
class Evaluation:
    """A policy on held-out test Tasks, one rollout each.

    Attributes:
        returns_by_task: return on each Task, in order.
        figures: means of what the world reports at the end of an episode, by name; `malformed` is
            the share of replies, each rollout's own share counting alike, `cut_off` that of those
            that ran out of tokens, `stop/REASON` that of episodes; `term/NAME` the mean sum over
            an episode.
        stated: for forecasts, pairs of (label, stated probability) of the well-formed replies.
        expected_by_task: what the replies on each Task earn in expectation over outcomes; none
            where their probabilities are unknown.
        others: where several roles or worlds are trained, the evaluations of all but the first by
            the name of what is trained, see `Job.trained`.
        conditions: what the returns depend on besides the weights: `prompt`, `temperature` and
            `max_tokens` of a reply.
        low: the same policy at a low temperature, on the first of the Tasks; `None` if not asked.
        values_by_task: value on each Task, in the unit of the level's ladder; none where unknown.
    """

    returns_by_task: tuple[float, ...]
    figures: Mapping[str, float] = field(default_factory=dict)
    stated: tuple[tuple[float, float], ...] = ()
    expected_by_task: tuple[float, ...] = ()
    others: Mapping[str, "Evaluation"] = field(default_factory=dict)
    conditions: Mapping[str, str | int | float] = field(default_factory=dict)
    low: "Evaluation | None" = None
    values_by_task: tuple[float, ...] = ()

    @classmethod
    def of_rollouts(cls, records: Sequence[RolloutRecord], world: WorldSpec) -> Self:
        """Return what one role's rollouts came to.

        Args:
            records: the rollouts, one of each Task, in the order of the Tasks.
            world: their world.
        """
        role, origin = records[0].role, records[0].origin
        ladder = ladder_of(world, records[0].level, role)
        returns = Earned.of(((one.total, one.metrics) for one in records), role, ladder)
        conditions = {"temperature": origin.temperature, "max_tokens": origin.max_tokens}
        return cls(
            returns.realised_T,
            _figures(records),
            _stated(records, world.calibration),
            returns.expected_T or (),
            conditions={
                "prompt": str(origin.options.get("prompt", "full")),
                **{name: value for name, value in conditions.items() if value is not None},
            },
            values_by_task=() if math.isnan(sum(returns.values_T)) else returns.values_T,
        )

    @property
    def returns(self) -> Estimate:
        """Mean return with its interval."""
        return mean_estimate(self.returns_by_task)

    @property
    def earned_by_task(self) -> tuple[float, ...]:
        """The expected return on each Task where it is known, else the return as it was paid."""
        return self.expected_by_task or self.returns_by_task

    @property
    def earned(self) -> Estimate:
        """Mean of them with its interval."""
        return mean_estimate(self.earned_by_task)

    @property
    def form_warning(self) -> str:
        """What to do if the policy does not know the form; empty if it does."""
        malformed, cut_off = (self.figures.get(name, 0.0) for name in ("malformed", "cut_off"))
        return form_warning(malformed, cut_off, str(self.conditions.get("prompt", "full")))

    def of(self, name: str) -> "Evaluation":
        """Return the evaluation of a trained role or world; the first one's is this one."""
        return self.others.get(name, self)


def _figures(records: Sequence[RolloutRecord]) -> dict[str, float]:
    """Return means over episodes and shares, by name; see `Evaluation`."""
    values: dict[str, list[float]] = {}
    for record in records:
        terms: dict[str, float] = {}
        for turn in record.turns:
            for name, value in turn.terms.items():
                terms[f"term/{name}"] = terms.get(f"term/{name}", 0.0) + value
        for name, number in {**record.metrics, **terms}.items():
            if number is not None:
                values.setdefault(name, []).append(number)
    figures = {name: statistics.fmean(values[name]) for name in sorted(values)}
    stops = Counter(record.stop_reason for record in records)
    figures |= {f"stop/{reason}": stops[reason] / len(records) for reason in sorted(stops)}
    for name in ("malformed", "cut_off"):
        shares = (getattr(one, name) / (len(one.own_turns) or 1) for one in records)
        figures[name] = statistics.fmean(shares)
    return figures


def _stated(
    records: Sequence[RolloutRecord], names: tuple[str, str] | None
) -> tuple[tuple[float, float], ...]:
    """Return pairs of label and stated probability, where a world has such metrics."""
    if names is None:
        return ()
    pairs = [tuple(record.metrics.get(name) for name in names) for record in records]
    return tuple((label, p) for label, p in pairs if label is not None and p is not None)


@dataclass(frozen=True)
class References:
    """What scripted policies earn in one role on the held-out Tasks.

    Attributes:
        lines: mean returns by name of the policy, in expectation over outcomes where that is known.
        yardstick: what the best blind policy and the oracle earn on each Task, likewise.
        on_outcomes: the yardstick as it was paid; `None` where the returns above are that.
        reachable: the best policy known of those that read only what the Turns say; empty if the
            level declares none.
        oracle_replies: what the oracle replies on each Task, its turns on one line, shortened; none
            where opponents are models.
        rungs: values on each Task of the rungs of the level's ladder, by name; none without one.
    """

    lines: Mapping[str, Estimate]
    yardstick: Yardstick
    on_outcomes: "References | None" = None
    reachable: str = ""
    oracle_replies: tuple[str, ...] = ()
    rungs: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        scale: Scale,
        reachable: str,
        oracle_replies: tuple[str, ...],
        rungs: Mapping[str, tuple[float, ...]],
    ) -> "References":
        """Return what policies earn, in expectation where that is known of both ends.

        Args:
            scale: what they were measured by.
            reachable: see the attribute, as `oracle_replies`.
            oracle_replies: see there.
            rungs: see there.
        """
        lines = {
            scale.label if name == scale.blind else name: mean_estimate(
                each.realised_T if scale.expected is None else each.used_T
            )
            for name, each in scale.returns.items()
        }
        paid = None if scale.expected is None else cls({}, scale.realised)
        return cls(lines, scale.used, paid, reachable, oracle_replies, rungs)

    @property
    def levels(self) -> dict[str, float]:
        """The mean returns that charts show: of blind, reachable and oracle, where known."""
        labels = {self.reachable: "reachable", self.yardstick.blind_name: "blind"}
        labels["oracle"] = "oracle"
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
        needed = f"; about {self.gain.samples_to_show():,} Tasks would show it"
        if self.gain.low > 0.0:
            what = f"gained {describe_skill(self.gain)}"
        elif self.gain.high < 0.0:
            value, low, high, samples = self.gain
            what = f"lost {describe_skill(Estimate(-value, -high, -low, samples))}"
        else:
            what = f"no change beyond chance ({self.gain}{needed if self.gain.value else ''})"
        before, after = describe_skill(self.before), describe_skill(self.after)
        return f"skill {before} before, {after} after: {what}"


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
        ending: why it ended before its last step; empty if it did not, or collapsed.
    """

    before: Evaluation
    after: Evaluation
    references: Mapping[str, References]
    collapse: Collapse | None
    sampler_paths: Mapping[str, str | None]
    warm: Evaluation | None = None
    ending: str = ""

    def skill(self, name: str, *, since: Evaluation | None = None) -> "Skill":
        """Return the skill of a policy before and after, paired by Task.

        It is that of expected returns where they are known.

        Args:
            name: of what is trained.
            since: what counts as before; the start if `None`.
        """
        both = (since or self.before, self.after)
        before, after = (evaluation.of(name).earned_by_task for evaluation in both)
        return _skill(self.references[name].yardstick, before, after)

    def skill_on_outcomes(self, name: str, *, since: Evaluation | None = None) -> "Skill | None":
        """Return the skill by returns as they were paid; `None` where `skill` is that.

        The arguments are those of `skill`.
        """
        references = self.references[name].on_outcomes
        both = (since or self.before, self.after)
        before, after = (evaluation.of(name).returns_by_task for evaluation in both)
        return None if references is None else _skill(references.yardstick, before, after)

    def place(self, name: str, evaluation: Evaluation) -> Place | None:
        """Return where a policy stands on the level's ladder; `None` where that is not known.

        Args:
            name: of what is trained.
            evaluation: of the policy, before or after.
        """
        return find_place(self.references[name].rungs, evaluation.of(name).values_by_task)

    def low_returns(self, name: str) -> str:
        """State what a policy earns at the low temperature; empty if it was not evaluated.

        Args:
            name: of what is trained.
        """
        before, after = (evaluation.of(name).low for evaluation in (self.before, self.after))
        if before is None or after is None:
            return ""
        pairs = zip(after.earned_by_task, before.earned_by_task, strict=True)
        gain = mean_estimate([later - earlier for later, earlier in pairs])
        return (
            f"At temperature {float(after.conditions['temperature']):g}, on the first "
            f"{gain.samples} Tasks: return {before.earned} before, {after.earned} after, "
            f"difference {gain}"
        )

    def findings(self, name: str) -> Iterator[str]:
        """Yield the place, the skill since the start and a warm start, and low temperature's gain.

        Args:
            name: of what is trained.
        """
        places = self.place(name, self.before), self.place(name, self.after)
        if all(places):
            yield f"before training {places[0]}; after it {places[1]}"
        for words, since in (("", self.before), ("since the warm start", self.warm)):
            if since is not None:
                yield f"{words}{': ' if words else ''}{self.skill(name, since=since)}"
                if (paid := self.skill_on_outcomes(name, since=since)) is not None:
                    yield f"{words}{', ' if words else ''}on outcomes: {paid}"
        if low := self.low_returns(name):
            yield low

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {"state": "collapsed" if self.collapse else "completed", **asdict(self)}


def _skill(yardstick: Yardstick, before: Sequence[float], after: Sequence[float]) -> Skill:
    """Return the skill of returns by Task before and after."""
    ends = skill_of(yardstick, before), skill_of(yardstick, after)
    return Skill(*ends, skill_gain(yardstick, after, before))
