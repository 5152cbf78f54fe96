"""The results of each trained role, or world, of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tokengym.agents.training.folder.monitor import StepRow
from tokengym.agents.training.folder.run_summary import Evaluation, References, RunSummary
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
        outcome: of the run.
    """

    name: str
    job: Job
    role: str
    title: str
    rewards: Mapping[int, float]
    uniform_rates: Mapping[int, float]
    pair_rates: Mapping[int, float]
    outcome: RunSummary

    @property
    def references(self) -> References:
        """Scripted policies on the same test Tasks."""
        return self.outcome.references[self.name]

    @property
    def before(self) -> Evaluation:
        """The policy as it was."""
        return self.outcome.before.of(self.name)

    @property
    def after(self) -> Evaluation:
        """The policy as it became."""
        return self.outcome.after.of(self.name)

    @property
    def headlines(self) -> list[str]:
        """The skill, by expected returns where they are known, and then on outcomes too."""
        lines = [f"{self.title}: {self.outcome.skill(self.name)}"]
        on_outcomes = self.outcome.skill_on_outcomes(self.name)
        if on_outcomes is not None:
            lines.append(f"{self.title}, on outcomes: {on_outcomes}")
        return lines

    @property
    def rows(self) -> list[tuple[str, Estimate]]:
        """Policies and what they earn: the trained one first, then the others from the best."""
        warm = self.outcome.warm
        played = [
            ("before training", self.before),
            *([("after the warm start", warm.of(self.name))] if warm else []),
            ("after training", self.after),
        ]
        trained = [(name, evaluation.earned) for name, evaluation in played]
        if self.references.on_outcomes is not None:
            trained += [(f"{name}, on outcomes", each.returns) for name, each in played]
        return trained + sorted(self.references.lines.items(), key=lambda item: -item[1].value)


def role_reports(job: Job, steps: Sequence[StepRow], outcome: RunSummary) -> list[RoleReport]:
    """Return the results of each trained role, or of each world, in order."""
    if job.others:
        return [
            RoleReport(
                name,
                part,
                role,
                part.title,
                *_logged_rates(steps, f"env/{part.tag}", "reward/total"),
                outcome,
            )
            for name, (part, role) in job.trained.items()
        ]
    if len(job.roles) == 1:
        (role,) = job.roles
        rewarded = [row for row in steps if row.loss is None]
        rates = (
            {row.step: row.reward for row in rewarded},
            {row.step: row.uniform_rate for row in rewarded},
            {row.step: row.tie_pair_rate for row in rewarded},
        )
        return [RoleReport(role, job, role, job.title, *rates, outcome)]
    reports = []
    for role in job.roles:
        against = ", ".join(
            f"{who if isinstance(who, str) else who.name} {other}"
            for other, who in job.opponents[role].items()
        )
        title = f"{role}, held out against {against}"
        rates = _logged_rates(steps, f"env/all/{role}", "reward")
        reports.append(RoleReport(role, job, role, title, *rates, outcome))
    return reports


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
