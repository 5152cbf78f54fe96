"""What there is to report of each trained role, or world, of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tokengym.agents.training.job import Job
from tokengym.agents.training.monitor import StepRow
from tokengym.agents.training.outcome import Evaluation, Outcome, References, Skill
from tokengym.rewards.estimates import Estimate


@dataclass(frozen=True)
class RoleReport:
    """What there is to report of one trained role, in one world.

    Attributes:
        name: of what is trained, see `Job.trained`.
        job: whose world it plays in.
        role: the role.
        title: the world, or the role and whom it is evaluated against.
        rewards: by step, its mean return; empty where steps have none.
        uniform_rates: by step, share of its groups whose returns all tie.
        pair_rates: by step, share of pairs within its groups that tie.
        references: scripted policies on the same test Tasks.
        before: the policy as it was.
        after: the policy as it became.
        warm: the policy after its warm start; `None` without one.
        skill: of the policy, before and after.
        expected_skill: likewise without the noise of outcomes; `None` where their probabilities are
            unknown.
    """

    name: str
    job: Job
    role: str
    title: str
    rewards: Mapping[int, float]
    uniform_rates: Mapping[int, float]
    pair_rates: Mapping[int, float]
    references: References
    before: Evaluation
    after: Evaluation
    skill: Skill
    warm: Evaluation | None = None
    expected_skill: Skill | None = None

    @property
    def headlines(self) -> list[str]:
        """The skill on outcomes, and that given their probabilities where they are known."""
        lines = [f"{self.title}: {self.skill}"]
        if self.expected_skill is not None:
            lines.append(f"{self.title}, given the exact probabilities: {self.expected_skill}")
        return lines

    @property
    def rows(self) -> list[tuple[str, Estimate]]:
        """Policies and what they earn, the trained one first, then from the best."""
        trained = [
            ("before training", self.before.returns),
            *([("after the warm start", self.warm.returns)] if self.warm else []),
            ("after training", self.after.returns),
            *(
                (f"{when} training, given the exact probabilities", found.expected)
                for when, found in (("before", self.before), ("after", self.after))
                if found.expected is not None
            ),
        ]
        return trained + sorted(self.references.lines.items(), key=lambda item: -item[1].value)


def role_reports(job: Job, steps: Sequence[StepRow], outcome: Outcome) -> list[RoleReport]:
    """Return what there is to report of each trained role, or of each world, in order."""
    if job.others:
        return [
            _world_report(name, one, role, steps, outcome)
            for name, (one, role) in job.trained.items()
        ]
    if len(job.roles) == 1:
        (role,) = job.roles
        rewarded = [row for row in steps if row.loss is None]
        return [
            RoleReport(
                role,
                job,
                role,
                job.title,
                {row.step: row.reward for row in rewarded},
                {row.step: row.uniform_rate for row in rewarded},
                {row.step: row.tie_pair_rate for row in rewarded},
                outcome.references[role],
                outcome.before,
                outcome.after,
                outcome.skill(role),
                outcome.warm,
                outcome.expected_skill(role),
            )
        ]
    found = []
    for role in job.roles:
        key = f"env/all/{role}"
        logged = {row.step: row.metrics for row in steps if f"{key}/reward" in row.metrics}
        against = ", ".join(
            f"{who if isinstance(who, str) else who.name} {other}"
            for other, who in job.opponents[role].items()
        )
        found.append(
            RoleReport(
                role,
                job,
                role,
                f"{role}, held out against {against}",
                {step: float(row[f"{key}/reward"]) for step, row in logged.items()},
                _rates(logged, f"{key}/reward_uniform_group_rate"),
                _rates(logged, f"{key}/reward_tie_pair_rate"),
                outcome.references[role],
                outcome.before.of(role),
                outcome.after.of(role),
                outcome.skill(role),
                outcome.warm and outcome.warm.of(role),
                outcome.expected_skill(role),
            )
        )
    return found


def _world_report(
    name: str, job: Job, role: str, steps: Sequence[StepRow], outcome: Outcome
) -> RoleReport:
    """Return what there is to report of one of several worlds."""
    key = f"env/{job.tag}"
    logged = {row.step: row.metrics for row in steps if f"{key}/reward/total" in row.metrics}
    return RoleReport(
        name,
        job,
        role,
        job.title,
        _rates(logged, f"{key}/reward/total"),
        _rates(logged, f"{key}/reward_uniform_group_rate"),
        _rates(logged, f"{key}/reward_tie_pair_rate"),
        outcome.references[name],
        outcome.before.of(name),
        outcome.after.of(name),
        outcome.skill(name),
        expected_skill=outcome.expected_skill(name),
    )


def _rates(logged: Mapping[int, Mapping[str, Any]], name: str) -> dict[int, float]:
    return {step: float(row[name]) for step, row in logged.items() if name in row}
