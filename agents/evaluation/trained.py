"""Policies before and after training, read from the evaluation of a finished run."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.plan import AFTER, BEFORE, WARM
from tokengym.agents.evaluation.results import PolicyResult
from tokengym.agents.evaluation.rollout_table import RolloutTable
from tokengym.agents.scale.level_scale import Scale, skill_gain
from tokengym.agents.training.folder.run import RunFolder
from tokengym.envs.core.errors import DataError, OptionError
from tokengym.rewards.estimates import Estimate
from tokengym.rewards.skill import describe_skill


class Skill(NamedTuple):
    """Skill of a policy: 0 is the best input-independent baseline, 1 the oracle.

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
            return (
                "undefined: the oracle is no better than the best input-independent baseline here"
            )
        needed = f"; about {self.gain.samples_to_show():,} Tasks would show it"
        if self.gain.low > 0.0:
            what = f"gained {describe_skill(self.gain)}"
        elif self.gain.high < 0.0:
            value, low, high, samples = self.gain
            what = f"lost {describe_skill(Estimate(-value, -high, -low, samples))}"
        else:
            what = f"no change beyond chance ({self.gain}{needed if self.gain.value else ''})"
        before, after = describe_skill(self.before), describe_skill(self.after)
        return f"{before} before, {after} after: {what}"


@dataclass(frozen=True)
class Evaluated:
    """A policy of a run on its held-out Tasks.

    Attributes:
        result: its figures.
        table: its rollouts, one of each Task.
    """

    result: PolicyResult
    table: RolloutTable

    @property
    def paid_T(self) -> tuple[float, ...]:
        """The return on each Task as it was paid."""
        return tuple(self.table.columns["realised"])

    @property
    def earned_T(self) -> tuple[float, ...]:
        """The expected return on each Task where it is known, else the return as it was paid."""
        expected_TK = self.table.returns(1).expected_TK
        return self.paid_T if expected_TK is None else tuple(expected_TK[:, 0].tolist())


@dataclass(frozen=True)
class Trained:
    """Result of a run in one trained role of one world.

    Attributes:
        scale: scripted policies on the same Tasks.
        policies: the policies by name, see `RUN_POLICIES`; those before training may have played
            fewer Tasks, the first.
    """

    scale: Scale
    policies: Mapping[str, Evaluated]

    @property
    def before(self) -> Evaluated:
        """The policy as it was, if it was played: `BEFORE` is then one of the policies."""
        return self.policies[BEFORE]

    @property
    def after(self) -> Evaluated:
        """The policy as it became."""
        return self.policies[AFTER]

    def skill(self, since: str = BEFORE) -> Skill:
        """Return the skill of the policy before and after, the gain on the Tasks played both times.

        It is that of expected returns where they are known.

        Args:
            since: the policy that counts as before.
        """
        before, after = self.policies[since], self.after
        count = len(before.earned_T)
        gain = skill_gain(self.scale.first(count).used, after.earned_T[:count], before.earned_T)
        return Skill(before.result.skill, after.result.skill, gain)

    def findings(self) -> Iterator[tuple[str, str]]:
        """Yield the standing, and the skill since start and warm start, by name."""
        for when, name in (("before", BEFORE), ("after", AFTER)):
            if name in self.policies and (standing := self.policies[name].result.standing):
                yield f"standing {when} training", standing
        if BEFORE not in self.policies:
            yield "skill after training", describe_skill(self.after.result.skill)
        for words, since in (("skill", BEFORE), ("skill since the warm start", WARM)):
            if since in self.policies:
                yield words, str(self.skill(since))


def read_trained(run: RunFolder) -> dict[str, Trained]:
    """Return what a finished run came to, by name of what it trained.

    Raises:
        OptionError: if it is unfinished, or its evaluation is missing.
        DataError: if its evaluation is damaged.
    """
    _, config, folder = run.finished, run.config, EvaluationFolder(run.folder)
    if not folder.exists:
        raise OptionError(f"{folder.file} is missing: the run was not evaluated")
    plan, scales, results = folder.saved()
    if results is None or AFTER not in plan.policies:
        raise OptionError(f"the evaluation in {run.folder} is under way")
    rows = iter(results.policies)
    found: dict[str, Trained] = {}
    for name, scale, place in zip(config.trained_roles, scales, plan.places, strict=True):
        tables = {policy: folder.table(plan, place, policy) for policy in plan.policies}
        policies = {policy: Evaluated(next(rows), table) for policy, table in tables.items()}
        for policy, each in policies.items():
            if len(each.paid_T) != each.result.tasks:
                raise DataError(
                    f"{run.folder}: {len(each.paid_T)} of {each.result.tasks} rollouts {policy} "
                    "training are there: a file is cut off"
                )
        found[name] = Trained(scale, policies)
    return found
