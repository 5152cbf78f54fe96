"""The results of each trained role, or world, of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tokengym.agents.training.folder.monitor import StepRow
from tokengym.agents.training.folder.run_summary import Evaluation, References, RunSummary, Skill
from tokengym.agents.training.job import Job
from tokengym.rewards.estimates import Estimate

Rates = tuple[dict[int, float], dict[int, float], dict[int, float]]
"""By step the mean reward, the share of dead groups and the share of tied pairs."""


@dataclass(frozen=True)
class RoleReport:
    """The results of one trained role, in one world.

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
        """The skill on outcomes, and the skill given their probabilities where they are known."""
        lines = [f"{self.title}: {self.skill}"]
        if self.expected_skill is not None:
            lines.append(f"{self.title}, given the exact probabilities: {self.expected_skill}")
        return lines

    @property
    def rows(self) -> list[tuple[str, Estimate]]:
        """Policies and what they earn: the trained one first, then the others from the best."""
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


def role_reports(job: Job, steps: Sequence[StepRow], outcome: RunSummary) -> list[RoleReport]:
    """Return the results of each trained role, or of each world, in order."""
    if job.others:
        return [
            _report(
                name,
                one,
                role,
                one.title,
                _logged_rates(steps, f"env/{one.tag}", "reward/total"),
                outcome,
            )
            for name, (one, role) in job.trained.items()
        ]
    if len(job.roles) == 1:
        (role,) = job.roles
        rewarded = [row for row in steps if row.loss is None]
        rates = (
            {row.step: row.reward for row in rewarded},
            {row.step: row.uniform_rate for row in rewarded},
            {row.step: row.tie_pair_rate for row in rewarded},
        )
        return [_report(role, job, role, job.title, rates, outcome)]
    found = []
    for role in job.roles:
        against = ", ".join(
            f"{who if isinstance(who, str) else who.name} {other}"
            for other, who in job.opponents[role].items()
        )
        title = f"{role}, held out against {against}"
        rates = _logged_rates(steps, f"env/all/{role}", "reward")
        found.append(_report(role, job, role, title, rates, outcome))
    return found


def _report(
    name: str, job: Job, role: str, title: str, rates: Rates, outcome: RunSummary
) -> RoleReport:
    """Return the results of one role."""
    return RoleReport(
        name,
        job,
        role,
        title,
        *rates,
        outcome.references[name],
        outcome.before.of(name),
        outcome.after.of(name),
        outcome.skill(name),
        outcome.warm and outcome.warm.of(name),
        outcome.expected_skill(name),
    )


def _logged_rates(steps: Sequence[StepRow], key: str, reward: str) -> Rates:
    """Return the rates of the steps that logged them."""
    logged = {row.step: row.metrics for row in steps if f"{key}/{reward}" in row.metrics}
    return (
        _rates(logged, f"{key}/{reward}"),
        _rates(logged, f"{key}/reward_uniform_group_rate"),
        _rates(logged, f"{key}/reward_tie_pair_rate"),
    )


def _rates(logged: Mapping[int, Mapping[str, Any]], name: str) -> dict[int, float]:
    return {step: float(row[name]) for step, row in logged.items() if name in row}
