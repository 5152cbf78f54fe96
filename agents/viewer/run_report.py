"""A finished run as a report, from its folder alone: what happened, references, figures, ties."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from tokengym.agents.evaluation.plan import AFTER, BEFORE, WARM
from tokengym.agents.evaluation.report import figures_table
from tokengym.agents.evaluation.rollout_table import RolloutTable
from tokengym.agents.evaluation.run_ties import run_ties
from tokengym.agents.evaluation.trained import Evaluated, Trained, read_trained
from tokengym.agents.reports.report import Cell, Chart, Report, Table
from tokengym.agents.scale.level_scale import ladder_of
from tokengym.agents.training.config import Command, JobConfig
from tokengym.agents.training.folder.monitor import StepRow
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.viewer.episode_report import episode_table
from tokengym.agents.viewer.forecast_report import reliability_diagrams
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.registry import scripted_opponent, spec
from tokengym.rewards.estimates import Estimate, mean_estimate

_SKILL = (
    "Skill is (return - baseline) / (oracle - baseline) on the same held-out Tasks, paired: 0 is "
    "the best input-independent baseline, 1 the oracle."
)
_LEARNED_FROM: Mapping[Command, str] = {
    "train": "rewards",
    "sft": "demonstrations",
    "dpo": "preferences",
}
_WHEN = {BEFORE: "before training", WARM: "after the warm start", AFTER: "after training"}


@dataclass(frozen=True)
class Side:
    """A trained role of a run, for people.

    Attributes:
        config: of the run.
        role: the role.
        found: what it came to.
    """

    config: JobConfig
    role: str
    found: Trained

    @property
    def spec(self) -> WorldSpec:
        """The world."""
        return spec(self.config.world)

    @property
    def title(self) -> str:
        """The world, or the role and whom it is evaluated against."""
        if self._alone:
            return f"{self.spec.id} ({self.config.level})"
        scripts = {role: scripted_opponent(self.spec, role) for role in self.spec.roles}
        named = {**scripts, **self.spec.opponents, **self.config.opponents}
        others = [f"{who} {role}" for role, who in named.items() if role != self.role]
        return f"{self.role}, held out against {', '.join(others)}"

    @property
    def lead(self) -> str:
        """The change and the best input-independent baseline, in at most 25 words."""
        before, after = self._before, self.found.after
        value, count = f"{after.result.earned.value:.3f}", len(after.earned_T)
        came = f"earns {value} on {count} held-out Tasks"
        if before is not None:
            gain = self._gain(before.earned_T)
            change = _verdict(gain, "gained {}", "lost {}", "changed by {},")
            went = f"{before.result.earned.value:.3f} to {value}"
            came = f"{change} on {gain.samples} held-out Tasks ({went})"
        name = self.config.model.rpartition("/")[2]
        blind = fmean(self.found.scale.used.blind_T)
        return f"{name} {came}; the best input-independent baseline earns {blind:.3f}."

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield findings, each by name: how it was trained, earnings, standing and skill."""
        config, found, result = self.config, self.found, self.found.after.result
        label = config.options.get("label")
        read = f"{f'label {label}, ' if label else ''}{result.prompt} prompts"
        if result.temperature is not None:
            read += f", temperature {result.temperature:g}"
            read += f", at most {result.max_tokens} tokens a reply"
        as_role = f" as {self.role}" if len(self.spec.roles) > 1 else ""
        place = f"{self.spec.short_name}:{config.level}{as_role}"
        yield "trained on", f"{_LEARNED_FROM[config.command]} in {place} ({read})"
        if self._before is not None:
            yield (
                "gain on the Tasks played before and after",
                _told(self._gain(self._before.earned_T)),
            )
        yield (
            "over the best input-independent baseline",
            _told(self._gain(found.scale.used.blind_T)),
        )
        yield from found.findings()

    def _gain(self, other_T: Sequence[float]) -> Estimate:
        """Return what the trained policy earns more than another, on the Tasks of both."""
        after = np.array(self.found.after.earned_T[: len(other_T)])
        return mean_estimate((after - np.array(other_T)).tolist())

    @property
    def _alone(self) -> bool:
        """Whether the run trains no other role."""
        return len(self.config.trained_roles) == 1

    @property
    def _before(self) -> Evaluated | None:
        """The policy before training; `None` if it was not played."""
        return self.found.policies.get(BEFORE)

    @property
    def _tables(self) -> dict[str, RolloutTable]:
        """The rollouts before and after training, by when they were played."""
        policies = self.found.policies
        return {when: policies[when].table for when in (BEFORE, AFTER) if when in policies}

    def heading(self, what: str) -> str:
        """Return a heading, with the role where the run has several."""
        return what if self._alone else f"{what}: {self.title}"

    def returns(self) -> Table:
        """Lay out what policies earn: the trained one first, then the others from the best."""
        scale = self.found.scale
        expected = scale.expected is not None
        played = {_WHEN[name]: each.result for name, each in self.found.policies.items()}
        rows = [(name, result.earned) for name, result in played.items()]
        rows += sorted(scale.lines.items(), key=lambda item: -item[1].value)
        note = "Intervals are those of Student's t over Tasks."
        if expected:
            note += (
                " Expected returns are averages over what may happen, given what is shown: they "
                "have no noise of outcomes."
            )
        ladder = ladder_of(self.spec, self.config.level, self.role)
        called = {} if ladder is None else {rung.policy: rung.name for rung in ladder.rungs}
        cells: list[Sequence[Cell]] = [
            (
                (called[name], name) if name in called else name,
                f"{mean.value:.4f}",
                mean.interval("{:.4f}".format),
                f"{mean.samples}",
            )
            for name, mean in rows
        ]
        title = self.heading(f"{'Expected return' if expected else 'Return'} on held-out Tasks")
        return Table(("policy", "mean return", "95 % interval", "Tasks"), cells, title, note)

    def figures(self) -> Table:
        """Lay out what the episodes achieved before and after."""
        return episode_table(self.spec, self._tables, self.heading("Results of the episodes"))

    def evaluated(self) -> Table:
        """Lay out what policies earned, their scores, and the shares of replies in form."""
        results = {_WHEN[name]: each.result for name, each in self.found.policies.items()}
        return figures_table(self.heading("Evaluation on held-out Tasks"), results)

    def forecasts(self) -> list[Chart]:
        """Draw how well probabilities were stated, where the world has any."""
        label, probability = self.spec.calibration or ("", "")
        stated = {
            when: [
                (y, p)
                for end in table.ends
                if (y := end.get(label)) is not None and (p := end.get(probability)) is not None
            ]
            for when, table in self._tables.items()
        }
        return reliability_diagrams(stated)


