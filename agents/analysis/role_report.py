"""The results of each trained role, or world, of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tokengym.agents.training.config import Command
from tokengym.agents.training.folder.monitor import StepRow
from tokengym.agents.training.folder.run_summary import Evaluation, References, RunSummary
from tokengym.agents.training.job import Job
from tokengym.rewards.estimates import Estimate, mean_estimate

Rates = tuple[dict[int, float], dict[int, float], dict[int, float]]
"""By step the mean reward, the share of dead groups and the share of tied pairs."""

_LEARNED_FROM: Mapping[Command, str] = {
    "train": "rewards",
    "sft": "demonstrations",
    "dpo": "preferences",
    "distil": "a teacher's words",
}


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
    def what_happened(self) -> str:
        """What was trained, from what to what, and is it more than chance and than blind."""
        config, world = self.job.config, self.job.world
        before, after = (np.array(each.earned_by_task) for each in (self.before, self.after))
        blind = np.array(self.references.yardstick.blind_T)
        gain, lead = (mean_estimate((after - other).tolist()) for other in (before, blind))
        label = config.options.get("label")
        read = f"{f'label {label}, ' if label else ''}{world.prompt} prompts"
        kind = "return" if self.references.on_outcomes is None else "expected return"
        place = f"{world.spec.short_name}:{world.level}"
        as_role = f" as {self.role}" if len(world.spec.roles) > 1 else ""
        ignorant = "the best policy that ignores the Task"
        learned = _verdict(gain, "a gain of {}", "a loss of {}", "the difference, {},")
        beyond = _verdict(
            lead,
            f"It earns {{}} more than {ignorant}",
            f"It earns {{}} less than {ignorant}",
            f"Whether it earns more than {ignorant} is open: {{}}",
        )
        return (
            f"{config.model}, trained on {_LEARNED_FROM[config.command]} in {place}{as_role} "
            f"({read}), went from {kind} {self.before.earned} to {self.after.earned} on "
            f"{len(after)} held-out Tasks: {learned}. {beyond}."
        )

    def heading(self, what: str) -> str:
        """Return a heading, with the role or the world where the run has several."""
        return f"{what}: {self.title}" if len(self.outcome.references) > 1 else what

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


def _verdict(difference: Estimate, more: str, less: str, unknown: str) -> str:
    """State a paired difference in the words for it, and whether chance explains it."""
    size = f"{abs(difference.value):.3f} {difference.around}"
    if difference.samples > 1 and (difference.low > 0.0 or difference.high < 0.0):
        return f"{(more if difference.value > 0.0 else less).format(size)}, more than chance"
    tasks = f"{difference.samples_to_show():,}"
    return f"{unknown.format(difference)} may be chance (about {tasks} Tasks would tell)"


def role_reports(job: Job, steps: Sequence[StepRow], outcome: RunSummary) -> list[RoleReport]:
    """Return the results of each trained role, or of each world, in order."""
    reports = []
    for name, (part, role) in job.trained.items():
        title, key, reward = part.title, "env/all", "reward/total"
        if job.others:
            key = f"env/{part.tag}"
        elif len(job.roles) > 1:
            others = job.opponents[role].items()
            against = ", ".join(f"{getattr(who, 'name', who)} {other}" for other, who in others)
            title, key, reward = f"{role}, held out against {against}", f"env/all/{role}", "reward"
        rates = _logged_rates(steps, key, reward)
        reports.append(RoleReport(name, part, role, title, *rates, outcome))
    return reports


def _logged_rates(steps: Sequence[StepRow], key: str, reward: str) -> Rates:
    """Return the rates of the steps that logged them."""

    def logged(name: str) -> dict[int, float]:
        found = {row.step: row.metrics.get(f"{key}/{name}") for row in steps}
        return {step: float(value) for step, value in found.items() if value is not None}

    return logged(reward), logged("reward_uniform_group_rate"), logged("reward_tie_pair_rate")