def run_report(run: RunFolder) -> Report:
    """Lay out a finished run.

    Raises:
        OptionError: if it is unfinished.
    """
    found, outcome = read_trained(run), run.finished
    config, steps = run.config, run.step_log(replies=False).current()
    sides = [Side(config, role, trained) for role, trained in found.items()]
    parts: list[Table | Chart] = [side.returns() for side in sides]
    parts += [side.evaluated() for side in sides]
    parts += [table for side in sides if (table := side.figures()).rows]
    parts += sides[0].forecasts()
    lines = [side.lead for side in sides]
    lines += filter(None, (side.found.after.result.form_warning for side in sides))
    facts = [Table(("", ""), list(side.facts()), side.heading("Figures"), _SKILL) for side in sides]
    if steps and config.rolls_out:
        ties = run_ties(run)
        facts[0] = replace(facts[0], rows=[*facts[0].rows, ("groups", ties.summary)])
        parts.append(ties.table())
    facts[0] = replace(facts[0], rows=[*facts[0].rows, *_summary(config, steps)])
    lost = outcome.collapse
    warning = lost and (
        f"Collapsed at step {lost.since}: {lost.reason}. The last good checkpoint is kept. "
        f"Try: {lost.advice}."
    )
    title = f"{spec(config.world).id} ({config.level})"
    return Report(title, lines, [*facts, *parts], warning or "")


def _verdict(difference: Estimate, more: str, less: str, unknown: str) -> str:
    """State a paired difference in the words for it, and whether chance explains it."""
    size = f"{abs(difference.value):.3f} {difference.around}"
    if _is_shown(difference):
        return (more if difference.value > 0.0 else less).format(size)
    return f"{unknown.format(difference)} perhaps by chance,"


def _is_shown(difference: Estimate) -> bool:
    return difference.samples > 1 and (difference.low > 0.0 or difference.high < 0.0)


def _told(difference: Estimate) -> str:
    """State a difference, whether chance explains it, and how many Tasks would tell."""
    verdict = _verdict(difference, "{}, more than chance", "-{}, more than chance", "{}:")
    if _is_shown(difference):
        return verdict
    return f"{verdict} about {difference.samples_to_show():,} Tasks would tell"


def _summary(config: JobConfig, steps: Sequence[StepRow]) -> Iterator[tuple[str, str]]:
    """Yield what a run's steps took, by name."""
    seconds = sum(row.seconds for row in steps)
    tokens = f"{sum(row.tokens for row in steps):,.0f} tokens"
    groups, size = config.groups_per_batch, config.group_size
    if config.rolls_out:
        yield "steps", f"{len(steps)} steps of {groups} groups of {size} in {seconds:.0f} s"
        yield "rollouts", f"{tokens} read and sampled"
        yield from _group_counts(steps)
        return
    sft = config.command == "sft"
    data = f"{groups * size} demonstrations" if sft else f"{groups * size // 2} preference pairs"
    yield "supervised steps", f"{len(steps)} steps of {data} in {seconds:.0f} s"
    yield "examples", f"{tokens} trained on"


def _group_counts(steps: Sequence[StepRow]) -> Iterator[tuple[str, str]]:
    """Yield how the groups were used; nothing where the loop does not count them."""
    counted = [row.metrics for row in steps if "groups/drawn" in row.metrics]
    if not counted:
        return

    def total(name: str) -> str:
        return f"{sum(metrics[name] for metrics in counted):.0f}"

    yield (
        "groups drawn",
        f"{total('groups/drawn')}: {total('groups/live')} had a signal; "
        f"{total('groups/further')} were drawn instead of others for "
        f"{total('tokens/further')} tokens, and {total('groups/trained')} were trained on",
    )
